//! The control protocol: permission requests of the program, and requests to the program.

use super::questions::QuestionSet;
use super::stream::ClaudeStream;
use super::tool_action::ToolAction;
use crate::{AdapterTurn, PermissionAnswer, PermissionOption, ToolStatus};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow-always";
const REJECT: &str = "reject";
const REJECT_MESSAGE: &str = "The user does not want this tool to be used now.";

/// A request that the program waits for.
#[derive(Debug)]
struct PendingControlRequest {
    tool: String,
    input: Value,
    subject: RequestSubject,
}

#[derive(Debug)]
enum RequestSubject {
    /// Permission for a tool call, with the changes that would allow it permanently.
    Permission(Vec<Value>),
    /// Permission to leave plan mode, and the mode to switch to.
    Plan,
    Questions(QuestionSet),
}

/// Both directions of the control protocol for one program.
#[derive(Debug, Default)]
pub(super) struct ControlChannel {
    pending: BTreeMap<String, PendingControlRequest>,
    request_count: u64,
    /// The previous mode of each mode change that is not confirmed yet, by request id.
    unconfirmed_modes: BTreeMap<String, Option<String>>,
}

impl ControlChannel {
    pub(super) fn send_request(&mut self, request: &Value, turn: &mut AdapterTurn) -> String {
        self.request_count += 1;
        let id = format!("jackfield-{}", self.request_count);
        turn.write_json(&json!({"type": "control_request", "request_id": id, "request": request}));
        id
    }

    pub(super) fn set_mode(
        &mut self,
        mode: &str,
        stream: &mut ClaudeStream,
        turn: &mut AdapterTurn,
    ) {
        let request = json!({"subtype": "set_permission_mode", "mode": mode});
        let id = self.send_request(&request, turn);
        self.unconfirmed_modes.insert(id, stream.mode.replace(mode.to_owned()));
    }

    /// The process has exited, so its requests are void.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// The turn has ended. A request that is still pending comes from a background task and is
    /// denied, because no client will answer it.
    pub(super) fn deny_all(&mut self, turn: &mut AdapterTurn) {
        for id in std::mem::take(&mut self.pending).into_keys() {
            let message = "The turn has ended; no user can answer.";
            send_response(&id, &json!({"behavior": "deny", "message": message}), turn);
        }
    }

    /// The program responds to a request.
    pub(super) fn on_response(
        &mut self,
        line: &Value,
        stream: &mut ClaudeStream,
        turn: &mut AdapterTurn,
    ) {
        let response = &line["response"];
        let id = response["request_id"].as_str().unwrap_or_default();
        let previous_mode = self.unconfirmed_modes.remove(id);
        if let Some(commands) = response["response"]["commands"].as_array() {
            let described = |it: &Value| {
                Some((it["name"].as_str()?.to_owned(), it["description"].as_str()?.to_owned()))
            };
            stream.command_descriptions.extend(commands.iter().filter_map(described));
        }
        if response["subtype"] != "error" {
            return;
        }
        let reason = response["error"].as_str().unwrap_or("no reason given");
        turn.send_notice(&format!("control request failed: {reason}"));
        if let Some(Some(mode)) = previous_mode {
            turn.send_mode(&mode);
            stream.mode = Some(mode);
        }
    }

    /// The program sends a request.
    pub(super) fn on_request(
        &mut self,
        line: &Value,
        stream: &mut ClaudeStream,
        turn: &mut AdapterTurn,
    ) {
        let (id, request) = (line["request_id"].as_str().unwrap_or_default(), &line["request"]);
        if request["subtype"] != "can_use_tool" {
            turn.report_unmapped(line);
            let error = "this client does not support the request";
            let response = json!({"subtype": "error", "request_id": id, "error": error});
            turn.write_json(&json!({"type": "control_response", "response": response}));
            return;
        }
        let name = request["tool_name"].as_str().unwrap_or_default();
        let input = &request["input"];
        let suggested = parse_suggestions(&request["permission_suggestions"]);
        let subject = match ToolAction::from_name(name) {
            ToolAction::LeavePlan => RequestSubject::Plan,
            ToolAction::Question => match QuestionSet::new(input) {
                Some(questions) => RequestSubject::Questions(questions),
                None => RequestSubject::Permission(suggested),
            },
            _ => RequestSubject::Permission(suggested),
        };
        // Old versions do not name the call that they request permission for.
        let matching = || stream.calls.find_open_call(name, input);
        let tool = request["tool_use_id"].as_str().or_else(matching).unwrap_or(id).to_owned();
        stream.calls.register_call(&tool, name, input);
        let request = PendingControlRequest { tool, input: input.clone(), subject };
        request_permission(id, &request, stream, turn);
        self.pending.insert(id.to_owned(), request);
    }

    /// The program no longer waits for the answer.
    pub(super) fn on_cancel(&mut self, line: &Value, turn: &mut AdapterTurn) {
        let id = line["request_id"].as_str().unwrap_or_default();
        if self.pending.remove(id).is_some() {
            turn.withdraw_request(id);
        }
    }

    pub(super) fn on_answer(
        &mut self,
        id: &str,
        answer: PermissionAnswer<'_>,
        stream: &mut ClaudeStream,
        turn: &mut AdapterTurn,
    ) {
        let Some(mut request) = self.pending.remove(id) else { return };
        let option = match answer {
            PermissionAnswer::Cancelled => {
                let message = "The turn was cancelled.";
                return send_response(
                    id,
                    &json!({"behavior": "deny", "message": message, "interrupt": true}),
                    turn,
                );
            }
            PermissionAnswer::Selected(REJECT) => {
                return send_response(
                    id,
                    &json!({"behavior": "deny", "message": REJECT_MESSAGE}),
                    turn,
                );
            }
            PermissionAnswer::Selected(option) => option,
        };
        let mut allowed = json!({"behavior": "allow", "updatedInput": request.input});
        match &mut request.subject {
            RequestSubject::Permission(suggested) if option == ALLOW_ALWAYS => {
                allowed["updatedPermissions"] = json!(suggested);
            }
            RequestSubject::Permission(_) => {}
            RequestSubject::Plan => {
                let change = json!({"type": "setMode", "mode": option, "destination": "session"});
                allowed["updatedPermissions"] = json!([change]);
                if stream.mode.as_deref() != Some(option) {
                    turn.send_mode(option);
                    stream.mode = Some(option.to_owned());
                }
            }
            RequestSubject::Questions(questions) => {
                if !questions.record_answer(option) {
                    request_permission(id, &request, stream, turn);
                    self.pending.insert(id.to_owned(), request);
                    return;
                }
                allowed["updatedInput"]["answers"] = questions.answers();
            }
        }
        send_response(id, &allowed, turn);
    }
}

fn send_response(id: &str, response: &Value, turn: &mut AdapterTurn) {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    turn.write_json(&json!({"type": "control_response", "response": response}));
}

fn request_permission(
    id: &str,
    request: &PendingControlRequest,
    stream: &ClaudeStream,
    turn: &mut AdapterTurn,
) {
    let tool = stream.calls.to_update(&request.tool);
    let (tool, options) = match &request.subject {
        RequestSubject::Permission(suggested) => (tool, permission_options(suggested)),
        RequestSubject::Plan => (tool, plan_options()),
        RequestSubject::Questions(questions) => {
            (tool.with_title(questions.current_question()), questions.options())
        }
    };
    turn.request_permission(id, &request.tool, tool.with_status(ToolStatus::Pending), options);
}

/// The changes that would allow the call permanently. Some programs suggest rules together with a
/// mode change that allows far more than was requested; then only the rules are kept.
fn parse_suggestions(suggestions: &Value) -> Vec<Value> {
    let all = suggestions.as_array().cloned().unwrap_or_default();
    let is_rule = |change: &Value| change["type"] == "addRules";
    let has_rules = all.iter().any(is_rule);
    all.into_iter().filter(|change| !has_rules || is_rule(change)).collect()
}

fn permission_option(id: &str, name: &str, kind: &'static str) -> PermissionOption {
    PermissionOption { id: id.to_owned(), name: name.to_owned(), kind }
}

fn permission_options(suggested: &[Value]) -> Vec<PermissionOption> {
    let mut options = vec![permission_option(ALLOW, "Allow", "allow_once")];
    if !suggested.is_empty() {
        options.push(permission_option(
            ALLOW_ALWAYS,
            &always_allow_name(suggested),
            "allow_always",
        ));
    }
    options.push(permission_option(REJECT, "Reject", "reject_once"));
    options
}

/// The name of the option that applies the suggested changes.
fn always_allow_name(suggested: &[Value]) -> String {
    let changes: Vec<String> = suggested.iter().filter_map(describe_change).collect();
    if changes.is_empty() { "Always allow".to_owned() } else { changes.join("; ") }
}

fn describe_change(change: &Value) -> Option<String> {
    let list = |key: &str| change[key].as_array().map(Vec::as_slice).unwrap_or_default();
    match change["type"].as_str()? {
        "setMode" if change["mode"] == "acceptEdits" => {
            Some("Allow all edits in this session".to_owned())
        }
        "setMode" => Some(format!("Switch to mode {}", change["mode"].as_str()?)),
        "addRules" => {
            let rule = |it: &Value| match (it["toolName"].as_str()?, it["ruleContent"].as_str()) {
                (tool, Some(content)) => Some(format!("{tool}({content})")),
                (tool, None) => Some(tool.to_owned()),
            };
            let rules: Vec<String> = list("rules").iter().filter_map(rule).collect();
            Some(format!("Always allow {}", rules.join(", ")))
        }
        "addDirectories" => {
            let directories: Vec<&str> =
                list("directories").iter().filter_map(Value::as_str).collect();
            Some(format!("Allow access to {}", directories.join(", ")))
        }
        _ => None,
    }
}

/// The options for leaving plan mode. Their ids are the modes to switch to.
fn plan_options() -> Vec<PermissionOption> {
    vec![
        permission_option("default", "Execute the plan and ask before edits", "allow_once"),
        permission_option("acceptEdits", "Execute the plan and accept edits", "allow_always"),
        permission_option(REJECT, "Keep planning", "reject_once"),
    ]
}
