//! `codex exec --json`: one program a turn, whole items, no questions.

use super::fault;
use super::item::{self, Meaning};
use super::tokens::Tokens;
use crate::{Dialect, Failure, Life, Prompt, Said, Start, Stop, Tool, Turn};
use jackfield_agents::Exit;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Exec {
    /// Items are numbered from zero in each turn; with the turn's number they are the session's own.
    turns: u32,
    cwd: String,
    thread: Option<String>,
    /// What the conversation had used when the turn began; unknown if it is older than we are.
    base: Option<Tokens>,
    messages: BTreeMap<String, Said>,
    tools: BTreeMap<String, Tool>,
    /// An error that may be the turn's end: `turn.failed` follows, or nothing.
    error: Option<String>,
}

impl Dialect for Exec {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, start: &Start<'_>, _turn: &mut Turn) {
        if start.native.is_none() {
            self.base = Some(Tokens::default());
        } else if start.native != self.thread.as_deref() {
            self.base = None;
        }
        self.thread = start.native.map(str::to_owned);
        start.cwd.clone_into(&mut self.cwd);
    }

    fn prompt(&mut self, _prompt: &Prompt, _turn: &mut Turn) {
        self.turns += 1;
        self.messages.clear();
        self.tools.clear();
        self.error = None;
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(event) = turn.object(line) else { return };
        let message = |holder: &Value| holder["message"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "thread.started" => self.on_thread(&event, turn),
            // Nothing is told yet.
            "turn.started" => {}
            "item.started" | "item.updated" => self.on_item(&event, false, turn),
            "item.completed" => self.on_item(&event, true, turn),
            "turn.completed" => self.on_completed(&event, turn),
            "turn.failed" => {
                let told = message(&event["error"]);
                let error = self.error.take().filter(|_| told.is_empty()).unwrap_or(told);
                turn.fail(fault::from_message(&error));
            }
            "error" if fault::is_retry(&message(&event)) => turn.notice(&message(&event)),
            "error" => self.error = Some(message(&event)),
            _ => turn.unmapped(&event),
        }
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        if let Some(error) = self.error.take() {
            turn.fail(fault::from_message(&error));
        } else if turn.is_running() {
            let exit = fault::without_remarks(exit);
            turn.fail(Failure::from_exit(&exit, &turn.noise, turn.has_spoken()));
        }
    }
}

impl Exec {
    fn on_thread(&mut self, event: &Value, turn: &mut Turn) {
        let Some(id) = event["thread_id"].as_str() else { return turn.unmapped(event) };
        if self.thread.as_deref().is_some_and(|thread| thread != id) {
            // Another conversation than the one that was asked for counts from zero.
            self.base = Some(Tokens::default());
        }
        self.thread = Some(id.to_owned());
        turn.native(id);
    }

    fn on_item(&mut self, event: &Value, done: bool, turn: &mut Turn) {
        let item = &event["item"];
        let id = format!("{}.{}", self.turns, item["id"].as_str().unwrap_or_default());
        match item::read(item, done, &self.cwd) {
            Meaning::Text(text) => {
                turn.text(&id, self.messages.entry(id.clone()).or_default().whole(&text));
            }
            Meaning::Thought(text) => {
                turn.thought(&id, self.messages.entry(id.clone()).or_default().whole(&text));
            }
            Meaning::Tool(tool) => {
                let told = self.tools.insert(id.clone(), tool.clone());
                turn.tool(&id, item::news(&told.unwrap_or_default(), tool));
            }
            Meaning::Plan(entries) => turn.plan(&entries),
            Meaning::Notice(text) => turn.notice(&text),
            Meaning::Echo | Meaning::Unknown => turn.unmapped(event),
        }
    }

    fn on_completed(&mut self, event: &Value, turn: &mut Turn) {
        if let Some(error) = self.error.take() {
            // It was not the end after all.
            turn.notice(&error);
        }
        if event["usage"].is_object() {
            let total = Tokens::read(&event["usage"]);
            // What a failed turn used is never told; it counts here, so that the sum is right.
            if let Some(base) = self.base {
                turn.usage(total.since(base).usage());
            }
            self.base = Some(total);
        }
        turn.done(Stop::EndTurn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::turn::Effect;
    use crate::{Cause, Usage};
    use serde_json::json;

    fn start(native: Option<&str>) -> Start<'_> {
        Start { cwd: "/w", native, model: None, reasoning: None, mode: None, mcp: &[] }
    }

    /// One turn: these events, then a good end.
    fn run(exec: &mut Exec, native: Option<&str>, events: &[Value]) -> Turn {
        let mut turn = Turn::default();
        turn.begin();
        exec.open(&start(native), &mut turn);
        exec.prompt(&Prompt::default(), &mut turn);
        for event in events {
            exec.line(&event.to_string(), &mut turn);
        }
        exec.end(&Exit { code: Some(0), ..Exit::default() }, &mut turn);
        turn
    }

    fn completed(input: u64, output: u64) -> Value {
        json!({"type": "turn.completed", "usage": {"input_tokens": input, "output_tokens": output}})
    }

    fn thread(id: &str) -> Value {
        json!({"type": "thread.started", "thread_id": id})
    }

    fn counts(turn: &Turn) -> Option<(u64, u64)> {
        turn.usage.map(|Usage { input, output, .. }| (input, output))
    }

    #[test]
    fn a_turn_has_used_the_difference() {
        let mut exec = Exec::default();
        let first = run(&mut exec, None, &[thread("t"), completed(120, 5)]);
        let second = run(&mut exec, Some("t"), &[thread("t"), completed(360, 15)]);
        let other = run(&mut exec, Some("t"), &[thread("u"), completed(100, 1)]);
        assert_eq!(
            [counts(&first), counts(&second), counts(&other)],
            [Some((120, 5)), Some((240, 10)), Some((100, 1))]
        );
    }

    #[test]
    fn what_an_older_conversation_had_used_is_not_guessed() {
        let mut exec = Exec::default();
        let first = run(&mut exec, Some("t"), &[thread("t"), completed(900, 50)]);
        let second = run(&mut exec, Some("t"), &[thread("t"), completed(1000, 60)]);
        assert_eq!([counts(&first), counts(&second)], [None, Some((100, 10))]);
    }

    #[test]
    fn items_of_two_turns_are_told_apart() {
        let mut exec = Exec::default();
        let item = json!({"type": "item.completed", "item":
            {"id": "item_0", "type": "command_execution", "command": "ls", "status": "completed"}});
        let ids: Vec<Value> = (0..2)
            .map(|_| {
                let turn = run(&mut exec, None, &[item.clone(), completed(1, 1)]);
                let Effect::Update(update) = &turn.effects[0] else { panic!("no update") };
                update["toolCallId"].clone()
            })
            .collect();
        assert_eq!(ids, ["1.item_0", "2.item_0"]);
    }

    #[test]
    fn an_error_without_a_failed_turn_is_the_reason() {
        let error = json!({"type": "error", "message": "unexpected status 429 Too Many Requests"});
        let turn = run(&mut Exec::default(), None, &[error]);
        let Some(Outcome::Failed(failure)) = &turn.outcome else { panic!("{:?}", turn.outcome) };
        assert_eq!((failure.cause, failure.status), (Cause::RateLimited, Some(429)));
    }

    #[test]
    fn an_error_that_the_turn_survives_is_a_notice() {
        let error = json!({"type": "error", "message": "a hook failed"});
        let turn = run(&mut Exec::default(), None, &[error, completed(1, 1)]);
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::EndTurn)));
        assert!(matches!(&turn.effects[0], Effect::Update(it)
            if it["_meta"]["jackfield"]["notice"] == "a hook failed"));
    }
}
