//! Tests of the items that events become.

use crate::transcript::{
    ItemContent, NoticeLevel, ToolCallItem, ToolStatus, TranscriptFold, TranscriptItem, parts_text,
    test_log::TestLog,
};
use jackfield_events::ReceivedEvent;
use serde_json::{Value, json};

fn fold(events: &[ReceivedEvent]) -> Vec<TranscriptItem> {
    let mut fold = TranscriptFold::default();
    for it in events {
        fold.append(it);
    }
    fold.items().to_vec()
}

fn kind(item: &TranscriptItem) -> &'static str {
    match &item.content {
        ItemContent::Prompt { .. } => "prompt",
        ItemContent::Message { .. } => "message",
        ItemContent::Thought { .. } => "thought",
        ItemContent::ToolCall(_) => "call",
        ItemContent::Plan(_) => "plan",
        ItemContent::Request(_) => "request",
        ItemContent::Notice { .. } => "notice",
        ItemContent::TurnEnd(_) => "end",
    }
}

fn kinds(log: &TestLog) -> String {
    fold(&log.events).iter().map(kind).collect::<Vec<_>>().join(" ")
}

fn call(item: &TranscriptItem) -> &ToolCallItem {
    let ItemContent::ToolCall(call) = &item.content else { panic!("{item:?}") };
    call
}

#[test]
fn chunks_are_joined_until_something_else_comes() {
    let mut log = TestLog::default();
    log.message("a").message("b").thought("why").message("c");
    log.call("1", json!({ "title": "ls" })).message("d");
    assert_eq!(kinds(&log), "message thought message call message");
    assert_eq!(parts_text(fold(&log.events)[0].content.parts()), "ab");
}

#[test]
fn message_with_another_id_is_another_message() {
    let mut log = TestLog::default();
    for id in ["1", "1", "2"] {
        let content = json!({ "type": "text", "text": "x" });
        log.update("agent_message_chunk", json!({ "messageId": id, "content": content }));
    }
    assert_eq!(kinds(&log), "message message");
}

#[test]
fn prompt_that_the_agent_repeats_is_shown_once() {
    let echoes = |chunks: &[&str]| {
        let mut log = TestLog::default();
        log.prompt("Do it");
        for it in chunks {
            log.echo(it);
        }
        log.message("Yes");
        kinds(&log)
    };
    assert_eq!(echoes(&["Do ", "it"]), "prompt message");
    assert_eq!(echoes(&["Do ", "that"]), "prompt prompt message");
    assert_eq!(echoes(&["Do it", "More"]), "prompt prompt message");
}

#[test]
fn updates_are_merged_at_the_place_of_the_call() {
    let mut log = TestLog::default();
    log.prompt("x").call("1", json!({ "title": "ls" })).message("meanwhile");
    log.call_update("1", json!({ "status": "completed", "rawOutput": "a.txt" }));
    log.prompt("again").call("1", json!({ "title": "ls" }));
    assert_eq!(kinds(&log), "prompt call message prompt call");
    let items = fold(&log.events);
    let (first, last) = (call(&items[1]), call(&items[4]));
    assert_eq!((first.status, last.status), (ToolStatus::Done, ToolStatus::Pending));
    assert_eq!(first.output_text(), "a.txt");
    assert_eq!(first.ended_at.unwrap().since(items[1].at), 2000);
    assert_eq!((items[1].seq, items[1].last_seq), (2, 4));
}

#[test]
fn call_without_a_result_is_unfinished_when_the_turn_ends() {
    let mut log = TestLog::default();
    log.prompt("x").call("1", json!({ "status": "in_progress" }));
    log.end(&json!({ "stopReason": "end_turn" }));
    assert_eq!(call(&fold(&log.events)[1]).status, ToolStatus::Unfinished);
}

#[test]
fn call_that_only_its_permission_request_describes_has_that_title() {
    let mut log = TestLog::default();
    log.ask(&json!({ "toolCallId": "1", "title": "rm x", "kind": "delete" }));
    log.call_update("1", json!({ "status": "completed" }));
    let items = fold(&log.events);
    let call = call(&items[1]);
    assert_eq!((&*call.title, &*call.kind, call.status), ("rm x", "delete", ToolStatus::Done));
}

#[test]
fn answer_is_added_to_its_request_with_the_name_of_the_option() {
    let mut log = TestLog::default();
    log.ask(&json!({ "toolCallId": "1", "title": "rm x" })).answer("yes");
    log.event("learned", json!({ "ask": 1, "rule": {} }));
    let items = fold(&log.events);
    let ItemContent::Request(request) = &items[0].content else { panic!("{items:?}") };
    let answer = request.answer.as_ref().unwrap();
    assert_eq!((&*request.title, request.is_always), ("rm x", true));
    assert_eq!(
        (&*answer.by, &*answer.choice, &*answer.option_kind),
        ("zed", "Allow", "allow_once")
    );
    assert_eq!(fold(&log.events[1..2]).iter().map(kind).collect::<Vec<_>>(), ["notice"]);
}

#[test]
fn turn_costs_the_increase_if_the_log_is_known_from_its_beginning() {
    let mut log = TestLog::default();
    log.opened();
    for amount in [0.25, 0.75] {
        let cost = json!({ "amount": amount, "currency": "USD" });
        log.prompt("x").update("usage_update", json!({ "used": 10, "size": 100, "cost": cost }));
        log.end(&json!({ "stopReason": "end_turn", "usage": { "inputTokens": 3 } }));
    }
    let ends = |events: &[ReceivedEvent]| {
        let items = fold(events);
        let ends = items.into_iter().filter_map(|it| match it.content {
            ItemContent::TurnEnd(end) => Some(*end),
            _ => None,
        });
        ends.collect::<Vec<_>>()
    };
    let costs = |events: &[ReceivedEvent]| {
        let costs = ends(events).into_iter().map(|it| it.cost.map(|it| it.amount));
        costs.collect::<Vec<_>>()
    };
    assert_eq!(costs(&log.events), [Some(0.25), Some(0.5)]);
    assert_eq!(costs(&log.events[1..]), [None, Some(0.5)]);
    let first = &ends(&log.events)[0];
    assert_eq!((first.duration_ms, first.tokens.unwrap().input), (Some(2000), Some(3)));
    assert_eq!(first.context.unwrap().tokens, 10);
}

#[test]
fn plan_is_shown_once_per_turn_in_its_last_state() {
    let mut log = TestLog::default();
    log.prompt("x").plan(&[("look", "pending")]).message("Go").plan(&[("look", "completed")]);
    assert_eq!(kinds(&log), "prompt plan message");
    let items = fold(&log.events);
    let ItemContent::Plan(entries) = &items[1].content else { panic!("{items:?}") };
    assert_eq!((&*entries[0].content, &*entries[0].status), ("look", "completed"));
}

#[test]
fn error_of_a_turn_has_its_cause_and_not_its_kind_twice() {
    let detail = |how: &str, answer: Value| {
        let mut log = TestLog::default();
        log.event("ended", json!({ "turn": 1, "how": how, "answer": answer }));
        match fold(&log.events).remove(0).content {
            ItemContent::TurnEnd(end) => end.detail,
            other => panic!("{other:?}"),
        }
    };
    let data = json!({ "details": "no credit" });
    let internal = json!({ "message": "Internal error", "data": data });
    assert_eq!(detail("failed", internal), "Internal error: no credit");
    let lost = json!({ "message": "interrupted: the daemon ended during the turn" });
    assert_eq!(detail("interrupted", lost), "the daemon ended during the turn");
    assert_eq!(detail("stopped", json!({ "stopReason": "max_tokens" })), "max_tokens");
    assert_eq!(detail("failed", json!({ "code": -32800, "message": "cancelled" })), "");
}

#[test]
fn exit_of_the_agent_is_a_warning_with_its_stderr() {
    let mut log = TestLog::default();
    log.event("gone", json!({ "status": "exit status 1", "stderr": "boom" }));
    let items = fold(&log.events);
    let ItemContent::Notice { level, text, detail } = &items[0].content else { panic!() };
    assert_eq!((level, &**detail), (&NoticeLevel::Warning, "boom"));
    assert_eq!(text, "The agent exited: exit status 1");
}

#[test]
fn loading_the_beginning_of_a_message_keeps_its_key() {
    let mut log = TestLog::default();
    log.prompt("x");
    for index in 0..9 {
        log.message(&index.to_string());
    }
    let mut fold = TranscriptFold::default();
    fold.refold(&log.events[7..]);
    let key = fold.items()[0].key;
    for start in [4, 2, 0, 5, 8, 0] {
        fold.refold(&log.events[start..]);
        assert_eq!(fold.items().last().unwrap().key, key, "{start}");
    }
    assert_eq!(parts_text(fold.items()[1].content.parts()), "012345678");
}

#[test]
fn items_that_do_not_change_keep_their_revision() {
    let mut log = TestLog::default();
    log.prompt("x").message("a").call("1", json!({ "rawInput": { "a": 1 } })).message("b");
    let mut fold = TranscriptFold::default();
    fold.refold(&log.events[1..]);
    let before = fold.items().to_vec();
    fold.refold(&log.events);
    assert_eq!(fold.items()[1..], before);
    fold.append(&log.events[3]);
    assert!(fold.items()[3].revision > before.iter().map(|it| it.revision).max().unwrap());
}

#[test]
fn message_grows_until_the_turn_ends_or_something_else_comes() {
    let growing = |log: &TestLog| {
        let mut fold = TranscriptFold::default();
        fold.refold(&log.events);
        fold.growing_item().map(|it| it.0)
    };
    let mut log = TestLog::default();
    log.prompt("x").message("a").message("b");
    assert_eq!(growing(&log), Some(2));
    log.call("1", json!({}));
    assert_eq!(growing(&log), None);
    log.message("c");
    assert_eq!(growing(&log), Some(5));
    log.end(&json!({ "stopReason": "end_turn" }));
    assert_eq!(growing(&log), None);
}
