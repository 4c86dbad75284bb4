//! The course of a run as its session's log tells it, from the first fact to the last. Nothing else
//! is kept of a run, so it is found again wherever the log is.

use super::RunId;
use crate::rest::{
    error::{ApiError, Code},
    hub::Fact,
};
use jackfield_events::{EventBody, EventKind, ReceivedEvent, Time, TurnOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It waits behind another turn, or for its agent to wake.
    Queued,
    Running,
    Succeeded,
    Failed,
    Canceled,
}

/// What was chosen when it was made; it travels with the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Start {
    #[schema(required)]
    pub(crate) agent_id: String,
    /// The agent's program.
    #[schema(required)]
    pub(crate) bin: String,
    /// What it speaks.
    #[schema(required)]
    pub(crate) stream_format: String,
    pub(crate) project_id: Option<String>,
    #[schema(required)]
    pub(crate) cwd: String,
    pub(crate) model: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) mode: Option<String>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Outcome {
    /// The agent's word for why it stopped.
    pub(crate) stop_reason: Option<String>,
    pub(crate) error: Option<ApiError>,
    /// As the end of a process: 0 is good.
    pub(crate) code: Option<i64>,
    pub(crate) signal: Option<String>,
}

/// A run, as far as the facts have come.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    id: RunId,
    stage: Stage,
    pub(crate) start: Start,
    /// The number of its first fact.
    pub(crate) first: u64,
    /// Unix milliseconds.
    pub(crate) created_at: Option<u64>,
    pub(crate) started_at: Option<u64>,
    pub(crate) ended_at: Option<u64>,
    pub(crate) turn: Option<u64>,
}

#[derive(Debug, Clone)]
enum Stage {
    /// Its prompt has not come by.
    Ahead,
    /// Its prompt waits under this number.
    Waits(u64),
    Runs,
    Over(Status, Box<Outcome>),
}

impl Course {
    pub(crate) fn new(id: RunId) -> Course {
        Course {
            id,
            stage: Stage::Ahead,
            start: Start::default(),
            first: 0,
            created_at: None,
            started_at: None,
            ended_at: None,
            turn: None,
        }
    }

    /// `None` before its first fact.
    pub(crate) fn status(&self) -> Option<Status> {
        match &self.stage {
            Stage::Ahead => None,
            Stage::Waits(_) => Some(Status::Queued),
            Stage::Runs => Some(Status::Running),
            Stage::Over(status, _) => Some(*status),
        }
    }

    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.stage {
            Stage::Over(_, outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The number of its prompt, while it waits.
    pub(crate) fn waits(&self) -> Option<u64> {
        if let Stage::Waits(prompt) = self.stage { Some(prompt) } else { None }
    }

    /// Takes the next fact of the session; returns it if it is about this run.
    pub(crate) fn step(&mut self, fact: &Fact) -> Option<ReceivedEvent> {
        match self.stage {
            Stage::Ahead => self.begin(fact),
            Stage::Waits(prompt) => self.wait(prompt, fact),
            Stage::Runs => self.go_on(fact),
            Stage::Over(..) => None,
        }
    }

    fn begin(&mut self, fact: &Fact) -> Option<ReceivedEvent> {
        let is_prompt = matches!(fact.kind(), Some(EventKind::Queued | EventKind::Prompted));
        if !is_prompt || !fact.mentions(self.id.as_str()) {
            return None;
        }
        let event = fact.event()?;
        let ours = prompt_frame(&event)?.pointer("/params/_meta/jackfield")?;
        if ours["run"] != self.id.as_str() {
            return None;
        }
        self.start = serde_json::from_value(ours["start"].clone()).unwrap_or_default();
        self.first = fact.seq;
        self.created_at = Some(event.at.0);
        match &event.body {
            EventBody::Queued(queued) => self.stage = Stage::Waits(queued.prompt),
            EventBody::Prompted(started) => self.run(started.turn, event.at),
            _ => return None,
        }
        Some(event)
    }

    fn run(&mut self, turn: u64, at: Time) {
        self.stage = Stage::Runs;
        self.turn = Some(turn);
        self.started_at = Some(at.0);
    }

    /// Another turn may run meanwhile; its events are not about this run.
    fn wait(&mut self, prompt: u64, fact: &Fact) -> Option<ReceivedEvent> {
        let event = match fact.kind()? {
            EventKind::Bound | EventKind::Prompted | EventKind::Withdrawn => fact.event()?,
            _ => return None,
        };
        match &event.body {
            EventBody::Bound(_) => {}
            EventBody::Prompted(started) if started.prompt == Some(prompt) => {
                self.run(started.turn, event.at);
            }
            EventBody::Withdrawn(withdrawn) if withdrawn.prompt == prompt => {
                self.end(withdrawn_outcome(&withdrawn.why), event.at);
            }
            _ => return None,
        }
        Some(event)
    }

    fn go_on(&mut self, fact: &Fact) -> Option<ReceivedEvent> {
        if matches!(fact.kind()?, EventKind::Queued | EventKind::Withdrawn) {
            return None;
        }
        let event = fact.event()?;
        if event.body.turn().is_some_and(|it| Some(it) != self.turn) {
            return None;
        }
        if let EventBody::Ended(ended) = &event.body {
            self.end(ended_outcome(&ended.outcome), event.at);
        }
        Some(event)
    }

    fn end(&mut self, (status, outcome): (Status, Outcome), at: Time) {
        self.ended_at = Some(at.0);
        self.stage = Stage::Over(status, Box::new(outcome));
    }
}

/// The run that a prompt was made for.
pub(crate) fn run_of(event: &ReceivedEvent) -> Option<RunId> {
    RunId::parse(prompt_frame(event)?.pointer("/params/_meta/jackfield/run")?.as_str()?)
}

fn prompt_frame(event: &ReceivedEvent) -> Option<&Value> {
    match &event.body {
        EventBody::Queued(queued) => Some(&queued.frame),
        EventBody::Prompted(started) => Some(&started.frame),
        _ => None,
    }
}

/// Somebody took it out of the queue, or it could not be served.
fn withdrawn_outcome(why: &str) -> (Status, Outcome) {
    let by_somebody = ["the session was cancelled", "its client withdrew it"].contains(&why)
        || why.starts_with("withdrawn by ");
    if by_somebody {
        let stop_reason = Some(CANCELLED.to_owned());
        return (Status::Canceled, Outcome { stop_reason, ..Outcome::default() });
    }
    let error = ApiError::new(Code::AgentUnavailable, why);
    (Status::Failed, Outcome { error: Some(error), code: Some(1), ..Outcome::default() })
}

const CANCELLED: &str = "cancelled";

fn ended_outcome(outcome: &TurnOutcome<Value>) -> (Status, Outcome) {
    let answer = match outcome {
        TurnOutcome::Stopped(answer) => answer,
        TurnOutcome::Failed(error) | TurnOutcome::Interrupted(error) => {
            let (code, signal) = exit(error);
            let error = Some(ApiError::of_answer(error));
            return (Status::Failed, Outcome { error, code, signal, ..Outcome::default() });
        }
    };
    let reason = answer["stopReason"].as_str().unwrap_or_default();
    let stop_reason = Some(reason.to_owned());
    match reason {
        "end_turn" => {
            let code = Some(0);
            (Status::Succeeded, Outcome { stop_reason, code, ..Outcome::default() })
        }
        CANCELLED => (Status::Canceled, Outcome { stop_reason, ..Outcome::default() }),
        // It had not finished: nobody should take this for an answer.
        other => {
            let message = format!("the agent stopped before it was done: {other}");
            let error = Some(ApiError::new(Code::AgentExecutionFailed, message));
            (Status::Failed, Outcome { stop_reason, error, code: Some(1), signal: None })
        }
    }
}

/// How the agent's process ended, if that is what ended the turn: `exit status 3`, `signal 9 (KILL)`.
fn exit(error: &Value) -> (Option<i64>, Option<String>) {
    let status =
        error.pointer("/data/jackfield/status").and_then(Value::as_str).unwrap_or_default();
    let signal = status.strip_prefix("signal ").map(|it| {
        let name = it.split_once('(').and_then(|(_, name)| name.strip_suffix(')'));
        name.map_or_else(|| it.to_owned(), |name| format!("SIG{name}"))
    });
    let code = status.strip_prefix("exit status ").and_then(|it| it.parse().ok());
    (if signal.is_some() { None } else { code.or(Some(1)) }, signal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn id() -> RunId {
        RunId::parse("r-abcdefghijkl-aaaaaa").unwrap()
    }

    fn prompt(seq: u64, is: &str, run: &str, more: &Value) -> Fact {
        let meta = json!({ "jackfield": { "run": run, "start": { "agentId": "fake" } } });
        let mut fact = json!({
            "seq": seq, "at": seq * 10, "is": is, "by": "api",
            "frame": { "method": "session/prompt", "params": { "prompt": [], "_meta": meta } },
        });
        for (name, value) in more.as_object().unwrap() {
            fact[name] = value.clone();
        }
        Fact::of(&fact)
    }

    fn fact(seq: u64, is: &str, more: &Value) -> Fact {
        let mut fact = json!({ "seq": seq, "at": seq * 10, "is": is, "frame": {}, "answer": {} });
        for (name, value) in more.as_object().unwrap() {
            fact[name] = value.clone();
        }
        Fact::of(&fact)
    }

    fn ended_with(answer: &Value, how: &str) -> Course {
        let mut course = Course::new(id());
        course.step(&prompt(1, "prompted", id().as_str(), &json!({ "turn": 1 })));
        course.step(&fact(2, "ended", &json!({ "turn": 1, "how": how, "answer": answer })));
        course
    }

    #[test]
    fn a_run_that_waits_is_not_told_what_another_turn_does() {
        let mut course = Course::new(id());
        assert!(
            course
                .step(&prompt(1, "prompted", "r-abcdefghijkl-bbbbbb", &json!({ "turn": 1 })))
                .is_none()
        );
        assert!(
            course.step(&prompt(2, "queued", id().as_str(), &json!({ "prompt": 4 }))).is_some()
        );
        assert_eq!((course.status(), course.first), (Some(Status::Queued), 2));
        assert_eq!(course.start.agent_id, "fake");
        assert!(course.step(&fact(3, "said", &json!({ "turn": 1 }))).is_none());
        assert!(course.step(&fact(4, "asked", &json!({ "ask": 1 }))).is_none());
        assert!(course.step(&fact(5, "ended", &json!({ "turn": 1, "how": "stopped" }))).is_none());
        assert!(
            course
                .step(&prompt(6, "prompted", id().as_str(), &json!({ "turn": 2, "prompt": 4 })))
                .is_some()
        );
        assert_eq!((course.status(), course.turn), (Some(Status::Running), Some(2)));
        assert!(course.step(&fact(7, "said", &json!({ "turn": 1, "late": true }))).is_none());
        assert!(course.step(&fact(8, "asked", &json!({ "ask": 2 }))).is_some());
        let answer = json!({ "stopReason": "end_turn" });
        let end = json!({ "turn": 2, "how": "stopped", "answer": answer });
        assert!(course.step(&fact(9, "ended", &end)).is_some());
        assert_eq!((course.status(), course.ended_at), (Some(Status::Succeeded), Some(90)));
        assert!(course.step(&fact(10, "said", &json!({ "turn": 2, "late": true }))).is_none());
    }

    #[test]
    fn a_prompt_that_is_withdrawn_was_canceled_or_could_not_be_served() {
        for (why, status) in [
            ("its client withdrew it", Status::Canceled),
            ("withdrawn by jackfield-queue (c-2)", Status::Canceled),
            ("agent `x` could not be started: gone", Status::Failed),
        ] {
            let mut course = Course::new(id());
            course.step(&prompt(1, "queued", id().as_str(), &json!({ "prompt": 1 })));
            course.step(&fact(2, "withdrawn", &json!({ "prompt": 1, "why": why })));
            assert_eq!(course.status(), Some(status), "{why}");
        }
    }

    #[test]
    fn an_outcome_says_how_the_agent_ended() {
        let course = ended_with(&json!({ "stopReason": "cancelled" }), "stopped");
        assert_eq!(course.status(), Some(Status::Canceled));
        let course = ended_with(&json!({ "stopReason": "max_tokens" }), "stopped");
        assert_eq!(course.status(), Some(Status::Failed));
        assert!(course.outcome().unwrap().error.as_ref().unwrap().message.contains("max_tokens"));
        let gone = |status: &str| {
            let data = json!({ "jackfield": { "code": "agent_gone", "status": status } });
            let error = json!({ "code": -31000, "message": "gone", "data": data });
            let course = ended_with(&error, "interrupted");
            let outcome = course.outcome().unwrap();
            (outcome.code, outcome.signal.clone())
        };
        assert_eq!(gone("exit status 3"), (Some(3), None));
        assert_eq!(gone("signal 9 (KILL)"), (None, Some("SIGKILL".into())));
        assert_eq!(gone("lost with its guard"), (Some(1), None));
    }
}
