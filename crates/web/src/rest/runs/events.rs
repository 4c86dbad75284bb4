//! The events of a run: `start`, the agent events, `end`. They are folded from the first event of the run,
//! so they are the same for every client at any time.

use super::{
    RunId,
    opening::{OpenedSession, opening_events},
    outcome::RunOutcome,
    progress::{RunProgress, RunSettings, RunStatus},
};
use crate::rest::{agents::PLAIN, error::ApiError, streaming::ChunkWriter};
use jackfield_events::{AgentExited, EventBody};
use jackfield_hub_client::EventLine;
use jackfield_views::{AgentEvent, AgentEventView};
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a run: its name, and its data as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum RunEvent {
    /// The first event.
    Start(RunStart),
    /// An agent event.
    Agent(AgentEvent),
    /// Text of an agent that prints plain text.
    Stdout(OutputChunk),
    /// The stderr output of an agent that exited.
    Stderr(OutputChunk),
    /// Why the run failed; `end` follows.
    Error(RunError),
    /// The last event.
    End(RunEnd),
}

/// A run that is running or queued.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunStart {
    run_id: String,
    session_id: String,
    #[serde(flatten)]
    settings: RunSettings,
}

/// A chunk of output.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Chunk)]
pub(crate) struct OutputChunk {
    chunk: String,
}

/// An error, with its message repeated on its own.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct RunError {
    message: String,
    error: ApiError,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunEnd {
    /// Like the exit code of a process: 0 means success.
    code: Option<i64>,
    signal: Option<String>,
    status: RunStatus,
    /// The stop reason of the agent.
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The number of its turn in the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
}

impl RunEvent {
    /// An `error` and the `end` that always follows, for a run without further details.
    pub(crate) fn failure(error: &ApiError) -> [RunEvent; 2] {
        let end = RunEnd {
            code: Some(1),
            signal: None,
            status: RunStatus::Failed,
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

    /// Writes the event with this number.
    pub(crate) fn write_to(&self, number: u64, writer: &mut ChunkWriter) {
        let id = number.to_string();
        let id = Some(id.as_str());
        match self {
            RunEvent::Start(it) => writer.write_event(id, Some("start"), it),
            RunEvent::Agent(it) => writer.write_event(id, Some("agent"), it),
            RunEvent::Stdout(it) => writer.write_event(id, Some("stdout"), it),
            RunEvent::Stderr(it) => writer.write_event(id, Some("stderr"), it),
            RunEvent::Error(it) => writer.write_event(id, Some("error"), it),
            RunEvent::End(it) => writer.write_event(id, Some("end"), it),
        }
    }
}

/// The fold from the events of a session to the events of one run.
#[derive(Debug)]
pub(crate) struct RunEvents {
    id: RunId,
    progress: RunProgress,
    agent_events: AgentEventView,
}

impl RunEvents {
    pub(crate) fn new(id: RunId) -> RunEvents {
        RunEvents {
            progress: RunProgress::new(id.clone()),
            id,
            agent_events: AgentEventView::default(),
        }
    }

    /// Whether the run has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.progress.outcome().is_some()
    }

    pub(crate) fn fold_line(&mut self, line: &EventLine) -> Vec<RunEvent> {
        let is_first = self.progress.status().is_none();
        let Some(event) = self.progress.apply(line) else { return Vec::new() };
        let mut events = Vec::new();
        if is_first {
            events.push(start_event(&self.id, &self.progress.settings));
            let opened = self.progress.opened.as_ref();
            events.extend(opened.into_iter().flat_map(|it| opening_run_events(Some(it))));
        }
        let is_plain = self.progress.settings.stream_format == PLAIN;
        let agent_events = self.agent_events.fold_event(&event);
        events.extend(agent_events.into_iter().filter_map(|it| to_run_event(it, is_plain)));
        if let EventBody::Gone(AgentExited { stderr, .. }) = &event.body
            && !stderr.is_empty()
        {
            events.push(RunEvent::Stderr(OutputChunk { chunk: stderr.to_string() }));
        }
        events.extend(end_events(&self.id, &self.progress));
        events
    }
}

/// The first event of a run.
pub(super) fn start_event(id: &RunId, settings: &RunSettings) -> RunEvent {
    let (run_id, session_id) = (id.to_string(), id.session());
    RunEvent::Start(RunStart { run_id, session_id, settings: settings.clone() })
}

/// The events of opening a session, which follow `start`.
pub(super) fn opening_run_events(
    opened: Option<&OpenedSession>,
) -> impl Iterator<Item = RunEvent> + use<> {
    opening_events(opened).into_iter().map(RunEvent::Agent)
}

/// The last events of a run; none if it has not ended.
pub(super) fn end_events(id: &RunId, progress: &RunProgress) -> Vec<RunEvent> {
    let (Some(outcome), Some(status)) = (progress.outcome(), progress.status()) else {
        return Vec::new();
    };
    let end = run_end(id, status, outcome, progress.turn);
    outcome.error.as_ref().map(RunEvent::error).into_iter().chain([end]).collect()
}

fn run_end(id: &RunId, status: RunStatus, outcome: &RunOutcome, turn: Option<u64>) -> RunEvent {
    RunEvent::End(RunEnd {
        code: outcome.code,
        signal: outcome.signal.clone(),
        status,
        stop_reason: outcome.stop_reason.clone(),
        run_id: Some(id.to_string()),
        session_id: Some(id.session()),
        turn,
    })
}

/// Converts an agent event. An error is left out, because the end of the run reports it.
fn to_run_event(event: AgentEvent, is_plain: bool) -> Option<RunEvent> {
    match event {
        AgentEvent::Error { .. } => None,
        AgentEvent::TextDelta { delta } if is_plain => {
            Some(RunEvent::Stdout(OutputChunk { chunk: delta }))
        }
        AgentEvent::Status(status) if is_plain && status.label == "stderr" => {
            Some(RunEvent::Stderr(OutputChunk { chunk: status.detail.unwrap_or_default() }))
        }
        other => Some(RunEvent::Agent(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::hub_client::event_line;
    use serde_json::{Value, json};

    const RUN: &str = "r-abcdefghijkl-aaaaaa";

    /// The events of a turn with two chunks of text that ends with `last`.
    fn run_events(format: &str, last: &Value) -> Vec<RunEvent> {
        let start = json!({ "agentId": "fake", "bin": "fake-agent", "streamFormat": format, "cwd": "/srv/p" });
        let meta = json!({ "jackfield": { "run": RUN, "start": start } });
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        let frame =
            json!({ "method": "session/prompt", "params": { "prompt": prompt, "_meta": meta } });
        let update = |text: &str| {
            let content = json!({ "type": "text", "text": text });
            let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
            json!({ "method": "session/update", "params": { "update": update } })
        };
        let mut log = vec![
            json!({ "seq": 4, "at": 100, "is": "prompted", "turn": 1, "by": "api", "frame": frame }),
            json!({ "seq": 5, "at": 130, "is": "said", "turn": 1, "frame": update("one") }),
            json!({ "seq": 6, "at": 140, "is": "said", "turn": 1, "frame": update("two") }),
        ];
        log.extend(last.as_array().unwrap().clone());
        let mut events = RunEvents::new(RunId::parse(RUN).unwrap());
        let run_events = log.iter().flat_map(|it| events.fold_line(&event_line(it))).collect();
        assert!(events.has_ended());
        run_events
    }

    fn lines(events: &[RunEvent]) -> String {
        let line = |it: &RunEvent| {
            let it = serde_json::to_value(it).unwrap();
            format!("{}: {}", it["event"].as_str().unwrap(), it["data"])
        };
        events.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn turn_has_events_from_start_to_end() {
        let answer = json!({ "stopReason": "end_turn", "usage": { "inputTokens": 9 } });
        let last = json!([{ "seq": 7, "at": 200, "is": "ended", "turn": 1, "how": "stopped", "answer": answer }]);
        insta::assert_snapshot!(lines(&run_events("acp-json-rpc", &last)));
    }

    #[test]
    fn plain_text_is_stdout_and_an_exit_has_its_stderr() {
        let data = json!({ "jackfield": { "code": "agent_gone", "agent": "fake", "status": "exit status 3", "stderr": "no key" } });
        let error =
            json!({ "code": -31000, "message": "agent `fake` ended: exit status 3", "data": data });
        let last = json!([
            { "seq": 7, "at": 190, "is": "gone", "status": "exit status 3", "stderr": "no key" },
            { "seq": 8, "at": 200, "is": "ended", "turn": 1, "how": "interrupted", "answer": error },
        ]);
        insta::assert_snapshot!(lines(&run_events("plain", &last)));
    }
}
