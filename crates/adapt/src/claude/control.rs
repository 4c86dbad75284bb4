//! The control protocol: permission asks of the program, and requests to it.

use super::question::Questions;
use super::show::Deed;
use super::talk::Talk;
use crate::{Answer, AskOption, Status, Turn};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ALLOW: &str = "allow";
const ALWAYS: &str = "allow-always";
const REJECT: &str = "reject";
const REJECTED: &str = "The user does not want this tool to be used now.";

/// What the program waits for.
#[derive(Debug)]
struct Ask {
    tool: String,
    input: Value,
    matter: Matter,
}

#[derive(Debug)]
enum Matter {
    /// May this be done? With what would allow it for good.
    Permission(Vec<Value>),
    /// May it leave plan mode, and into which mode?
    Plan,
    Questions(Questions),
}

/// Both directions of the control protocol for one program.
#[derive(Debug, Default)]
pub(super) struct Control {
    asks: BTreeMap<String, Ask>,
    requests_made: u64,
    /// Mode changes that are not confirmed: the mode before each.
    modes: BTreeMap<String, Option<String>>,
}

impl Control {
    pub(super) fn request(&mut self, request: &Value, turn: &mut Turn) -> String {
        self.requests_made += 1;
        let id = format!("jackfield-{}", self.requests_made);
        turn.write(&json!({"type": "control_request", "request_id": id, "request": request}));
        id
    }

    pub(super) fn set_mode(&mut self, mode: &str, talk: &mut Talk, turn: &mut Turn) {
        let request = json!({"subtype": "set_permission_mode", "mode": mode});
        let id = self.request(&request, turn);
        self.modes.insert(id, talk.mode.replace(mode.to_owned()));
    }

    /// The program is gone, and with it what it asked.
    pub(super) fn forget(&mut self) {
        self.asks.clear();
    }

    /// The turn is over. What is still asked, asks a task in the background: it must not wait for
    /// somebody who is not there.
    pub(super) fn close(&mut self, turn: &mut Turn) {
        for id in std::mem::take(&mut self.asks).into_keys() {
            let message = "The turn is over; nobody is asked any more.";
            respond(&id, &json!({"behavior": "deny", "message": message}), turn);
        }
    }

    /// The program answers one of our requests.
    pub(super) fn on_response(&mut self, line: &Value, talk: &mut Talk, turn: &mut Turn) {
        let response = &line["response"];
        let id = response["request_id"].as_str().unwrap_or_default();
        let before = self.modes.remove(id);
        if let Some(commands) = response["response"]["commands"].as_array() {
            let described = |it: &Value| {
                Some((it["name"].as_str()?.to_owned(), it["description"].as_str()?.to_owned()))
            };
            talk.described.extend(commands.iter().filter_map(described));
        }
        if response["subtype"] != "error" {
            return;
        }
        let why = response["error"].as_str().unwrap_or("no reason was given");
        turn.notice(&format!("a request was refused: {why}"));
        if let Some(Some(mode)) = before {
            turn.mode(&mode);
            talk.mode = Some(mode);
        }
    }

    /// The program asks something.
    pub(super) fn on_request(&mut self, line: &Value, talk: &mut Talk, turn: &mut Turn) {
        let (id, request) = (line["request_id"].as_str().unwrap_or_default(), &line["request"]);
        if request["subtype"] != "can_use_tool" {
            turn.unmapped(line);
            let error = "this client has no such capability";
            let response = json!({"subtype": "error", "request_id": id, "error": error});
            turn.write(&json!({"type": "control_response", "response": response}));
            return;
        }
        let name = request["tool_name"].as_str().unwrap_or_default();
        let input = &request["input"];
        let suggested = suggestions(&request["permission_suggestions"]);
        let matter = match Deed::of(name) {
            Deed::LeavePlan => Matter::Plan,
            Deed::Question => match Questions::new(input) {
                Some(questions) => Matter::Questions(questions),
                None => Matter::Permission(suggested),
            },
            _ => Matter::Permission(suggested),
        };
        // Old versions do not say which call they ask about.
        let same = || talk.calls.like(name, input);
        let tool = request["tool_use_id"].as_str().or_else(same).unwrap_or(id).to_owned();
        talk.calls.expect(&tool, name, input);
        let ask = Ask { tool, input: input.clone(), matter };
        put(id, &ask, talk, turn);
        self.asks.insert(id.to_owned(), ask);
    }

    /// The program does not wait for the answer any more.
    pub(super) fn on_cancel(&mut self, line: &Value, turn: &mut Turn) {
        let id = line["request_id"].as_str().unwrap_or_default();
        if self.asks.remove(id).is_some() {
            turn.unask(id);
        }
    }

    pub(super) fn answer(
        &mut self,
        id: &str,
        answer: Answer<'_>,
        talk: &mut Talk,
        turn: &mut Turn,
    ) {
        let Some(mut ask) = self.asks.remove(id) else { return };
        let option = match answer {
            Answer::Cancelled => {
                let message = "The turn was cancelled.";
                return respond(
                    id,
                    &json!({"behavior": "deny", "message": message, "interrupt": true}),
                    turn,
                );
            }
            Answer::Chosen(REJECT) => {
                return respond(id, &json!({"behavior": "deny", "message": REJECTED}), turn);
            }
            Answer::Chosen(option) => option,
        };
        let mut allowed = json!({"behavior": "allow", "updatedInput": ask.input});
        match &mut ask.matter {
            Matter::Permission(suggested) if option == ALWAYS => {
                allowed["updatedPermissions"] = json!(suggested);
            }
            Matter::Permission(_) => {}
            Matter::Plan => {
                let change = json!({"type": "setMode", "mode": option, "destination": "session"});
                allowed["updatedPermissions"] = json!([change]);
                if talk.mode.as_deref() != Some(option) {
                    turn.mode(option);
                    talk.mode = Some(option.to_owned());
                }
            }
            Matter::Questions(questions) => {
                if !questions.choose(option) {
                    put(id, &ask, talk, turn);
                    self.asks.insert(id.to_owned(), ask);
                    return;
                }
                allowed["updatedInput"]["answers"] = questions.answers();
            }
        }
        respond(id, &allowed, turn);
    }
}

fn respond(id: &str, response: &Value, turn: &mut Turn) {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    turn.write(&json!({"type": "control_response", "response": response}));
}

fn put(id: &str, ask: &Ask, talk: &Talk, turn: &mut Turn) {
    let tool = talk.calls.show(&ask.tool);
    let (tool, options) = match &ask.matter {
        Matter::Permission(suggested) => (tool, permissions(suggested)),
        Matter::Plan => (tool, plan_options()),
        Matter::Questions(questions) => (tool.title(questions.current()), questions.options()),
    };
    turn.ask(id, &ask.tool, tool.status(Status::Pending), options);
}

/// What would allow it for good. Some come together with a change of mode that allows far more than
/// was asked; rules are enough by themselves.
fn suggestions(told: &Value) -> Vec<Value> {
    let all = told.as_array().cloned().unwrap_or_default();
    let is_rule = |change: &Value| change["type"] == "addRules";
    let ruled = all.iter().any(is_rule);
    all.into_iter().filter(|change| !ruled || is_rule(change)).collect()
}

fn option(id: &str, name: &str, kind: &'static str) -> AskOption {
    AskOption { id: id.to_owned(), name: name.to_owned(), kind }
}

fn permissions(suggested: &[Value]) -> Vec<AskOption> {
    let mut options = vec![option(ALLOW, "Allow", "allow_once")];
    if !suggested.is_empty() {
        options.push(option(ALWAYS, &for_good(suggested), "allow_always"));
    }
    options.push(option(REJECT, "Reject", "reject_once"));
    options
}

/// What the program would do so as not to ask again.
fn for_good(suggested: &[Value]) -> String {
    let words: Vec<String> = suggested.iter().filter_map(in_words).collect();
    if words.is_empty() { "Always allow".to_owned() } else { words.join("; ") }
}

fn in_words(change: &Value) -> Option<String> {
    let list = |key: &str| change[key].as_array().map(Vec::as_slice).unwrap_or_default();
    match change["type"].as_str()? {
        "setMode" if change["mode"] == "acceptEdits" => {
            Some("Allow all edits in this session".to_owned())
        }
        "setMode" => Some(format!("Switch to mode {}", change["mode"].as_str()?)),
        "addRules" => {
            let rule = |it: &Value| match (it["toolName"].as_str()?, it["ruleContent"].as_str()) {
                (tool, Some(what)) => Some(format!("{tool}({what})")),
                (tool, None) => Some(tool.to_owned()),
            };
            let rules: Vec<String> = list("rules").iter().filter_map(rule).collect();
            Some(format!("Always allow {}", rules.join(", ")))
        }
        "addDirectories" => {
            let folders: Vec<&str> = list("directories").iter().filter_map(Value::as_str).collect();
            Some(format!("Allow access to {}", folders.join(", ")))
        }
        _ => None,
    }
}

/// The ids are the modes in which it goes on.
fn plan_options() -> Vec<AskOption> {
    vec![
        option("default", "Carry out, and ask before edits", "allow_once"),
        option("acceptEdits", "Carry out, and accept edits", "allow_always"),
        option(REJECT, "Keep planning", "reject_once"),
    ]
}
