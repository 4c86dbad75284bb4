//! Validates the request for a run: agent, model, paths. An invalid value is rejected with the reason; an
//! unknown member is stored with the run.

mod agent;
mod body;
mod image;
mod paths;

pub(crate) use body::{NewSessionBody, PromptBody, RunBody};
pub use paths::WorkDirs;

use crate::rest::{
    RestState,
    error::ApiError,
    prompt::{RunPrompt, WorkingDirectory},
    runs::{RunPlan, RunSettings, RunTarget, SettingChoices},
    sessions,
};
use jackfield_protocol::mcp_servers::parse_mcp_servers;
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The project of a run that names neither a project nor a directory.
const DEFAULT_PROJECT: &str = "default";

/// Validates a request and plans its run. If the request names a session, the run continues it.
pub(crate) async fn plan_run(state: &Arc<RestState>, body: RunBody) -> Result<RunPlan, ApiError> {
    if body.message.trim().is_empty() {
        return Err(ApiError::bad_request("`message` is required"));
    }
    match body.session_id.clone() {
        Some(session) => plan_in_session(state, session, body).await,
        None => plan_new_session(state, state.dirs.clone(), None, body).await,
    }
}

/// Validates a request for a session without a prompt. It may also work in the directory of another session: someone
/// has already chosen to work there.
pub(crate) async fn plan_session(
    state: &Arc<RestState>,
    body: NewSessionBody,
) -> Result<RunPlan, ApiError> {
    let mut dirs = state.dirs.clone();
    let rows = sessions::list_all(&state.hub).await?;
    let known = rows.into_iter().map(|it| it.cwd).find(|it| Some(it) == body.cwd.as_ref());
    let known = known.map(PathBuf::from);
    // A gateway does not have the directories of its hosts.
    let cwd_on_host = known.clone().filter(|_| state.agents.is_hosted());
    dirs.roots.extend(known);
    plan_new_session(state, dirs, cwd_on_host, body.into_run_body()).await
}

async fn plan_new_session(
    state: &Arc<RestState>,
    dirs: WorkDirs,
    cwd_on_host: Option<PathBuf>,
    mut body: RunBody,
) -> Result<RunPlan, ApiError> {
    let Some(id) = body.agent_id.clone().filter(|it| !it.is_empty()) else {
        return Err(ApiError::bad_request(
            "`agentId` is required: GET /api/agents lists the agents",
        ));
    };
    let agent = agent::find_agent(state, &id).await?;
    agent.check_installed()?;
    if state.profile.drops_invalid_values() {
        body.dropped = agent.drop_invalid_choices(&mut body);
    }
    let choices = agent.validate_choices(&body)?;
    let (project, cwd) = (body.project_id.clone(), body.cwd.clone());
    let more = body.additional_directories.clone().unwrap_or_default();
    let (cwd, more_dirs) = run_blocking(move || {
        let cwd = match (project, cwd) {
            (Some(_), Some(_)) => Err(ApiError::invalid("set either `projectId` or `cwd`")),
            (None, Some(cwd)) => cwd_on_host.map_or_else(|| dirs.resolve_cwd(&cwd), Ok),
            (project, None) => dirs.resolve_project(project.as_deref().unwrap_or(DEFAULT_PROJECT)),
        }?;
        let more_dirs = dirs.resolve_more_dirs(&cwd, &more)?;
        Ok((cwd, more_dirs))
    })
    .await?;
    let settings = RunSettings {
        // The client compares it with what it sent, which may be an alias.
        agent_id: id,
        project_id: body.project_id.clone(),
        ..agent.run_settings()
    };
    let unenforced = body.unenforced.unwrap_or(false);
    let mcp = parse_mcp_servers(body.mcp_servers.as_ref().unwrap_or(&Value::Null));
    let mcp = mcp.map_err(ApiError::invalid)?;
    let target = RunTarget::NewSession {
        agent: agent.agent.id.clone(),
        cwd: cwd.clone(),
        more_dirs,
        variant: body.variant.clone(),
        sandbox: body.sandbox.clone(),
        unenforced,
        mcp,
    };
    finish_plan(state, target, cwd, choices, settings, body).await
}

async fn plan_in_session(
    state: &Arc<RestState>,
    session: String,
    body: RunBody,
) -> Result<RunPlan, ApiError> {
    if let Some(run) = state.runs.find_opening(&session) {
        // The client knows the id of the session before the session is open.
        run.wait_logged().await?;
    }
    let row = sessions::find_session(&state.hub, &session).await?;
    // The session may have been opened with a command that is not in the catalog.
    let agent =
        agent::find_agent(state, &row.agent).await.unwrap_or_else(|_| agent::from_session(&row));
    if let Some(other) = body.agent_id.as_ref().filter(|it| !agent.agent.has_name(it)) {
        let why = format!("session `{session}` belongs to agent `{}`, not `{other}`", row.agent);
        return Err(ApiError::invalid(why));
    }
    let names_dirs = body.project_id.is_some() || body.cwd.is_some();
    if names_dirs || body.additional_directories.as_ref().is_some_and(|it| !it.is_empty()) {
        let why = format!(
            "session `{session}` works in `{}`: omit `projectId`, `cwd` and `additionalDirectories`",
            row.cwd
        );
        return Err(ApiError::invalid(why));
    }
    if body.mcp_servers.is_some() {
        let why = "MCP servers are set when a session is opened: omit `mcpServers` or `sessionId`";
        return Err(ApiError::invalid(why));
    }
    if body.sandbox.is_some() && body.sandbox != row.sandbox {
        let profile = row.sandbox.as_deref().unwrap_or("open");
        let why = format!(
            "session `{session}` has the sandbox profile `{profile}`, which is set when a session is opened: omit \
             `sandbox` or `sessionId`"
        );
        return Err(ApiError::invalid(why));
    }
    let (choices, cwd) = (agent.validate_choices(&body)?, PathBuf::from(&row.cwd));
    let own = agent.run_settings();
    let settings = RunSettings { agent_id: body.agent_id.clone().unwrap_or(own.agent_id), ..own };
    let has_images = body.image_paths.as_ref().is_some_and(|it| !it.is_empty());
    let accepts_images =
        has_images && sessions::accepts_images(state, &session, &row.agent).await?;
    let target = RunTarget::ExistingSession { session, cwd: cwd.clone(), accepts_images };
    finish_plan(state, target, cwd, choices, settings, body).await
}

async fn finish_plan(
    state: &Arc<RestState>,
    target: RunTarget,
    cwd: PathBuf,
    choices: SettingChoices,
    settings: RunSettings,
    mut body: RunBody,
) -> Result<RunPlan, ApiError> {
    if state.profile.drops_invalid_values() {
        let (cwd, dirs) = (cwd.clone(), state.dirs.clone());
        body = run_blocking(move || {
            drop_invalid_files(&mut body, &cwd, &dirs);
            Ok(body)
        })
        .await?;
    }
    let mut settings = RunSettings {
        cwd: cwd.display().to_string(),
        model: choices.model.clone(),
        reasoning: choices.reasoning.clone(),
        mode: choices.mode.clone(),
        metadata: body.stored_metadata(),
        warnings: body.warnings(),
        ..settings
    };
    let (approve, steers) = (state.choose_approval(body.approve), body.steer.unwrap_or(false));
    let closes_session =
        matches!(target, RunTarget::NewSession { .. }) && !body.keep.unwrap_or(true);
    // The agent knows its directory. The prompt describes it only for clients with projects or a system
    // prompt.
    let describes_directory = settings.project_id.is_some() || body.system_prompt.is_some();
    let dirs = state.dirs.clone();
    let prompt = run_blocking(move || {
        let attachments = body.attachments.unwrap_or_default();
        let attachments = paths::check_attachments(&cwd, &dirs, &attachments)?;
        let images = image::read_images(&cwd, &dirs, &body.image_paths.unwrap_or_default())?;
        let directory = describes_directory.then(|| {
            let (files, has_more) = paths::list_files(&cwd);
            WorkingDirectory { cwd: cwd.display().to_string(), files, has_more }
        });
        let system_prompt = body.system_prompt.filter(|it| !it.trim().is_empty());
        Ok(RunPrompt { system_prompt, directory, attachments, message: body.message, images })
    })
    .await?;
    settings.warnings.extend(image::describe_references(&prompt.images, target.accepts_images()));
    let request = None;
    Ok(RunPlan { target, prompt, choices, approve, settings, request, steers, closes_session })
}

/// Removes attachments and images that cannot be used from the request.
fn drop_invalid_files(body: &mut RunBody, cwd: &Path, dirs: &WorkDirs) {
    let dropped = &mut body.dropped;
    let mut keep_valid = |name: &str, paths: &mut Option<Vec<String>>, check: &FileCheck<'_>| {
        paths.get_or_insert_default().retain(|path| match check(path) {
            Ok(()) => true,
            Err(error) => {
                dropped.push(format!("one of `{name}` has no effect: {}", error.message));
                false
            }
        });
    };
    let one = std::slice::from_ref::<String>;
    keep_valid("attachments", &mut body.attachments, &|path| {
        paths::check_attachments(cwd, dirs, one(path)).map(drop)
    });
    keep_valid("imagePaths", &mut body.image_paths, &|path| {
        image::read_images(cwd, dirs, one(path)).map(drop)
    });
}

type FileCheck<'a> = dyn Fn(&String) -> Result<(), ApiError> + 'a;

/// Runs file system access on a blocking thread.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.expect("file system access does not panic")
}
