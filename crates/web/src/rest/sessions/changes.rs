//! The files that a session changed: by turn, as its tool calls report them, and in the git repository.

use super::{
    git::{GitChanges, GitView, RepositoryScope},
    session::find_session,
};
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{PathParams, QueryParams},
};
use axum::{Json, extract::State};
use jackfield_events::EventKind;
use jackfield_hub_client::EventLine;
use jackfield_views::{FileChanges, TurnChanges};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// The files that a session changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionChanges {
    /// By turn, as tool calls report them.
    turns: Vec<TurnChanges>,
    /// What differs from the last commit, including changes that the session did not make; `null` if the working
    /// directory is not in a git repository on this machine.
    git: Option<GitChanges>,
}

/// List the files that a session changed, by turn and in its git repository
///
/// The whole log is read, and the session is not woken.
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/changes", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    responses(
        (status = 200, description = "the changed files", body = SessionChanges),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn session_changes(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<SessionChanges>, ApiError> {
    let mut changes = FileChanges::default();
    let fold = |line: EventLine| {
        if may_report_changes(&line) {
            line.to_event().iter().for_each(|it| changes.fold_event(it));
        }
    };
    state.hub.open_log(&id, 0).await?.read_existing(fold).await?;
    let git = match open_repository(&state, &id).await? {
        Some(view) => view.read_changes().await,
        None => None,
    };
    Ok(Json(SessionChanges { turns: changes.finish(), git }))
}

/// Whether an event can be a tool call or the start of a turn. Most events are text and need not be parsed; letters of
/// a name may be escaped.
fn may_report_changes(line: &EventLine) -> bool {
    match line.kind() {
        Some(EventKind::Prompted) => true,
        Some(EventKind::Said) => line.contains("tool_call") || line.contains(r"\u"),
        _ => false,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// A path of the list, relative to the work tree.
    path: String,
}

/// A unified diff.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileDiff {
    path: String,
    diff: String,
}

/// Show the diff of one file between the last commit and the work tree
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/changes/diff", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi"), DiffQuery),
    responses(
        (status = 200, description = "the diff; empty if the file is unchanged", body = FileDiff),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the session, its repository or the file does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn session_diff(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    QueryParams(DiffQuery { path }): QueryParams<DiffQuery>,
) -> Result<Json<FileDiff>, ApiError> {
    let missing = || ApiError::not_found(format!("`{path}` is not a changed file of this session"));
    let view = open_repository(&state, &id).await?.ok_or_else(missing)?;
    let diff = view.read_diff(&path).await.ok_or_else(missing)?;
    Ok(Json(FileDiff { path, diff }))
}

/// The repository of a session, if its directory is on this machine.
async fn open_repository(state: &RestState, id: &str) -> Result<Option<GitView>, ApiError> {
    let session = find_session(&state.hub, id).await?;
    if session.host.is_some() {
        return Ok(None);
    }
    let is_tenant = state.hub.tenant_name().is_some();
    let scope = if is_tenant { RepositoryScope::WorkTree } else { RepositoryScope::Anywhere };
    let directory = PathBuf::from(session.cwd);
    let opened = tokio::task::spawn_blocking(move || GitView::open(&directory, scope));
    Ok(opened.await.unwrap_or_default())
}
