//! What Codex asks before it acts: requests of the program that become asks of the client.

use crate::codex::command;
use crate::{Answer, AskOption, Kind, Tool, Turn};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Approvals {
    /// By the program's request id, spelled as JSON.
    open: BTreeMap<String, Approval>,
}

#[derive(Debug)]
struct Approval {
    /// The program's request.
    id: Value,
    /// The result for each option.
    results: Vec<(String, Value)>,
    /// The result if nobody decides, and if the turn is cancelled meanwhile.
    declined: Value,
    cancelled: Value,
}

/// A question as the client will see it.
struct Question {
    tool: Tool,
    choices: Vec<Choice>,
    declined: Value,
    cancelled: Value,
}

struct Choice {
    id: String,
    name: String,
    kind: &'static str,
    result: Value,
}

impl Choice {
    fn new(id: &str, name: impl Into<String>, kind: &'static str, result: Value) -> Choice {
        Choice { id: id.to_owned(), name: name.into(), kind, result }
    }
}

impl Approvals {
    /// Returns false for a request that is no question for people. `told` is the call it is about.
    pub(super) fn on_request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        told: Option<Tool>,
        turn: &mut Turn,
    ) -> bool {
        let told = told.unwrap_or_default();
        let question = match method {
            "item/commandExecution/requestApproval" => Some(about_command(params, told)),
            "item/fileChange/requestApproval" => Some(about_files(params, told)),
            "item/permissions/requestApproval" => Some(about_permissions(params, told)),
            "item/tool/requestUserInput" => about_choice(params, told),
            "mcpServer/elicitation/request" => about_server(params, told),
            _ => None,
        };
        let Some(Question { tool, choices, declined, cancelled }) = question else { return false };
        let key = id.to_string();
        let results = choices.iter().map(|it| (it.id.clone(), it.result.clone())).collect();
        self.open.insert(key.clone(), Approval { id: id.clone(), results, declined, cancelled });
        if turn.is_running() && !turn.is_cancelled() {
            let options = choices
                .into_iter()
                .map(|Choice { id, name, kind, .. }| AskOption { id, name, kind })
                .collect();
            let item =
                params["itemId"].as_str().map_or_else(|| format!("ask-{key}"), str::to_owned);
            turn.ask(&key, &item, tool, options);
        } else {
            // There is nobody to ask.
            self.answer(&key, Answer::Cancelled, turn);
        }
        true
    }

    pub(super) fn answer(&mut self, key: &str, answer: Answer<'_>, turn: &mut Turn) {
        let Some(approval) = self.open.remove(key) else { return };
        let chosen = match answer {
            Answer::Chosen(option) => approval.results.into_iter().find(|(id, _)| id == option),
            Answer::Cancelled => None,
        };
        let otherwise = if turn.is_cancelled() { approval.cancelled } else { approval.declined };
        let result = chosen.map_or(otherwise, |(_, result)| result);
        turn.write(&json!({"id": approval.id, "result": result}));
    }

    /// The program does not wait any more; it also says so after our own answer.
    pub(super) fn on_resolved(&mut self, id: &Value, turn: &mut Turn) {
        let key = id.to_string();
        if self.open.remove(&key).is_some() {
            turn.unask(&key);
        }
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

fn decision(decision: impl Into<Value>) -> Value {
    json!({"decision": decision.into()})
}

/// The reason, where one is told, stands with what the client already knows of the call.
fn reasoned(tool: Tool, params: &Value) -> Tool {
    match params["reason"].as_str() {
        Some(reason) => tool.text(reason),
        None => tool,
    }
}

fn about_command(params: &Value, told: Tool) -> Question {
    let mut tool = told;
    if let Some(host) = params["networkApprovalContext"]["host"].as_str() {
        tool = tool.title(format!("Connect to {host}")).kind(Kind::Fetch);
    } else if let Some(command) = params["command"].as_str() {
        let command = command::bare(command);
        let input = json!({"command": command, "cwd": params["cwd"]});
        tool = tool.title(command).kind(Kind::Execute).input(input);
    }
    let offered = params["availableDecisions"].as_array().cloned();
    let usual = || vec![json!("accept"), json!("acceptForSession"), json!("decline")];
    let offered = offered.filter(|it| !it.is_empty()).unwrap_or_else(usual);
    let mut choices: Vec<Choice> =
        offered.iter().enumerate().filter_map(|(at, it)| command_choice(at, it)).collect();
    if !offered.iter().any(|it| it == "decline") {
        // It is always understood, and lets the turn go on, which `cancel` does not.
        let end = choices.iter().position(|it| it.id == "cancel").unwrap_or(choices.len());
        choices.extend(command_choice(end, &json!("decline")));
        let last = choices.len() - 1;
        choices.swap(end.min(last), last);
    }
    let (declined, cancelled) = (decision("decline"), decision("cancel"));
    Question { tool: reasoned(tool, params), choices, declined, cancelled }
}

fn command_choice(at: usize, offered: &Value) -> Option<Choice> {
    let result = decision(offered.clone());
    match offered.as_str() {
        Some("accept") => return Some(Choice::new("accept", "Allow", "allow_once", result)),
        Some("acceptForSession") => {
            let name = "Allow for this session";
            return Some(Choice::new("acceptForSession", name, "allow_always", result));
        }
        Some("decline") => return Some(Choice::new("decline", "Reject", "reject_once", result)),
        Some("cancel") => {
            let name = "Reject and stop the turn";
            return Some(Choice::new("cancel", name, "reject_once", result));
        }
        _ => {}
    }
    let rule = &offered["acceptWithExecpolicyAmendment"]["execpolicy_amendment"];
    if let Some(words) = rule.as_array() {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let name = format!("Always allow `{}`", words.join(" "));
        return Some(Choice::new(&format!("rule-{at}"), name, "allow_always", result));
    }
    let rule = &offered["applyNetworkPolicyAmendment"]["network_policy_amendment"];
    let host = rule["host"].as_str()?;
    let (verb, kind) = match rule["action"].as_str()? {
        "allow" => ("allow", "allow_always"),
        _ => ("reject", "reject_always"),
    };
    Some(Choice::new(&format!("rule-{at}"), format!("Always {verb} {host}"), kind, result))
}

fn about_files(params: &Value, told: Tool) -> Question {
    let mut tool = told;
    if !tool.fields.contains_key("title") {
        tool = tool.title("Edit files").kind(Kind::Edit);
    }
    let choices = ["accept", "acceptForSession", "decline"].map(Value::from);
    let choices =
        choices.iter().enumerate().filter_map(|(at, it)| command_choice(at, it)).collect();
    let (declined, cancelled) = (decision("decline"), decision("cancel"));
    Question { tool: reasoned(tool, params), choices, declined, cancelled }
}

fn about_permissions(params: &Value, told: Tool) -> Question {
    let wanted = &params["permissions"];
    let tool = told.title("Allow more").kind(Kind::Other).input(wanted.clone());
    let grant = |scope: &str| json!({"permissions": wanted, "scope": scope});
    let nothing = json!({"permissions": {}, "scope": "turn"});
    let choices = vec![
        Choice::new("turn", "Allow for this turn", "allow_once", grant("turn")),
        Choice::new("session", "Allow for this session", "allow_always", grant("session")),
        Choice::new("decline", "Reject", "reject_once", nothing.clone()),
    ];
    let tool = reasoned(tool, params);
    Question { tool, choices, declined: nothing.clone(), cancelled: nothing }
}

/// One question with given answers can be put as a choice; ACP has no form for more.
fn about_choice(params: &Value, told: Tool) -> Option<Question> {
    let [question] = params["questions"].as_array()?.as_slice() else { return None };
    let options = question["options"].as_array().filter(|options| !options.is_empty())?;
    let id = question["id"].as_str()?;
    let mut choices = Vec::new();
    for (at, option) in options.iter().enumerate() {
        let label = option["label"].as_str()?;
        let result = json!({"answers": {id: {"answers": [label]}}});
        choices.push(Choice::new(&format!("answer-{at}"), label, "allow_once", result));
    }
    let nothing = json!({"answers": {}});
    choices.push(Choice::new("decline", "Skip", "reject_once", nothing.clone()));
    let tool = told.title(question["question"].as_str()?).kind(Kind::Other);
    Some(Question { tool, choices, declined: nothing.clone(), cancelled: nothing })
}

/// An MCP server wants a yes or no; a form with fields cannot be filled in through ACP.
fn about_server(params: &Value, told: Tool) -> Option<Question> {
    let fields = params["requestedSchema"]["properties"].as_object();
    if params["mode"] == "url" || fields.is_some_and(|fields| !fields.is_empty()) {
        return None;
    }
    let action = |action: &str| json!({"action": action, "content": null});
    let accepted = json!({"action": "accept", "content": {}});
    let choices = vec![
        Choice::new("accept", "Allow", "allow_once", accepted),
        Choice::new("decline", "Reject", "reject_once", action("decline")),
    ];
    let tool = told.title(params["message"].as_str()?).kind(Kind::Other);
    Some(Question { tool, choices, declined: action("decline"), cancelled: action("cancel") })
}
