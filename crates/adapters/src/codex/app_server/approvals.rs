//! Converts the approval requests of Codex into permission requests to the client.

use crate::codex::command;
use crate::{AdapterTurn, PermissionAnswer, PermissionOption, ToolKind, ToolUpdate};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct PendingApprovals {
    /// By the program's request id, serialized as JSON.
    open: BTreeMap<String, PendingApproval>,
}

#[derive(Debug)]
struct PendingApproval {
    /// The program's request id.
    id: Value,
    /// The result for each option.
    results: Vec<(String, Value)>,
    /// The result if no option is selected.
    declined: Value,
    /// The result if the turn is cancelled meanwhile.
    cancelled: Value,
}

/// An approval request as it is sent to the client.
struct ApprovalPrompt {
    tool: ToolUpdate,
    options: Vec<ApprovalOption>,
    declined: Value,
    cancelled: Value,
}

struct ApprovalOption {
    id: String,
    name: String,
    kind: &'static str,
    result: Value,
}

impl ApprovalOption {
    fn new(id: &str, name: impl Into<String>, kind: &'static str, result: Value) -> ApprovalOption {
        ApprovalOption { id: id.to_owned(), name: name.into(), kind, result }
    }
}

impl PendingApprovals {
    /// Returns false for a request that the user cannot answer. `known` is the tool call that it
    /// concerns.
    pub(super) fn on_request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        known: Option<ToolUpdate>,
        turn: &mut AdapterTurn,
    ) -> bool {
        let known = known.unwrap_or_default();
        let question = match method {
            "item/commandExecution/requestApproval" => Some(command_approval(params, known)),
            "item/fileChange/requestApproval" => Some(file_approval(params, known)),
            "item/permissions/requestApproval" => Some(permissions_approval(params, known)),
            "item/tool/requestUserInput" => question_approval(params, known),
            "mcpServer/elicitation/request" => elicitation_approval(params, known),
            _ => None,
        };
        let Some(ApprovalPrompt { tool, options, declined, cancelled }) = question else {
            return false;
        };
        let key = id.to_string();
        let results = options.iter().map(|it| (it.id.clone(), it.result.clone())).collect();
        self.open
            .insert(key.clone(), PendingApproval { id: id.clone(), results, declined, cancelled });
        if turn.is_running() && !turn.is_cancelled() {
            let options = options
                .into_iter()
                .map(|ApprovalOption { id, name, kind, .. }| PermissionOption { id, name, kind })
                .collect();
            let item =
                params["itemId"].as_str().map_or_else(|| format!("ask-{key}"), str::to_owned);
            turn.request_permission(&key, &item, tool, options);
        } else {
            // Without a running turn, no client can answer.
            self.on_answer(&key, PermissionAnswer::Cancelled, turn);
        }
        true
    }

    pub(super) fn on_answer(
        &mut self,
        key: &str,
        answer: PermissionAnswer<'_>,
        turn: &mut AdapterTurn,
    ) {
        let Some(approval) = self.open.remove(key) else { return };
        let chosen = match answer {
            PermissionAnswer::Selected(option) => {
                approval.results.into_iter().find(|(id, _)| id == option)
            }
            PermissionAnswer::Cancelled => None,
        };
        let fallback = if turn.is_cancelled() { approval.cancelled } else { approval.declined };
        let result = chosen.map_or(fallback, |(_, result)| result);
        turn.write_json(&json!({"id": approval.id, "result": result}));
    }

    /// The program no longer waits for an answer. It reports this after the client's answer, too.
    pub(super) fn on_resolved(&mut self, id: &Value, turn: &mut AdapterTurn) {
        let key = id.to_string();
        if self.open.remove(&key).is_some() {
            turn.withdraw_request(&key);
        }
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

fn decision_result(decision: impl Into<Value>) -> Value {
    json!({"decision": decision.into()})
}

/// Adds the reason, if there is one, to the information about the tool call.
fn with_reason(tool: ToolUpdate, params: &Value) -> ToolUpdate {
    match params["reason"].as_str() {
        Some(reason) => tool.with_text(reason),
        None => tool,
    }
}

fn command_approval(params: &Value, known: ToolUpdate) -> ApprovalPrompt {
    let mut tool = known;
    if let Some(host) = params["networkApprovalContext"]["host"].as_str() {
        tool = tool.with_title(format!("Connect to {host}")).with_kind(ToolKind::Fetch);
    } else if let Some(command) = params["command"].as_str() {
        let command = command::strip_shell(command);
        let input = json!({"command": command, "cwd": params["cwd"]});
        tool = tool.with_title(command).with_kind(ToolKind::Execute).with_input(input);
    }
    let offered = params["availableDecisions"].as_array().cloned();
    let default = || vec![json!("accept"), json!("acceptForSession"), json!("decline")];
    let offered = offered.filter(|it| !it.is_empty()).unwrap_or_else(default);
    let mut options: Vec<ApprovalOption> =
        offered.iter().enumerate().filter_map(|(index, it)| decision_option(index, it)).collect();
    if !offered.iter().any(|it| it == "decline") {
        // Codex always accepts `decline`. Unlike `cancel`, it lets the turn continue.
        let end = options.iter().position(|it| it.id == "cancel").unwrap_or(options.len());
        options.extend(decision_option(end, &json!("decline")));
        let last = options.len() - 1;
        options.swap(end.min(last), last);
    }
    let (declined, cancelled) = (decision_result("decline"), decision_result("cancel"));
    ApprovalPrompt { tool: with_reason(tool, params), options, declined, cancelled }
}

fn decision_option(index: usize, offered: &Value) -> Option<ApprovalOption> {
    let result = decision_result(offered.clone());
    match offered.as_str() {
        Some("accept") => {
            return Some(ApprovalOption::new("accept", "Allow", "allow_once", result));
        }
        Some("acceptForSession") => {
            let name = "Allow for this session";
            return Some(ApprovalOption::new("acceptForSession", name, "allow_always", result));
        }
        Some("decline") => {
            return Some(ApprovalOption::new("decline", "Reject", "reject_once", result));
        }
        Some("cancel") => {
            let name = "Reject and stop the turn";
            return Some(ApprovalOption::new("cancel", name, "reject_once", result));
        }
        _ => {}
    }
    let rule = &offered["acceptWithExecpolicyAmendment"]["execpolicy_amendment"];
    if let Some(prefix) = rule.as_array() {
        let prefix: Vec<&str> = prefix.iter().filter_map(Value::as_str).collect();
        let name = format!("Always allow `{}`", prefix.join(" "));
        return Some(ApprovalOption::new(&format!("rule-{index}"), name, "allow_always", result));
    }
    let rule = &offered["applyNetworkPolicyAmendment"]["network_policy_amendment"];
    let host = rule["host"].as_str()?;
    let (verb, kind) = match rule["action"].as_str()? {
        "allow" => ("allow", "allow_always"),
        _ => ("reject", "reject_always"),
    };
    Some(ApprovalOption::new(
        &format!("rule-{index}"),
        format!("Always {verb} {host}"),
        kind,
        result,
    ))
}

fn file_approval(params: &Value, known: ToolUpdate) -> ApprovalPrompt {
    let mut tool = known;
    if !tool.fields.contains_key("title") {
        tool = tool.with_title("Edit files").with_kind(ToolKind::Edit);
    }
    let options = ["accept", "acceptForSession", "decline"].map(Value::from);
    let options =
        options.iter().enumerate().filter_map(|(index, it)| decision_option(index, it)).collect();
    let (declined, cancelled) = (decision_result("decline"), decision_result("cancel"));
    ApprovalPrompt { tool: with_reason(tool, params), options, declined, cancelled }
}

fn permissions_approval(params: &Value, known: ToolUpdate) -> ApprovalPrompt {
    let requested = &params["permissions"];
    let tool =
        known.with_title("Allow more").with_kind(ToolKind::Other).with_input(requested.clone());
    let grant = |scope: &str| json!({"permissions": requested, "scope": scope});
    let declined = json!({"permissions": {}, "scope": "turn"});
    let options = vec![
        ApprovalOption::new("turn", "Allow for this turn", "allow_once", grant("turn")),
        ApprovalOption::new("session", "Allow for this session", "allow_always", grant("session")),
        ApprovalOption::new("decline", "Reject", "reject_once", declined.clone()),
    ];
    let tool = with_reason(tool, params);
    ApprovalPrompt { tool, options, declined: declined.clone(), cancelled: declined }
}

/// A single question with fixed answers becomes a permission request; ACP cannot express others.
fn question_approval(params: &Value, known: ToolUpdate) -> Option<ApprovalPrompt> {
    let [question] = params["questions"].as_array()?.as_slice() else { return None };
    let answers = question["options"].as_array().filter(|answers| !answers.is_empty())?;
    let id = question["id"].as_str()?;
    let mut options = Vec::new();
    for (index, answer) in answers.iter().enumerate() {
        let label = answer["label"].as_str()?;
        let result = json!({"answers": {id: {"answers": [label]}}});
        options.push(ApprovalOption::new(&format!("answer-{index}"), label, "allow_once", result));
    }
    let declined = json!({"answers": {}});
    options.push(ApprovalOption::new("decline", "Skip", "reject_once", declined.clone()));
    let tool = known.with_title(question["question"].as_str()?).with_kind(ToolKind::Other);
    Some(ApprovalPrompt { tool, options, declined: declined.clone(), cancelled: declined })
}

/// A yes-or-no question of an MCP server. A form with fields cannot be filled in through ACP.
fn elicitation_approval(params: &Value, known: ToolUpdate) -> Option<ApprovalPrompt> {
    let fields = params["requestedSchema"]["properties"].as_object();
    if params["mode"] == "url" || fields.is_some_and(|fields| !fields.is_empty()) {
        return None;
    }
    let action = |action: &str| json!({"action": action, "content": null});
    let accepted = json!({"action": "accept", "content": {}});
    let options = vec![
        ApprovalOption::new("accept", "Allow", "allow_once", accepted),
        ApprovalOption::new("decline", "Reject", "reject_once", action("decline")),
    ];
    let tool = known.with_title(params["message"].as_str()?).with_kind(ToolKind::Other);
    Some(ApprovalPrompt { tool, options, declined: action("decline"), cancelled: action("cancel") })
}
