//! Dialogs of pi's extensions: what can be asked of a client is asked, the rest is dismissed.

use crate::{Answer, AskOption, Status, Tool, Turn};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The dialogs that wait for an answer, by their id.
#[derive(Debug, Default)]
pub(super) struct Dialogs {
    open: BTreeMap<String, Dialog>,
}

#[derive(Debug)]
enum Dialog {
    Confirm,
    /// What can be chosen.
    Select(Vec<String>),
}

impl Dialogs {
    pub(super) fn on_request(&mut self, event: &Value, turn: &mut Turn) {
        let params = if event["params"].is_object() { &event["params"] } else { event };
        let (Some(id), Some(method)) = (event["id"].as_str(), event["method"].as_str()) else {
            return turn.unmapped(event);
        };
        match method {
            "confirm" if turn.is_running() => self.ask(id, Dialog::Confirm, params, turn),
            "select" if turn.is_running() && choices(params).is_some() => {
                let choices = choices(params).unwrap_or_default();
                self.ask(id, Dialog::Select(choices), params, turn);
            }
            // Only a person at a terminal can write, and nobody is there between turns.
            "confirm" | "select" | "input" | "editor" => {
                turn.unmapped(event);
                turn.write(&dismissal(id));
            }
            "notify" if params["message"].is_string() => {
                turn.notice(params["message"].as_str().unwrap_or_default());
            }
            // Decoration of a terminal; nobody waits for an answer.
            _ => turn.unmapped(event),
        }
    }

    fn ask(&mut self, id: &str, dialog: Dialog, params: &Value, turn: &mut Turn) {
        let mut tool = Tool::new().title(params["title"].as_str().unwrap_or("A question"));
        tool = tool.status(Status::Pending);
        if let Some(message) = params["message"].as_str() {
            tool = tool.text(message);
        }
        let options = match &dialog {
            Dialog::Confirm => {
                vec![option("yes", "Yes", "allow_once"), option("no", "No", "reject_once")]
            }
            Dialog::Select(choices) => choices
                .iter()
                .zip(0_usize..)
                .map(|(choice, at)| option(&at.to_string(), choice, kind_of(choice)))
                .collect(),
        };
        self.open.insert(id.to_owned(), dialog);
        turn.ask(id, id, tool, options);
    }

    pub(super) fn on_answer(&mut self, id: &str, answer: Answer<'_>, turn: &mut Turn) {
        let Some(dialog) = self.open.remove(id) else { return };
        let reply = match (dialog, answer) {
            (Dialog::Confirm, Answer::Chosen(chosen)) => {
                Some(json!({"confirmed": chosen == "yes"}))
            }
            (Dialog::Select(choices), Answer::Chosen(chosen)) => {
                let choice = chosen.parse().ok().and_then(|at: usize| choices.get(at).cloned());
                choice.map(|choice| json!({"value": choice}))
            }
            (_, Answer::Cancelled) => None,
        };
        let status = if reply.is_some() { Status::Completed } else { Status::Failed };
        let mut line = dismissal(id);
        if let Some(Value::Object(reply)) = reply
            && let Some(line) = line.as_object_mut()
        {
            line.remove("cancelled");
            line.extend(reply);
        }
        turn.write(&line);
        turn.tool(id, Tool::new().status(status));
    }

    /// Nobody will answer any more.
    pub(super) fn dismiss(&mut self, turn: &mut Turn) {
        for id in std::mem::take(&mut self.open).into_keys() {
            turn.write(&dismissal(&id));
            turn.unask(&id);
        }
    }
}

fn dismissal(id: &str) -> Value {
    json!({"type": "extension_ui_response", "id": id, "cancelled": true})
}

/// What can be chosen, if it is a list of texts.
fn choices(params: &Value) -> Option<Vec<String>> {
    let options = params["options"].as_array().filter(|options| !options.is_empty())?;
    options.iter().map(|option| option.as_str().map(str::to_owned)).collect()
}

fn option(id: &str, name: &str, kind: &'static str) -> AskOption {
    AskOption { id: id.to_owned(), name: name.to_owned(), kind }
}

/// Choices have no kind; the first word says most.
fn kind_of(choice: &str) -> &'static str {
    let word = choice.split(|it: char| !it.is_alphanumeric()).find(|word| !word.is_empty());
    match word.unwrap_or_default().to_lowercase().as_str() {
        "no" | "block" | "deny" | "reject" | "cancel" | "abort" | "never" | "stop" => "reject_once",
        "always" => "allow_always",
        _ => "allow_once",
    }
}
