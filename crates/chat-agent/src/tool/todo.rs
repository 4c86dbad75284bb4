//! The tool `todo`: replaces the plan.

use super::{PreparedCall, RequiredPermission, ToolOutcome, ToolWork, arguments::ToolArguments};
use agent_client_protocol::v1::schema::{PlanEntry, PlanEntryPriority, PlanEntryStatus};
use serde_json::Value;

pub(super) fn prepare(args: &ToolArguments) -> Result<PreparedCall<ToolWork>, String> {
    let list = args.required_list("todos")?;
    let entries: Option<Vec<PlanEntry>> = list.iter().map(parse_entry).collect();
    let entries = entries
        .ok_or_else(|| args.invalid_argument("todos", "has an entry without a `content`"))?;
    Ok(PreparedCall {
        input: args.to_input(),
        title: "Plan".to_owned(),
        kind: args.tool().kind,
        locations: Vec::new(),
        content: Vec::new(),
        permission: RequiredPermission::None,
        work: ToolWork::Todo(entries),
    })
}

pub(super) fn run(entries: Vec<PlanEntry>) -> ToolOutcome {
    let count = |status| entries.iter().filter(|it| it.status == status).count();
    let completed = count(PlanEntryStatus::Completed);
    let in_progress = count(PlanEntryStatus::InProgress);
    let all = entries.len();
    let text = format!("The plan is noted: {completed} of {all} done, {in_progress} in progress.");
    ToolOutcome { text, plan: Some(entries), ..ToolOutcome::default() }
}

/// Accepts the variants of an entry that models write.
fn parse_entry(value: &Value) -> Option<PlanEntry> {
    let member = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let content = match value {
        Value::String(text) => text.as_str(),
        _ => ["content", "text", "title", "task", "step", "description"]
            .iter()
            .map(|it| member(it))
            .find(|it| !it.is_empty())?,
    };
    let status = match member("status").to_ascii_lowercase().replace(['-', ' '], "_").as_str() {
        "completed" | "complete" | "done" | "cancelled" => PlanEntryStatus::Completed,
        "in_progress" | "active" | "doing" => PlanEntryStatus::InProgress,
        _ => PlanEntryStatus::Pending,
    };
    let priority = match member("priority").to_ascii_lowercase().as_str() {
        "high" => PlanEntryPriority::High,
        "low" => PlanEntryPriority::Low,
        _ => PlanEntryPriority::Medium,
    };
    Some(PlanEntry::new(content, priority, status))
}

#[cfg(test)]
mod tests {
    use crate::tool::{IoCapabilities, test_session::with_test_session};
    use agent_client_protocol::v1::schema::{PlanEntry, PlanEntryPriority, PlanEntryStatus};
    use serde_json::json;

    #[tokio::test]
    async fn todo_list_becomes_the_plan() {
        with_test_session(IoCapabilities::default(), async |session| {
            let outcome = session
                .call(
                    "todo",
                    json!({ "todos": [
                            { "content": "a", "status": "completed", "priority": "high" },
                            { "content": "b", "status": "in-progress" },
                            "c",
                        ] }),
                )
                .await;
            assert_eq!(outcome.text, "The plan is noted: 1 of 3 done, 1 in progress.");
            let (medium, high) = (PlanEntryPriority::Medium, PlanEntryPriority::High);
            let plan = vec![
                PlanEntry::new("a", high, PlanEntryStatus::Completed),
                PlanEntry::new("b", medium.clone(), PlanEntryStatus::InProgress),
                PlanEntry::new("c", medium, PlanEntryStatus::Pending),
            ];
            assert_eq!(outcome.plan, Some(plan));
            let invalid = session.call("todo", json!({ "todos": [{ "status": "done" }] })).await;
            assert!(invalid.is_error && invalid.text.contains("without a `content`"));
        })
        .await;
    }
}
