//! Lists of things to do, written whole or task by task, as a plan.

use super::show::Deed;
use crate::kinds::text_of as text;
use crate::{Entry, Turn};
use serde_json::Value;

/// The tasks of the session, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Plan {
    tasks: Vec<(String, Entry)>,
}

impl Plan {
    /// A tool call about the list or one task was carried out.
    pub(super) fn change(
        &mut self,
        deed: Deed,
        input: &Value,
        answer: &str,
        detail: &Value,
        turn: &mut Turn,
    ) {
        match deed {
            Deed::NewTask => {
                let told = detail["task"]["id"].as_str().map(str::to_owned);
                let next = || (self.tasks.len() + 1).to_string();
                let id = told.or_else(|| number_in(answer)).unwrap_or_else(next);
                self.tasks.push((id, entry(input)));
            }
            Deed::ChangeTask => self.update(input),
            Deed::Todos => {
                let todos = input["todos"].as_array().map(Vec::as_slice).unwrap_or_default();
                self.tasks = todos.iter().map(|todo| (String::new(), entry(todo))).collect();
            }
            _ => return,
        }
        let entries: Vec<Entry> = self.tasks.iter().map(|(_, entry)| entry.clone()).collect();
        turn.plan(&entries);
    }

    fn update(&mut self, input: &Value) {
        let number = input["taskId"].as_u64().map(|id| id.to_string());
        let id = input["taskId"].as_str().map(str::to_owned).or(number).unwrap_or_default();
        if input["status"] == "deleted" {
            self.tasks.retain(|(it, _)| *it != id);
            return;
        }
        if let Some((_, task)) = self.tasks.iter_mut().find(|(it, _)| *it == id) {
            if input["status"].is_string() {
                task.status = status(input);
            }
            if let Some(subject) = text(input, &["subject"]) {
                subject.clone_into(&mut task.content);
            }
        }
    }
}

fn entry(todo: &Value) -> Entry {
    let content = text(todo, &["content", "subject", "description"]).unwrap_or_default();
    let priority = match todo["priority"].as_str() {
        Some("high") => "high",
        Some("low") => "low",
        _ => "medium",
    };
    Entry { content: content.to_owned(), status: status(todo), priority }
}

fn status(todo: &Value) -> &'static str {
    match todo["status"].as_str() {
        Some("completed") => "completed",
        Some("in_progress" | "in-progress") => "in_progress",
        _ => "pending",
    }
}

/// `Task #3 created successfully: …`
fn number_in(answer: &str) -> Option<String> {
    let (_, rest) = answer.split_once('#')?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!number.is_empty()).then_some(number)
}
