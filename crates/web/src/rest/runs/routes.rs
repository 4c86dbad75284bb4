//! The routes `/api/chat` and `/api/runs`, and prompts for sessions.

use super::{
    IdempotencyKey, PendingRun,
    driver::cancel_run as cancel_unfollowed,
    find::{find_run, find_session_runs},
    follow::{stream_run, write_failure},
    progress::RunStatus,
    shown::RunShown,
    start_run,
};
use crate::rest::{
    RestState,
    check::{PromptBody, RunBody},
    error::{ApiError, ErrorBody, ErrorCode},
    extract::{JsonBody, LastEventId, PathParams, QueryParams},
    sessions::DoneResponse,
    streaming::{self, ChunkWriter, KEEP_ALIVE_INTERVAL, ReaderDisconnected, ServerEvent},
};
use axum::{
    Json,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Serialize};
use std::{pin::pin, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// Start a run and stream it to its end as server-sent events
///
/// The events are `start`, then `agent` for agent events (`stdout` if the agent prints plain text, `stderr` if it
/// exits), `error` if the run fails, and always `end`. Each event has a number; a disconnected client resumes at
/// `/api/runs/{runId}/events`. The run continues without its client, unless it was started with `cancelOnDisconnect`.
/// A repeated request with the same `Idempotency-Key` and body starts no run: its events are those of the first run.
/// If the run opened a session, its agent ends with the run, unless `keep` is set or another client uses the session;
/// the session stays, and a prompt restores it.
#[utoipa::path(
    post, path = "/api/chat", tag = "runs", request_body = RunBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "repeated requests with the same key and body start one run; kept for 24 hours", max_length = 255)),
    responses(
        (status = 200, description = "the events of the run; each is a `RunEvent`", body = ServerEvent, content_type = "text/event-stream"),
        (status = 400, description = "the request is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 409, description = "the first request with this key is still opening its session", body = ErrorBody),
        (status = 413, description = "the body or an image is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 422, description = "the key was used for another request", body = ErrorBody),
        (status = 424, description = "the agent is not installed", body = ErrorBody),
        (status = 429, description = "too many concurrent runs", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn chat(
    State(state): State<Arc<RestState>>,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(mut body): JsonBody<RunBody>,
) -> Result<Response, ApiError> {
    state.profile.complete_chat(&mut body);
    let cancels_on_disconnect = body.cancel_on_disconnect.unwrap_or(false);
    let pending = start_run(&state, body, key).await?;
    let is_repeat = pending.is_repeat;
    let (mut writer, chunks) = streaming::chunk_channel();
    tokio::spawn(async move {
        let stop = pending.stop.clone();
        let result = stream_pending(&state, pending, &mut writer).await;
        if result == Err(ReaderDisconnected) && cancels_on_disconnect {
            stop.notify_one();
        }
    });
    Ok(mark_repeat(chunks.into_event_response(), is_repeat))
}

/// Marks the response to a request that started no run, because an earlier one had started it.
fn mark_repeat(mut response: Response, is_repeat: bool) -> Response {
    if is_repeat {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Waits for a run and streams it.
async fn stream_pending(
    state: &RestState,
    pending: PendingRun,
    writer: &mut ChunkWriter,
) -> Result<(), ReaderDisconnected> {
    let mut started = pin!(pending.wait());
    let run = loop {
        tokio::select! {
            run = &mut started => break run,
            disconnected = writer.wait_disconnected() => return Err(disconnected),
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => writer.keep_alive().await?,
        }
    };
    match run {
        Ok(run) => stream_run(state, &run, None, 0, writer).await,
        Err(error) => {
            write_failure(&error, 0, writer);
            writer.flush().await
        }
    }
}

fn missing_prompt_error() -> ApiError {
    ApiError::new(ErrorCode::InternalError, "the prompt of the run is not in the log")
}

/// A run that was started.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "runId": "r-7f3abcdefghi-k2m4qa", "sessionId": "s-7f3abcdefghi" }))]
pub(crate) struct RunMade {
    run_id: String,
    session_id: String,
    /// What the client probably did not mean, for example a misspelled member.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<String>,
}

async fn start_detached(
    state: &Arc<RestState>,
    body: RunBody,
    key: Option<String>,
) -> Result<Response, ApiError> {
    if body.cancel_on_disconnect == Some(true) {
        let why =
            "`cancelOnDisconnect` is only for /api/chat: here the client does not stay connected";
        return Err(ApiError::invalid(why));
    }
    let is_keyed = key.is_some();
    let pending = start_run(state, body, key).await?;
    let is_repeat = pending.is_repeat;
    let run = pending.wait().await?;
    if is_keyed {
        // The response promises that a repeated request gets the same run, also after a crash.
        run.wait_logged().await?;
    }
    let warnings = run.progress().settings.warnings.clone();
    let made = RunMade { run_id: run.id.to_string(), session_id: run.id.session(), warnings };
    Ok(mark_repeat((StatusCode::ACCEPTED, Json(made)).into_response(), is_repeat))
}

/// Start a run in the background
///
/// If the run has to open a session, the response is sent before the agent starts: `/api/runs/{runId}/events` has what
/// follows, and `/api/runs/{runId}/cancel` cancels it. Otherwise, and with an `Idempotency-Key`, the response is sent
/// when the prompt is in the log of the session. A repeated request with the same `Idempotency-Key` and body gets the
/// response to the first request.
#[utoipa::path(
    post, path = "/api/runs", tag = "runs", request_body = RunBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "repeated requests with the same key and body start one run; kept for 24 hours", max_length = 255)),
    responses(
        (status = 202, description = "the run", body = RunMade),
        (status = 400, description = "the request is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 409, description = "the first request with this key is still opening its session", body = ErrorBody),
        (status = 413, description = "the body or an image is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 422, description = "the key was used for another request", body = ErrorBody),
        (status = 424, description = "the agent is not on this machine, or needs a login", body = ErrorBody),
        (status = 429, description = "too many concurrent runs", body = ErrorBody),
        (status = 502, description = "the agent failed", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn make_run(
    State(state): State<Arc<RestState>>,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody<RunBody>,
) -> Result<Response, ApiError> {
    start_detached(&state, body, key).await
}

/// Start a run in an existing session
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/prompt", tag = "runs",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"),
        ("Idempotency-Key" = Option<String>, Header, description = "repeated requests with the same key and body start one run; kept for 24 hours", max_length = 255),
    ),
    request_body = PromptBody,
    responses(
        (status = 202, description = "the run", body = RunMade),
        (status = 400, description = "the request is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 409, description = "the first request with this key is still opening its session", body = ErrorBody),
        (status = 413, description = "the body or an image is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 422, description = "the key was used for another request", body = ErrorBody),
        (status = 424, description = "the agent failed to start", body = ErrorBody),
        (status = 429, description = "too many queued prompts", body = ErrorBody),
        (status = 502, description = "the agent failed", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn prompt_session(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody<PromptBody>,
) -> Result<Response, ApiError> {
    start_detached(&state, body.into_run_body(id), key).await
}

/// A list of runs, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    runs: Vec<RunShown>,
}

/// A filter by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StatusFilter {
    /// Queued and running runs.
    Active,
    Queued,
    Running,
    Succeeded,
    Failed,
    Canceled,
}

impl StatusFilter {
    fn includes(self, status: RunStatus) -> bool {
        match self {
            StatusFilter::Active => matches!(status, RunStatus::Queued | RunStatus::Running),
            StatusFilter::Queued => status == RunStatus::Queued,
            StatusFilter::Running => status == RunStatus::Running,
            StatusFilter::Succeeded => status == RunStatus::Succeeded,
            StatusFilter::Failed => status == RunStatus::Failed,
            StatusFilter::Canceled => status == RunStatus::Canceled,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunsQuery {
    /// All runs of this session, of any age.
    session_id: Option<String>,
    project_id: Option<String>,
    /// Runs whose request had this `conversationId`.
    conversation_id: Option<String>,
    #[param(inline)]
    status: Option<StatusFilter>,
}

/// List the latest thousand runs since the daemon started, or all runs of a session
#[utoipa::path(
    get, path = "/api/runs", tag = "runs", params(RunsQuery),
    responses(
        (status = 200, description = "runs, the latest first", body = RunList),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn list_runs(
    State(state): State<Arc<RestState>>,
    QueryParams(query): QueryParams<RunsQuery>,
) -> Result<Json<RunList>, ApiError> {
    let runs = match &query.session_id {
        Some(session) => find_session_runs(&state, session).await?,
        None => state.runs.list(),
    };
    let mut runs: Vec<RunShown> = runs.iter().filter_map(|it| RunShown::new(it)).collect();
    runs.retain(|it| query.status.is_none_or(|filter| filter.includes(it.status)));
    runs.retain(|it| query.project_id.is_none() || it.settings.project_id == query.project_id);
    let conversation = query.conversation_id.as_deref();
    runs.retain(|it| conversation.is_none() || it.conversation_id() == conversation);
    Ok(Json(RunList { runs }))
}

/// Get one run
#[utoipa::path(
    get, path = "/api/runs/{runId}", tag = "runs",
    params(("runId" = String, Path, example = "r-7f3abcdefghi-k2m4qa")),
    responses(
        (status = 200, description = "the run", body = RunShown),
        (status = 404, description = "the run does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn show_run(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<RunShown>, ApiError> {
    let run = find_run(&state, &id).await?;
    RunShown::new(&run).map(Json).ok_or_else(missing_prompt_error)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AfterQuery {
    /// Start after this event: the number of the last received event.
    #[param(value_type = Option<u64>, example = 3)]
    after: Option<String>,
}

/// Stream the events of a run: those after the last received event, then new ones
///
/// The numbers are the same for every client and after every restart. A client that has received all events gets the
/// last one again.
#[utoipa::path(
    get, path = "/api/runs/{runId}/events", tag = "runs",
    params(
        ("runId" = String, Path, example = "r-7f3abcdefghi-k2m4qa"), AfterQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "takes precedence over `after`"),
    ),
    responses(
        (status = 200, description = "the events of the run; each is a `RunEvent`", body = ServerEvent, content_type = "text/event-stream"),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the run does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn run_events(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<AfterQuery>,
    last: LastEventId,
) -> Result<Response, ApiError> {
    let parse = |text: &str| {
        let why = || format!("`{}` is not an event number", text.escape_debug());
        text.parse().map_err(|_| ApiError::invalid(why()))
    };
    let after = last.resolve_position(query.after.as_deref(), parse)?.unwrap_or(0);
    let run = find_run(&state, &id).await?;
    let log = if run.is_logged() {
        Some(state.hub.open_log(&run.id.session(), run.read_after()).await?)
    } else {
        None
    };
    let (mut writer, chunks) = streaming::chunk_channel();
    tokio::spawn(async move { stream_run(&state, &run, log, after, &mut writer).await });
    Ok(chunks.into_event_response())
}

/// Cancel a run: withdraw its prompt or cancel its turn; other prompts of the session continue
#[utoipa::path(
    post, path = "/api/runs/{runId}/cancel", tag = "runs",
    params(("runId" = String, Path, example = "r-7f3abcdefghi-k2m4qa")),
    responses(
        (status = 200, description = "the run is being canceled, or has ended", body = DoneResponse),
        (status = 404, description = "the run does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn cancel_run(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<DoneResponse>, ApiError> {
    let run = find_run(&state, &id).await?;
    if run.has_driver() {
        run.stop.notify_one();
    } else if run.status().is_some_and(|it| StatusFilter::Active.includes(it)) {
        cancel_unfollowed(&state, &run.id, run.queued_prompt()).await?;
    }
    Ok(Json(DoneResponse { ok: true }))
}
