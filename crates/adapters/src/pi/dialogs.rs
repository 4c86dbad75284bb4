//! Dialogs of pi's extensions. Those that fit a permission request are sent to the client, the
//! others are dismissed.

use crate::{AdapterTurn, PermissionAnswer, PermissionOption, ToolStatus, ToolUpdate};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The dialogs that wait for an answer, by their id.
#[derive(Debug, Default)]
pub(super) struct OpenDialogs {
    open: BTreeMap<String, DialogKind>,
}

#[derive(Debug)]
enum DialogKind {
    Confirm,
    /// The texts to choose from.
    Select(Vec<String>),
}

impl OpenDialogs {
    pub(super) fn on_request(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let params = if event["params"].is_object() { &event["params"] } else { event };
        let (Some(id), Some(method)) = (event["id"].as_str(), event["method"].as_str()) else {
            return turn.report_unmapped(event);
        };
        match method {
            "confirm" if turn.is_running() => {
                self.request_answer(id, DialogKind::Confirm, params, turn);
            }
            "select" if turn.is_running() && parse_choices(params).is_some() => {
                let choices = parse_choices(params).unwrap_or_default();
                self.request_answer(id, DialogKind::Select(choices), params, turn);
            }
            // ACP has no text input, and no client answers between turns.
            "confirm" | "select" | "input" | "editor" => {
                turn.report_unmapped(event);
                turn.write_json(&dismiss_message(id));
            }
            "notify" if params["message"].is_string() => {
                turn.send_notice(params["message"].as_str().unwrap_or_default());
            }
            // Terminal decoration, which expects no answer.
            _ => turn.report_unmapped(event),
        }
    }

    fn request_answer(
        &mut self,
        id: &str,
        dialog: DialogKind,
        params: &Value,
        turn: &mut AdapterTurn,
    ) {
        let mut tool =
            ToolUpdate::new().with_title(params["title"].as_str().unwrap_or("A question"));
        tool = tool.with_status(ToolStatus::Pending);
        if let Some(message) = params["message"].as_str() {
            tool = tool.with_text(message);
        }
        let options = match &dialog {
            DialogKind::Confirm => {
                vec![
                    permission_option("yes", "Yes", "allow_once"),
                    permission_option("no", "No", "reject_once"),
                ]
            }
            DialogKind::Select(choices) => choices
                .iter()
                .zip(0_usize..)
                .map(|(choice, index)| {
                    permission_option(&index.to_string(), choice, option_kind(choice))
                })
                .collect(),
        };
        self.open.insert(id.to_owned(), dialog);
        turn.request_permission(id, id, tool, options);
    }

    pub(super) fn on_answer(
        &mut self,
        id: &str,
        answer: PermissionAnswer<'_>,
        turn: &mut AdapterTurn,
    ) {
        let Some(dialog) = self.open.remove(id) else { return };
        let reply = match (dialog, answer) {
            (DialogKind::Confirm, PermissionAnswer::Selected(chosen)) => {
                Some(json!({"confirmed": chosen == "yes"}))
            }
            (DialogKind::Select(choices), PermissionAnswer::Selected(chosen)) => {
                let index = chosen.parse::<usize>().ok();
                let choice = index.and_then(|index| choices.get(index).cloned());
                choice.map(|choice| json!({"value": choice}))
            }
            (_, PermissionAnswer::Cancelled) => None,
        };
        let status = if reply.is_some() { ToolStatus::Completed } else { ToolStatus::Failed };
        let mut line = dismiss_message(id);
        if let Some(Value::Object(reply)) = reply
            && let Some(line) = line.as_object_mut()
        {
            line.remove("cancelled");
            line.extend(reply);
        }
        turn.write_json(&line);
        turn.update_tool(id, ToolUpdate::new().with_status(status));
    }

    /// Dismisses all dialogs, because no client will answer them.
    pub(super) fn dismiss_all(&mut self, turn: &mut AdapterTurn) {
        for id in std::mem::take(&mut self.open).into_keys() {
            turn.write_json(&dismiss_message(&id));
            turn.withdraw_request(&id);
        }
    }
}

fn dismiss_message(id: &str) -> Value {
    json!({"type": "extension_ui_response", "id": id, "cancelled": true})
}

/// The texts to choose from, if all options are texts.
fn parse_choices(params: &Value) -> Option<Vec<String>> {
    let options = params["options"].as_array().filter(|options| !options.is_empty())?;
    options.iter().map(|option| option.as_str().map(str::to_owned)).collect()
}

fn permission_option(id: &str, name: &str, kind: &'static str) -> PermissionOption {
    PermissionOption { id: id.to_owned(), name: name.to_owned(), kind }
}

/// Guesses the kind of an option from its first word, because pi's options have no kind.
fn option_kind(choice: &str) -> &'static str {
    let word = choice.split(|it: char| !it.is_alphanumeric()).find(|word| !word.is_empty());
    match word.unwrap_or_default().to_lowercase().as_str() {
        "no" | "block" | "deny" | "reject" | "cancel" | "abort" | "never" | "stop" => "reject_once",
        "always" => "allow_always",
        _ => "allow_once",
    }
}
