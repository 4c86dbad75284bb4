//! The progress of a run, folded from its session's log. Nothing else about a run is stored, so it can be
//! restored wherever the log is.

use super::{
    RunId,
    opening::OpenedSession,
    outcome::{RunOutcome, ended_outcome, withdrawn_outcome},
};
use jackfield_events::{EventBody, EventKind, ReceivedEvent, Time};
use jackfield_hub_client::EventLine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Status)]
pub(crate) enum RunStatus {
    /// Waits for another turn, or for its agent to start.
    Queued,
    Running,
    Succeeded,
    Failed,
    Canceled,
}

/// The settings of a run, which are stored with its prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = Start)]
pub(crate) struct RunSettings {
    #[schema(required)]
    pub(crate) agent_id: String,
    /// The program of the agent.
    #[schema(required)]
    pub(crate) bin: String,
    /// The output format of the agent.
    #[schema(required)]
    pub(crate) stream_format: String,
    pub(crate) project_id: Option<String>,
    #[schema(required)]
    pub(crate) cwd: String,
    pub(crate) model: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) mode: Option<String>,
    /// Members of the request that have no meaning for the daemon, such as ids of the app.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Map<String, Value>,
    /// What the client probably did not mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) warnings: Vec<String>,
}

/// The state of a run after the events so far.
#[derive(Debug, Clone)]
pub(crate) struct RunProgress {
    id: RunId,
    stage: RunStage,
    pub(crate) settings: RunSettings,
    /// Set if a session was opened for the run, as soon as its prompt is in the log.
    pub(super) opened: Option<OpenedSession>,
    /// The sequence number of its first event.
    pub(crate) first_seq: u64,
    /// Unix milliseconds.
    pub(crate) created_at: Option<u64>,
    pub(crate) started_at: Option<u64>,
    pub(crate) ended_at: Option<u64>,
    pub(crate) turn: Option<u64>,
}

#[derive(Debug, Clone)]
enum RunStage {
    /// Its prompt was not found yet.
    NotFound,
    /// Its prompt is not in the log yet, because its agent starts.
    Opening,
    /// Its prompt is queued under this number.
    Queued(u64),
    Running,
    Ended(RunStatus, Box<RunOutcome>),
}

impl RunProgress {
    pub(crate) fn new(id: RunId) -> RunProgress {
        RunProgress {
            id,
            stage: RunStage::NotFound,
            settings: RunSettings::default(),
            opened: None,
            first_seq: 0,
            created_at: None,
            started_at: None,
            ended_at: None,
            turn: None,
        }
    }

    /// A run whose agent starts before its prompt is sent.
    pub(super) fn opening(id: RunId, settings: RunSettings, now: Time) -> RunProgress {
        let (stage, created_at) = (RunStage::Opening, Some(now.0));
        RunProgress { stage, settings, created_at, ..RunProgress::new(id) }
    }

    /// Ends a run whose prompt did not get into the log.
    pub(super) fn end_opening(&mut self, outcome: (RunStatus, RunOutcome), now: Time) {
        if matches!(self.stage, RunStage::Opening) {
            self.end(outcome, now);
        }
    }

    /// `None` before its first event.
    pub(crate) fn status(&self) -> Option<RunStatus> {
        match &self.stage {
            RunStage::NotFound => None,
            RunStage::Opening | RunStage::Queued(_) => Some(RunStatus::Queued),
            RunStage::Running => Some(RunStatus::Running),
            RunStage::Ended(status, _) => Some(*status),
        }
    }

    pub(crate) fn outcome(&self) -> Option<&RunOutcome> {
        match &self.stage {
            RunStage::Ended(_, outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The number of its prompt while it is queued.
    pub(crate) fn queued_prompt(&self) -> Option<u64> {
        if let RunStage::Queued(prompt) = self.stage { Some(prompt) } else { None }
    }

    /// Applies the next event of the session. Returns the event if it is about this run.
    pub(crate) fn apply(&mut self, line: &EventLine) -> Option<ReceivedEvent> {
        match self.stage {
            RunStage::NotFound | RunStage::Opening => self.find_prompt(line),
            RunStage::Queued(prompt) => self.apply_queued(prompt, line),
            RunStage::Running => self.apply_running(line),
            RunStage::Ended(..) => None,
        }
    }

    fn find_prompt(&mut self, line: &EventLine) -> Option<ReceivedEvent> {
        let is_prompt = matches!(line.kind(), Some(EventKind::Queued | EventKind::Prompted));
        if !is_prompt || !line.contains(self.id.as_str()) {
            return None;
        }
        let event = line.to_event()?;
        let meta = prompt_frame(&event)?.pointer("/params/_meta/jackfield")?;
        if meta["run"] != self.id.as_str() {
            return None;
        }
        self.settings = serde_json::from_value(meta["start"].clone()).unwrap_or_default();
        self.opened = serde_json::from_value(meta["opened"].clone()).unwrap_or_default();
        self.first_seq = line.seq;
        self.created_at = Some(event.at.0);
        match &event.body {
            EventBody::Queued(queued) => self.stage = RunStage::Queued(queued.prompt),
            EventBody::Prompted(started) => self.start_turn(started.turn, event.at),
            _ => return None,
        }
        Some(event)
    }

    fn start_turn(&mut self, turn: u64, at: Time) {
        self.stage = RunStage::Running;
        self.turn = Some(turn);
        self.started_at = Some(at.0);
    }

    /// Applies an event while the prompt is queued. Events of another turn are not about this run.
    fn apply_queued(&mut self, prompt: u64, line: &EventLine) -> Option<ReceivedEvent> {
        let event = match line.kind()? {
            EventKind::Bound | EventKind::Prompted | EventKind::Withdrawn => line.to_event()?,
            _ => return None,
        };
        match &event.body {
            EventBody::Bound(_) => {}
            EventBody::Prompted(started) if started.prompt == Some(prompt) => {
                self.start_turn(started.turn, event.at);
            }
            EventBody::Withdrawn(withdrawn) if withdrawn.prompt == prompt => {
                self.end(withdrawn_outcome(withdrawn), event.at);
            }
            _ => return None,
        }
        Some(event)
    }

    fn apply_running(&mut self, line: &EventLine) -> Option<ReceivedEvent> {
        if matches!(line.kind()?, EventKind::Queued | EventKind::Withdrawn) {
            return None;
        }
        let event = line.to_event()?;
        if event.body.turn().is_some_and(|it| Some(it) != self.turn) {
            return None;
        }
        if let EventBody::Ended(ended) = &event.body {
            self.end(ended_outcome(&ended.outcome), event.at);
        }
        Some(event)
    }

    fn end(&mut self, (status, outcome): (RunStatus, RunOutcome), at: Time) {
        self.ended_at = Some(at.0);
        self.stage = RunStage::Ended(status, Box::new(outcome));
    }
}

/// The id of the run in a prompt event.
pub(crate) fn run_id_of(event: &ReceivedEvent) -> Option<RunId> {
    RunId::parse(prompt_frame(event)?.pointer("/params/_meta/jackfield/run")?.as_str()?)
}

fn prompt_frame(event: &ReceivedEvent) -> Option<&Value> {
    match &event.body {
        EventBody::Queued(queued) => Some(&queued.frame),
        EventBody::Prompted(started) => Some(&started.frame),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::hub_client::event_line;
    use serde_json::json;

    fn id() -> RunId {
        RunId::parse("r-abcdefghijkl-aaaaaa").unwrap()
    }

    fn prompt(seq: u64, is: &str, run: &str, more: &Value) -> EventLine {
        let meta = json!({ "jackfield": { "run": run, "start": { "agentId": "fake" } } });
        let mut event = json!({
            "seq": seq, "at": seq * 10, "is": is, "by": "api",
            "frame": { "method": "session/prompt", "params": { "prompt": [], "_meta": meta } },
        });
        for (name, value) in more.as_object().unwrap() {
            event[name] = value.clone();
        }
        event_line(&event)
    }

    fn event(seq: u64, is: &str, more: &Value) -> EventLine {
        let mut event = json!({ "seq": seq, "at": seq * 10, "is": is, "frame": {}, "answer": {} });
        for (name, value) in more.as_object().unwrap() {
            event[name] = value.clone();
        }
        event_line(&event)
    }

    fn ended_with(answer: &Value, how: &str) -> RunProgress {
        let mut progress = RunProgress::new(id());
        progress.apply(&prompt(1, "prompted", id().as_str(), &json!({ "turn": 1 })));
        progress.apply(&event(2, "ended", &json!({ "turn": 1, "how": how, "answer": answer })));
        progress
    }

    #[test]
    fn queued_run_ignores_events_of_another_turn() {
        let mut progress = RunProgress::new(id());
        assert!(
            progress
                .apply(&prompt(1, "prompted", "r-abcdefghijkl-bbbbbb", &json!({ "turn": 1 })))
                .is_none()
        );
        assert!(
            progress.apply(&prompt(2, "queued", id().as_str(), &json!({ "prompt": 4 }))).is_some()
        );
        assert_eq!((progress.status(), progress.first_seq), (Some(RunStatus::Queued), 2));
        assert_eq!(progress.settings.agent_id, "fake");
        assert!(progress.apply(&event(3, "said", &json!({ "turn": 1 }))).is_none());
        assert!(progress.apply(&event(4, "asked", &json!({ "ask": 1 }))).is_none());
        assert!(
            progress.apply(&event(5, "ended", &json!({ "turn": 1, "how": "stopped" }))).is_none()
        );
        assert!(
            progress
                .apply(&prompt(6, "prompted", id().as_str(), &json!({ "turn": 2, "prompt": 4 })))
                .is_some()
        );
        assert_eq!((progress.status(), progress.turn), (Some(RunStatus::Running), Some(2)));
        assert!(progress.apply(&event(7, "said", &json!({ "turn": 1, "late": true }))).is_none());
        assert!(progress.apply(&event(8, "asked", &json!({ "ask": 2 }))).is_some());
        let answer = json!({ "stopReason": "end_turn" });
        let end = json!({ "turn": 2, "how": "stopped", "answer": answer });
        assert!(progress.apply(&event(9, "ended", &end)).is_some());
        assert_eq!((progress.status(), progress.ended_at), (Some(RunStatus::Succeeded), Some(90)));
        assert!(progress.apply(&event(10, "said", &json!({ "turn": 2, "late": true }))).is_none());
    }

    #[test]
    fn withdrawn_prompt_is_canceled_or_failed() {
        for (why, status) in [
            ("its client withdrew it", RunStatus::Canceled),
            ("withdrawn by jackfield-queue (c-2)", RunStatus::Canceled),
            ("agent `x` could not be started: gone", RunStatus::Failed),
        ] {
            let mut progress = RunProgress::new(id());
            progress.apply(&prompt(1, "queued", id().as_str(), &json!({ "prompt": 1 })));
            progress.apply(&event(2, "withdrawn", &json!({ "prompt": 1, "why": why })));
            assert_eq!(progress.status(), Some(status), "{why}");
        }
    }

    #[test]
    fn outcome_has_the_exit_of_the_agent() {
        let progress = ended_with(&json!({ "stopReason": "cancelled" }), "stopped");
        assert_eq!(progress.status(), Some(RunStatus::Canceled));
        let progress = ended_with(&json!({ "stopReason": "max_tokens" }), "stopped");
        assert_eq!(progress.status(), Some(RunStatus::Failed));
        assert!(progress.outcome().unwrap().error.as_ref().unwrap().message.contains("max_tokens"));
        let gone = |status: &str| {
            let data = json!({ "jackfield": { "code": "agent_gone", "status": status } });
            let error = json!({ "code": -31000, "message": "gone", "data": data });
            let progress = ended_with(&error, "interrupted");
            let outcome = progress.outcome().unwrap();
            (outcome.code, outcome.signal.clone())
        };
        assert_eq!(gone("exit status 3"), (Some(3), None));
        assert_eq!(gone("signal 9 (KILL)"), (None, Some("SIGKILL".into())));
        assert_eq!(gone("lost with its guard"), (Some(1), None));
    }
}
