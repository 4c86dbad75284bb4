//! A requested run, and the task that starts it.

use super::{TrackedRun, idempotency::OpenRequestGuard};
use crate::rest::error::{ApiError, ErrorCode};
use std::sync::Arc;
use tokio::sync::{Notify, watch};

type RunAnnouncement = Option<Result<Arc<TrackedRun>, ApiError>>;

/// A run that was requested and may not have an id yet.
#[derive(Debug, Clone)]
pub(crate) struct PendingRun {
    run: watch::Receiver<RunAnnouncement>,
    /// Cancels the run in any state.
    pub(crate) stop: Arc<Notify>,
    /// An earlier request with the same key started the run.
    pub(crate) is_repeat: bool,
}

impl PendingRun {
    /// A run that an earlier request started.
    pub(super) fn from_earlier(run: Arc<TrackedRun>) -> PendingRun {
        let stop = run.stop.clone();
        let (_, run) = watch::channel(Some(Ok(run)));
        PendingRun { run, stop, is_repeat: true }
    }

    /// The same run for a request that did not start it.
    pub(super) fn into_repeat(self) -> PendingRun {
        PendingRun { is_repeat: true, ..self }
    }

    /// Waits until the run can be followed: its prompt is in the log, or its agent is about to start.
    pub(crate) async fn wait(mut self) -> Result<Arc<TrackedRun>, ApiError> {
        let announced = self.run.wait_for(Option::is_some).await.map(|it| it.clone());
        announced.ok().flatten().unwrap_or_else(|| {
            let why = "the request that was to start this run ended before: repeat it";
            Err(ApiError::new(ErrorCode::UpstreamUnavailable, why))
        })
    }
}

/// Announces a run to all requests that wait for it, or why it could not be started. It is kept until the
/// prompt of the run is in the log.
#[derive(Debug)]
pub(super) struct RunResultSender {
    run: watch::Sender<RunAnnouncement>,
    pub(super) stop: Arc<Notify>,
    /// While this is set, requests with the same key wait for the run.
    pub(super) open_request: Option<OpenRequestGuard>,
}

impl RunResultSender {
    pub(super) fn new() -> RunResultSender {
        RunResultSender { run: watch::Sender::new(None), stop: Arc::default(), open_request: None }
    }

    pub(super) fn pending_run(&self) -> PendingRun {
        PendingRun { run: self.run.subscribe(), stop: self.stop.clone(), is_repeat: false }
    }

    /// Announces an error, unless the run was announced before: then the run itself has the error.
    pub(super) fn announce_failure(&self, error: ApiError) {
        self.run.send_if_modified(|it| it.is_none() && it.replace(Err(error)).is_none());
    }

    pub(super) fn announce(&self, run: Result<Arc<TrackedRun>, ApiError>) {
        self.run.send_replace(Some(run));
    }
}
