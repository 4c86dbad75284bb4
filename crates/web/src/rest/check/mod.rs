//! What clients send, held against what is there: agents, models, paths. What does not fit is
//! refused with the reason, and nothing is dropped in silence.

mod agent;
mod body;
mod paths;
mod picture;

pub(crate) use body::{PromptBody, RunBody};
pub use paths::Dirs;

use crate::rest::{
    Api,
    compose::{Place, Prompt},
    error::ApiError,
    runs::{Choices, Goal, Order, Start},
    sessions,
};
use std::{path::PathBuf, sync::Arc};

/// The directory of a run that names none, below the projects.
const NO_PROJECT: &str = "default";

/// Checks what a run is to be made of. A session goes on if one is named.
pub(crate) async fn order(api: &Arc<Api>, body: RunBody) -> Result<Order, ApiError> {
    if body.message.trim().is_empty() {
        return Err(ApiError::bad("message required"));
    }
    match body.session_id.clone() {
        Some(session) => go_on(api, session, body).await,
        None => open(api, body).await,
    }
}

async fn open(api: &Arc<Api>, body: RunBody) -> Result<Order, ApiError> {
    let Some(id) = body.agent_id.as_deref().filter(|it| !it.is_empty()) else {
        return Err(ApiError::bad("agentId required: GET /api/agents lists them"));
    };
    let agent = agent::find(api, id).await?;
    agent.check_installed()?;
    let choices = agent.choices(&body)?;
    let dirs = api.dirs.clone();
    let (project, cwd) = (body.project_id.clone(), body.cwd.clone());
    let cwd = blocking(move || match (project, cwd) {
        (Some(_), Some(_)) => Err(ApiError::invalid("give either `projectId` or `cwd`")),
        (None, Some(cwd)) => dirs.below_roots(&cwd),
        (project, None) => dirs.project(project.as_deref().unwrap_or(NO_PROJECT)),
    })
    .await?;
    let start = Start { project_id: body.project_id.clone(), ..agent.start() };
    let unenforced = body.unenforced.unwrap_or(false);
    let goal = Goal::New { agent: id.to_owned(), cwd: cwd.clone(), unenforced };
    finish(api, goal, cwd, choices, start, body).await
}

async fn go_on(api: &Arc<Api>, session: String, body: RunBody) -> Result<Order, ApiError> {
    let row = sessions::one(&api.hub, &session).await?;
    if let Some(other) = body.agent_id.as_ref().filter(|it| **it != row.agent) {
        let why = format!("session `{session}` is of agent `{}`, not `{other}`", row.agent);
        return Err(ApiError::invalid(why));
    }
    if body.project_id.is_some() || body.cwd.is_some() {
        let why = format!("session `{session}` works in `{}`: leave out where", row.cwd);
        return Err(ApiError::invalid(why));
    }
    // It may have been opened with a command that no catalogue knows.
    let agent = agent::find(api, &row.agent).await.unwrap_or_else(|_| agent::unknown(&row));
    let (choices, start, cwd) = (agent.choices(&body)?, agent.start(), PathBuf::from(&row.cwd));
    let goal = Goal::Old { session, agent: row.agent, cwd: cwd.clone() };
    finish(api, goal, cwd, choices, start, body).await
}

async fn finish(
    api: &Arc<Api>,
    goal: Goal,
    cwd: PathBuf,
    choices: Choices,
    start: Start,
    body: RunBody,
) -> Result<Order, ApiError> {
    let start = Start {
        cwd: cwd.display().to_string(),
        model: choices.model.clone(),
        reasoning: choices.reasoning.clone(),
        mode: choices.mode.clone(),
        ..start
    };
    let approve = body.approve;
    // An agent knows where it works: it is told if an app has something to say about that.
    let tells = start.project_id.is_some() || body.system_prompt.is_some();
    let dirs = api.dirs.clone();
    let prompt = blocking(move || {
        let attachments = paths::attachments(&cwd, &body.attachments.unwrap_or_default())?;
        let images = picture::images(&cwd, &dirs, &body.image_paths.unwrap_or_default())?;
        let place = tells.then(|| {
            let (files, more) = paths::listing(&cwd);
            Place { cwd: cwd.display().to_string(), files, more }
        });
        let system = body.system_prompt.filter(|it| !it.trim().is_empty());
        Ok(Prompt { system, place, attachments, message: body.message, images })
    })
    .await?;
    Ok(Order { goal, prompt, choices, approve, start, request: None })
}

/// Looking at files waits for the disk, and nobody else should.
async fn blocking<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(look).await.expect("looking does not panic")
}
