//! A run as its readers hear it: `start`, what the agent does, `end`. Folded from the run's first
//! fact on, it is the same for everyone, whenever they come.

use super::{
    RunId,
    course::{Course, Outcome, Status},
};
use crate::{agents::PLAIN, hub::Fact};
use jackfield_views::{AgentEvent, AgentEvents};
use serde::Serialize;
use serde_json::{Value, json};

/// One event, without its number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RunEvent {
    pub(crate) name: &'static str,
    pub(crate) data: Value,
}

/// The fold from a session's facts to the events of one run.
#[derive(Debug)]
pub(crate) struct RunEvents {
    id: RunId,
    course: Course,
    told: AgentEvents,
}

impl RunEvents {
    pub(crate) fn new(id: RunId) -> RunEvents {
        RunEvents { course: Course::new(id.clone()), id, told: AgentEvents::default() }
    }

    /// Nothing more will be heard of it.
    pub(crate) fn is_over(&self) -> bool {
        self.course.outcome().is_some()
    }

    pub(crate) fn fold(&mut self, fact: &Fact) -> Vec<RunEvent> {
        let ahead = self.course.status().is_none();
        let Some(value) = self.course.step(fact) else { return Vec::new() };
        let mut events = Vec::new();
        if ahead {
            events.push(self.start());
        }
        let plain = self.course.start.stream_format == PLAIN;
        events.extend(self.told.fold(&value).into_iter().filter_map(|it| retold(it, plain)));
        let stderr = value["stderr"].as_str().filter(|it| fact.is() == "gone" && !it.is_empty());
        events.extend(stderr.map(|it| RunEvent { name: "stderr", data: json!({ "chunk": it }) }));
        if let (Some(outcome), Some(status)) = (self.course.outcome(), self.course.status()) {
            events.extend(
                outcome.error.as_ref().map(|it| RunEvent { name: "error", data: it.to_event() }),
            );
            events.push(self.end(status, outcome));
        }
        events
    }

    fn start(&self) -> RunEvent {
        let mut data = json!({ "runId": self.id.as_str(), "sessionId": self.id.session() });
        let start = serde_json::to_value(&self.course.start).unwrap_or_default();
        if let (Value::Object(data), Value::Object(start)) = (&mut data, start) {
            data.extend(start);
        }
        RunEvent { name: "start", data }
    }

    fn end(&self, status: Status, outcome: &Outcome) -> RunEvent {
        let data = json!({
            "code": outcome.code, "signal": outcome.signal, "status": status,
            "stopReason": outcome.stop_reason, "runId": self.id.as_str(),
            "sessionId": self.id.session(), "turn": self.course.turn,
        });
        RunEvent { name: "end", data }
    }
}

/// What the agent does; how it failed is told by the end.
fn retold(event: AgentEvent, plain: bool) -> Option<RunEvent> {
    match event {
        AgentEvent::Error { .. } => None,
        AgentEvent::TextDelta { delta } if plain => {
            Some(RunEvent { name: "stdout", data: json!({ "chunk": delta }) })
        }
        other => {
            let data = serde_json::to_value(other).unwrap_or_default();
            Some(RunEvent { name: "agent", data })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "r-abcdefghijkl-aaaaaa";

    /// A turn in which the agent says two words and ends with `last`.
    fn told(format: &str, last: &Value) -> Vec<RunEvent> {
        let start = json!({ "agentId": "fake", "bin": "fake-agent", "streamFormat": format, "cwd": "/srv/p" });
        let meta = json!({ "jackfield": { "run": RUN, "start": start } });
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        let frame =
            json!({ "method": "session/prompt", "params": { "prompt": prompt, "_meta": meta } });
        let said = |text: &str| {
            let content = json!({ "type": "text", "text": text });
            let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
            json!({ "method": "session/update", "params": { "update": update } })
        };
        let mut facts = vec![
            json!({ "seq": 4, "at": 100, "is": "prompted", "turn": 1, "by": "api", "frame": frame }),
            json!({ "seq": 5, "at": 130, "is": "said", "turn": 1, "frame": said("one") }),
            json!({ "seq": 6, "at": 140, "is": "said", "turn": 1, "frame": said("two") }),
        ];
        facts.extend(last.as_array().unwrap().clone());
        let mut events = RunEvents::new(RunId::parse(RUN).unwrap());
        let told = facts.iter().flat_map(|it| events.fold(&Fact::of(it))).collect();
        assert!(events.is_over());
        told
    }

    fn lines(events: &[RunEvent]) -> String {
        let lines: Vec<String> =
            events.iter().map(|it| format!("{}: {}", it.name, it.data)).collect();
        lines.join("\n")
    }

    #[test]
    fn a_turn_is_told_from_start_to_end() {
        let answer = json!({ "stopReason": "end_turn", "usage": { "inputTokens": 9 } });
        let last = json!([{ "seq": 7, "at": 200, "is": "ended", "turn": 1, "how": "stopped", "answer": answer }]);
        insta::assert_snapshot!(lines(&told("acp-json-rpc", &last)));
    }

    #[test]
    fn bare_text_is_told_as_stdout_and_a_death_with_its_last_words() {
        let data = json!({ "jackfield": { "code": "agent_gone", "agent": "fake", "status": "exit status 3", "stderr": "no key" } });
        let error =
            json!({ "code": -31000, "message": "agent `fake` ended: exit status 3", "data": data });
        let last = json!([
            { "seq": 7, "at": 190, "is": "gone", "status": "exit status 3", "stderr": "no key" },
            { "seq": 8, "at": 200, "is": "ended", "turn": 1, "how": "interrupted", "answer": error },
        ]);
        insta::assert_snapshot!(lines(&told("plain", &last)));
    }
}
