//! A run before its prompt is in the log: its agent starts, opens the session and gets its settings.

use super::{TrackedRun, outcome::RunOutcome, progress::RunStatus};
use crate::rest::error::{ApiError, ErrorCode};
use jackfield_events::Time;
use jackfield_views::{AgentEvent, StatusEvent};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// How far a run is on the way to its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OpeningStage {
    /// The agent starts. `opens_session` is false if an existing session only gets other settings.
    Starting { opens_session: bool },
    /// The agent has opened the session.
    Opened(OpenedSession),
    /// The prompt is in the log, which has everything else about the run.
    Logged,
    /// The run ended without a prompt in the log.
    Ended,
}

/// A session that was opened for a run. It is stored with the prompt of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenedSession {
    /// The model in the response to `session/new`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The model of the request, after the agent has accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chosen: Option<String>,
}

/// Why a run ended before its prompt was in the log.
#[derive(Debug)]
pub(super) enum OpeningEnd {
    Failed(ApiError),
    Canceled,
}

impl From<ApiError> for OpeningEnd {
    fn from(error: ApiError) -> OpeningEnd {
        OpeningEnd::Failed(error)
    }
}

impl OpeningEnd {
    pub(super) fn to_error(&self) -> ApiError {
        match self {
            OpeningEnd::Failed(error) => error.clone(),
            OpeningEnd::Canceled => ApiError::new(ErrorCode::Conflict, "the run was canceled"),
        }
    }

    fn into_outcome(self) -> (RunStatus, RunOutcome) {
        match self {
            OpeningEnd::Failed(error) => RunOutcome::failed(error),
            OpeningEnd::Canceled => RunOutcome::canceled(),
        }
    }
}

impl TrackedRun {
    pub(super) fn set_opened(&self, opened: OpenedSession) {
        self.opening.send_replace(OpeningStage::Opened(opened));
    }

    pub(super) fn set_logged(&self) {
        self.opening.send_replace(OpeningStage::Logged);
    }

    pub(super) fn end_opening(&self, end: OpeningEnd) {
        self.progress().end_opening(end.into_outcome(), now());
        self.opening.send_replace(OpeningStage::Ended);
    }

    /// Whether its session is being opened.
    pub(super) fn is_opening(&self) -> bool {
        let stage = self.opening.borrow();
        matches!(&*stage, OpeningStage::Starting { opens_session: true } | OpeningStage::Opened(_))
    }

    pub(super) fn is_logged(&self) -> bool {
        *self.opening.borrow() == OpeningStage::Logged
    }

    /// Waits until the prompt is in the log, or returns why it will not be.
    pub(crate) async fn wait_logged(&self) -> Result<(), ApiError> {
        let mut stage = self.opening.subscribe();
        let is_over = |it: &OpeningStage| matches!(it, OpeningStage::Logged | OpeningStage::Ended);
        let is_logged = stage.wait_for(is_over).await.is_ok_and(|it| *it == OpeningStage::Logged);
        if is_logged {
            return Ok(());
        }
        let error = self.progress().outcome().and_then(|it| it.error.clone());
        Err(error.unwrap_or_else(|| OpeningEnd::Canceled.to_error()))
    }
}

/// The agent events of opening a session, up to the response to `session/new` if that is known.
pub(super) fn opening_events(opened: Option<&OpenedSession>) -> Vec<AgentEvent> {
    let status = |label: &str, model: Option<&str>| {
        let (label, model) = (label.to_owned(), model.map(str::to_owned));
        AgentEvent::Status(StatusEvent { label, model, ..StatusEvent::default() })
    };
    let mut events = vec![status("initializing", None)];
    let models = opened.into_iter().flat_map(|it| [&it.model, &it.chosen]).flatten();
    events.extend(models.map(|it| status("model", Some(it))));
    events
}

pub(super) fn now() -> Time {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
