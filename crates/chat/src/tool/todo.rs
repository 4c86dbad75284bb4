//! `todo`: the plan, always as a whole.

use super::{Grant, Job, Outcome, Work, args::Args};
use agent_client_protocol::v1::schema::{PlanEntry, PlanEntryPriority, PlanEntryStatus};
use serde_json::Value;

pub(super) fn prepare(args: &Args) -> Result<Job<Work>, String> {
    let list = args.list("todos")?;
    let entries: Option<Vec<PlanEntry>> = list.iter().map(entry).collect();
    let entries = entries.ok_or_else(|| args.wrong("todos", "has an entry without a `content`"))?;
    Ok(Job {
        input: args.input(),
        title: "Plan".to_owned(),
        kind: args.tool().kind,
        locations: Vec::new(),
        content: Vec::new(),
        grant: Grant::Free,
        work: Work::Todo(entries),
    })
}

pub(super) fn run(entries: Vec<PlanEntry>) -> Outcome {
    let count = |status| entries.iter().filter(|it| it.status == status).count();
    let (done, doing) = (count(PlanEntryStatus::Completed), count(PlanEntryStatus::InProgress));
    let all = entries.len();
    let text = format!("The plan is noted: {done} of {all} done, {doing} in progress.");
    Outcome { text, plan: Some(entries), ..Outcome::default() }
}

fn entry(value: &Value) -> Option<PlanEntry> {
    let word = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let content = match value {
        Value::String(text) => text.as_str(),
        _ => ["content", "text", "title", "task", "step", "description"]
            .iter()
            .map(|it| word(it))
            .find(|it| !it.is_empty())?,
    };
    let status = match word("status").to_ascii_lowercase().replace(['-', ' '], "_").as_str() {
        "completed" | "complete" | "done" | "cancelled" => PlanEntryStatus::Completed,
        "in_progress" | "active" | "doing" => PlanEntryStatus::InProgress,
        _ => PlanEntryStatus::Pending,
    };
    let priority = match word("priority").to_ascii_lowercase().as_str() {
        "high" => PlanEntryPriority::High,
        "low" => PlanEntryPriority::Low,
        _ => PlanEntryPriority::Medium,
    };
    Some(PlanEntry::new(content, priority, status))
}

#[cfg(test)]
mod tests {
    use crate::tool::{Offers, world::in_world};
    use agent_client_protocol::v1::schema::{PlanEntry, PlanEntryPriority, PlanEntryStatus};
    use serde_json::json;

    #[tokio::test]
    async fn the_whole_list_becomes_the_plan() {
        in_world(Offers::default(), async |world| {
            let outcome = world
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
            let wrong = world.call("todo", json!({ "todos": [{ "status": "done" }] })).await;
            assert!(wrong.failed && wrong.text.contains("without a `content`"));
        })
        .await;
    }
}
