//! Finding runs where they stand: in the logs of their sessions.

use super::{
    Run, RunId,
    course::{Course, run_of},
};
use crate::rest::{Api, error::ApiError, hub::Trouble};
use jackfield_events::EventKind;
use std::sync::Arc;

/// The run of this name, wherever it was made.
pub(crate) async fn find(api: &Api, name: &str) -> Result<Arc<Run>, ApiError> {
    let missing = || ApiError::not_found(format!("no run `{name}`: GET /api/runs lists them"));
    let id = RunId::parse(name).ok_or_else(missing)?;
    let known = api.runs.get(&id);
    if let Some(run) = known.as_ref().filter(|it| it.is_settled()) {
        return Ok(run.clone());
    }
    let after = known.map_or(0, |it| it.before());
    let mut course = Course::new(id.clone());
    let log = match api.hub.log(&id.session(), after).await {
        Err(trouble) if trouble.name() == Some("session_not_found") => return Err(missing()),
        log => log?,
    };
    log.read(|fact| drop(course.step(&fact))).await?;
    if course.status().is_none() {
        return Err(missing());
    }
    Ok(remember(api, course, id))
}

/// All runs of a session, the latest first.
pub(super) async fn of_session(api: &Api, session: &str) -> Result<Vec<Arc<Run>>, Trouble> {
    let mut courses: Vec<(RunId, Course)> = Vec::new();
    let read = |fact: crate::rest::hub::Fact| {
        let prompts = matches!(fact.kind(), Some(EventKind::Queued | EventKind::Prompted))
            && fact.mentions("\"run\":");
        let id = if prompts { fact.event().and_then(|it| run_of(&it)) } else { None };
        // A fork has the prompts of the session it comes from, whose runs they are.
        if let Some(id) = id.filter(|it| it.session() == session)
            && courses.iter().all(|it| it.0 != id)
        {
            courses.push((id.clone(), Course::new(id)));
        }
        if fact.kind() != Some(EventKind::Said) {
            for (_, course) in &mut courses {
                course.step(&fact);
            }
        }
    };
    api.hub.log(session, 0).await?.read(read).await?;
    let runs = courses.into_iter().rev().map(|(id, course)| {
        let known = api.runs.get(&id).filter(|it| it.is_settled());
        known.unwrap_or_else(|| remember(api, course, id))
    });
    Ok(runs.collect())
}

fn remember(api: &Api, course: Course, id: RunId) -> Arc<Run> {
    let run = Arc::new(Run::new(course, id, false, Arc::default()));
    api.runs.add(&run);
    run
}
