//! Finds runs in the logs of their sessions.

use super::{
    RunId, TrackedRun,
    progress::{RunProgress, run_id_of},
};
use crate::rest::{RestState, error::ApiError};
use jackfield_events::EventKind;
use jackfield_hub_client::{EventLine, HubClientError};
use std::sync::Arc;

/// Finds the run with this id.
pub(crate) async fn find_run(state: &RestState, id: &str) -> Result<Arc<TrackedRun>, ApiError> {
    let missing = || ApiError::not_found(format!("no run `{id}`: GET /api/runs lists runs"));
    let run_id = RunId::parse(id).ok_or_else(missing)?;
    let known = state.runs.get(&run_id);
    if let Some(run) = known.as_ref().filter(|it| it.is_current()) {
        return Ok(run.clone());
    }
    let after = known.map_or(0, |it| it.read_after());
    let mut progress = RunProgress::new(run_id.clone());
    let log = match state.hub.open_log(&run_id.session(), after).await {
        Err(error) if error.error_name() == "session_not_found" => return Err(missing()),
        log => log?,
    };
    log.read_existing(|line| drop(progress.apply(&line))).await?;
    if progress.status().is_none() {
        return Err(missing());
    }
    Ok(cache_run(state, progress, run_id))
}

/// Finds all runs of a session, the latest first.
pub(super) async fn find_session_runs(
    state: &RestState,
    session: &str,
) -> Result<Vec<Arc<TrackedRun>>, HubClientError> {
    let mut runs: Vec<(RunId, RunProgress)> = Vec::new();
    let on_event = |line: EventLine| {
        let is_prompt = matches!(line.kind(), Some(EventKind::Queued | EventKind::Prompted))
            && line.contains("\"run\":");
        let id = if is_prompt { line.to_event().and_then(|it| run_id_of(&it)) } else { None };
        // A fork contains the prompts of its original session, whose runs they are.
        if let Some(id) = id.filter(|it| it.session() == session)
            && runs.iter().all(|it| it.0 != id)
        {
            runs.push((id.clone(), RunProgress::new(id)));
        }
        if line.kind() != Some(EventKind::Said) {
            for (_, progress) in &mut runs {
                progress.apply(&line);
            }
        }
    };
    state.hub.open_log(session, 0).await?.read_existing(on_event).await?;
    let runs = runs.into_iter().rev().map(|(id, progress)| {
        let known = state.runs.get(&id).filter(|it| it.is_current());
        known.unwrap_or_else(|| cache_run(state, progress, id))
    });
    Ok(runs.collect())
}

fn cache_run(state: &RestState, progress: RunProgress, id: RunId) -> Arc<TrackedRun> {
    let run = Arc::new(TrackedRun::new(progress, id, false, Arc::default()));
    state.runs.add(&run);
    run
}
