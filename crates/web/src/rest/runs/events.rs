//! A run as its readers hear it: `start`, what the agent does, `end`. Folded from the run's first
//! fact on, it is the same for everyone, whenever they come.

use super::{
    RunId,
    course::{Course, Outcome, Start, Status},
};
use crate::rest::{agents::PLAIN, error::ApiError, hub::Fact, sse::Writer};
use jackfield_events::{AgentExited, EventBody};
use jackfield_views::{AgentEvent, AgentEvents};
use serde::Serialize;
use utoipa::ToSchema;

/// What one event of a run tells: its name, and its data read as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum RunEvent {
    /// The first one.
    Start(RunStart),
    /// What the agent does.
    Agent(AgentEvent),
    /// Text of an agent that prints bare text.
    Stdout(Chunk),
    /// The last words of an agent that died.
    Stderr(Chunk),
    /// Why it failed; the end follows.
    Error(RunError),
    /// The last one.
    End(RunEnd),
}

/// A run that has begun, or waits.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunStart {
    run_id: String,
    session_id: String,
    #[serde(flatten)]
    start: Start,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Chunk {
    chunk: String,
}

/// What went wrong, and the sentence alone beside it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct RunError {
    message: String,
    error: ApiError,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunEnd {
    /// As the end of a process: 0 is good.
    code: Option<i64>,
    signal: Option<String>,
    status: Status,
    /// The agent's word for why it stopped.
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// Its turn in the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
}

impl RunEvent {
    /// An `error` and the `end` that always follows, of a run that nothing more is known of.
    pub(crate) fn failure(error: &ApiError) -> [RunEvent; 2] {
        let end = RunEnd {
            code: Some(1),
            signal: None,
            status: Status::Failed,
            stop_reason: None,
            run_id: None,
            session_id: None,
            turn: None,
        };
        [RunEvent::error(error), RunEvent::End(end)]
    }

    fn error(error: &ApiError) -> RunEvent {
        RunEvent::Error(RunError { message: error.message.clone(), error: error.clone() })
    }

    /// Sends it under this number.
    pub(crate) fn tell(&self, number: u64, writer: &mut Writer) {
        let id = number.to_string();
        let id = Some(id.as_str());
        match self {
            RunEvent::Start(it) => writer.event(id, Some("start"), it),
            RunEvent::Agent(it) => writer.event(id, Some("agent"), it),
            RunEvent::Stdout(it) => writer.event(id, Some("stdout"), it),
            RunEvent::Stderr(it) => writer.event(id, Some("stderr"), it),
            RunEvent::Error(it) => writer.event(id, Some("error"), it),
            RunEvent::End(it) => writer.event(id, Some("end"), it),
        }
    }
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
        let Some(event) = self.course.step(fact) else { return Vec::new() };
        let mut events = Vec::new();
        if ahead {
            events.push(self.start());
        }
        let plain = self.course.start.stream_format == PLAIN;
        events.extend(self.told.fold(&event).into_iter().filter_map(|it| retold(it, plain)));
        if let EventBody::Gone(AgentExited { stderr, .. }) = &event.body
            && !stderr.is_empty()
        {
            events.push(RunEvent::Stderr(Chunk { chunk: stderr.to_string() }));
        }
        if let (Some(outcome), Some(status)) = (self.course.outcome(), self.course.status()) {
            events.extend(outcome.error.as_ref().map(RunEvent::error));
            events.push(self.end(status, outcome));
        }
        events
    }

    fn start(&self) -> RunEvent {
        let (run_id, session_id) = (self.id.to_string(), self.id.session());
        RunEvent::Start(RunStart { run_id, session_id, start: self.course.start.clone() })
    }

    fn end(&self, status: Status, outcome: &Outcome) -> RunEvent {
        RunEvent::End(RunEnd {
            code: outcome.code,
            signal: outcome.signal.clone(),
            status,
            stop_reason: outcome.stop_reason.clone(),
            run_id: Some(self.id.to_string()),
            session_id: Some(self.id.session()),
            turn: self.course.turn,
        })
    }
}

/// What the agent does; how it failed is told by the end.
fn retold(event: AgentEvent, plain: bool) -> Option<RunEvent> {
    match event {
        AgentEvent::Error { .. } => None,
        AgentEvent::TextDelta { delta } if plain => Some(RunEvent::Stdout(Chunk { chunk: delta })),
        other => Some(RunEvent::Agent(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
        let line = |it: &RunEvent| {
            let it = serde_json::to_value(it).unwrap();
            format!("{}: {}", it["event"].as_str().unwrap(), it["data"])
        };
        events.iter().map(line).collect::<Vec<_>>().join("\n")
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
