//! Converts to-do lists, written as a whole or task by task, into a plan.

use super::tool_action::ToolAction;
use crate::known_tools::first_text as text;
use crate::{AdapterTurn, PlanEntry};
use serde_json::Value;

/// The tasks of the session, in the order of their creation.
#[derive(Debug, Default)]
pub(super) struct TaskList {
    tasks: Vec<(String, PlanEntry)>,
}

impl TaskList {
    /// Applies a successful tool call that changes the list or one task.
    pub(super) fn apply_call(
        &mut self,
        action: ToolAction,
        input: &Value,
        answer: &str,
        detail: &Value,
        turn: &mut AdapterTurn,
    ) {
        match action {
            ToolAction::NewTask => {
                let reported = detail["task"]["id"].as_str().map(str::to_owned);
                let next = || (self.tasks.len() + 1).to_string();
                let id = reported.or_else(|| find_task_number(answer)).unwrap_or_else(next);
                self.tasks.push((id, parse_entry(input)));
            }
            ToolAction::ChangeTask => self.update_task(input),
            ToolAction::Todos => {
                let todos = input["todos"].as_array().map(Vec::as_slice).unwrap_or_default();
                self.tasks = todos.iter().map(|todo| (String::new(), parse_entry(todo))).collect();
            }
            _ => return,
        }
        let entries: Vec<PlanEntry> = self.tasks.iter().map(|(_, entry)| entry.clone()).collect();
        turn.send_plan(&entries);
    }

    fn update_task(&mut self, input: &Value) {
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

fn parse_entry(todo: &Value) -> PlanEntry {
    let content = text(todo, &["content", "subject", "description"]).unwrap_or_default();
    let priority = match todo["priority"].as_str() {
        Some("high") => "high",
        Some("low") => "low",
        _ => "medium",
    };
    PlanEntry { content: content.to_owned(), status: status(todo), priority }
}

fn status(todo: &Value) -> &'static str {
    match todo["status"].as_str() {
        Some("completed") => "completed",
        Some("in_progress" | "in-progress") => "in_progress",
        _ => "pending",
    }
}

/// Reads the number from `Task #3 created successfully: …`.
fn find_task_number(answer: &str) -> Option<String> {
    let (_, rest) = answer.split_once('#')?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!number.is_empty()).then_some(number)
}
