//! `/api/chat`, `/api/runs` and prompts for sessions.

use super::{
    Begun, IdempotencyKey, Run, Start, begin,
    course::Status,
    drive::end_run,
    find::{find, of_session},
    follow::{follow, tell_failure},
};
use crate::rest::{
    Api,
    body::{Body, LastEventId, Named, Params},
    check::{PromptBody, RunBody},
    error::{ApiError, Code, ErrorBody},
    sessions::Done,
    sse::{self, KEEP_ALIVE, Left, ServerEvent, Writer},
};
use axum::{
    Json,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use jackfield_protocol::rfc3339;
use serde::{Deserialize, Serialize};
use std::{pin::pin, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// Make a run and hear it to its end, as server-sent events
///
/// `start`, then `agent` for what the agent does (`stdout` if it prints bare text, `stderr` if it
/// dies), `error` if it fails, and always `end`. Each has a number; a reader that was cut off goes
/// on at `/api/runs/{runId}/events`. Who leaves does not end the run, unless it was made with
/// `cancelOnDisconnect`. With an `Idempotency-Key` that was used for the same body, no run is made: the events are those
/// of the first one, from its start.
#[utoipa::path(
    post, path = "/api/chat", tag = "runs", request_body = RunBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "the same key and body make one run, also if they are sent again; kept for 24 hours", max_length = 255)),
    responses(
        (status = 200, description = "the run's events; `RunEvent` is what each tells", body = ServerEvent, content_type = "text/event-stream"),
        (status = 400, description = "what was sent does not fit", body = ErrorBody),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 409, description = "the first request with this key is still opening its session", body = ErrorBody),
        (status = 413, description = "the body or a picture is too long", body = ErrorBody),
        (status = 415, description = "the body is no JSON", body = ErrorBody),
        (status = 422, description = "this key was used for another request", body = ErrorBody),
        (status = 424, description = "the agent is not on this machine", body = ErrorBody),
        (status = 429, description = "too many runs are under way", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn chat(
    State(api): State<Arc<Api>>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<RunBody>,
) -> Result<Response, ApiError> {
    let stops = body.cancel_on_disconnect.unwrap_or(false);
    let begun = begin(&api, body, key).await?;
    let is_repeat = begun.is_repeat;
    let (mut writer, chunks) = sse::channel();
    tokio::spawn(async move {
        let stop = begun.stop.clone();
        if hear(&api, begun, &mut writer).await == Err(Left) && stops {
            stop.notify_one();
        }
    });
    Ok(mark_repeat(chunks.events(), is_repeat))
}

/// Tells a client that its request made no run, because an earlier one had made it.
fn mark_repeat(mut response: Response, is_repeat: bool) -> Response {
    if is_repeat {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Opening a session takes an agent its time: a reader hears that we are there.
async fn hear(api: &Api, begun: Begun, writer: &mut Writer) -> Result<(), Left> {
    let mut begins = pin!(begun.run());
    let run = loop {
        tokio::select! {
            run = &mut begins => break run,
            left = writer.left() => return Err(left),
            () = tokio::time::sleep(KEEP_ALIVE) => writer.keep_alive().await?,
        }
    };
    let log = match &run {
        Ok(run) => api.hub.log(&run.id.session(), run.before()).await.map_err(Into::into),
        Err(error) => Err(error.clone()),
    };
    match (run, log) {
        (Ok(run), Ok(log)) => follow(&run, log, 0, writer).await,
        (_, Err(error)) | (Err(error), _) => {
            tell_failure(&error, 0, writer);
            writer.flush().await
        }
    }
}

fn lost() -> ApiError {
    ApiError::new(Code::InternalError, "the run was lost before it began")
}

/// A run that was made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "runId": "r-7f3abcdefghi-k2m4qa", "sessionId": "s-7f3abcdefghi" }))]
pub(crate) struct RunMade {
    run_id: String,
    session_id: String,
}

async fn make(api: &Arc<Api>, body: RunBody, key: Option<String>) -> Result<Response, ApiError> {
    if body.cancel_on_disconnect == Some(true) {
        let why = "`cancelOnDisconnect` is for /api/chat: here nobody stays connected";
        return Err(ApiError::invalid(why));
    }
    let begun = begin(api, body, key).await?;
    let is_repeat = begun.is_repeat;
    let run = begun.run().await?;
    let made = RunMade { run_id: run.id.to_string(), session_id: run.id.session() };
    Ok(mark_repeat((StatusCode::ACCEPTED, Json(made)).into_response(), is_repeat))
}

/// Make a run and leave it to itself
///
/// The answer comes when the prompt stands in the session's log. With an `Idempotency-Key` that was used for the same
/// body, it is the answer to the first request.
#[utoipa::path(
    post, path = "/api/runs", tag = "runs", request_body = RunBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "the same key and body make one run, also if they are sent again; kept for 24 hours", max_length = 255)),
    responses(
        (status = 202, description = "the run", body = RunMade),
        (status = 400, description = "what was sent does not fit", body = ErrorBody),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 409, description = "the first request with this key is still opening its session", body = ErrorBody),
        (status = 413, description = "the body or a picture is too long", body = ErrorBody),
        (status = 415, description = "the body is no JSON", body = ErrorBody),
        (status = 422, description = "this key was used for another request", body = ErrorBody),
        (status = 424, description = "the agent is not on this machine, or needs a login", body = ErrorBody),
        (status = 429, description = "too many runs are under way", body = ErrorBody),
        (status = 502, description = "the agent failed", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn make_run(
    State(api): State<Arc<Api>>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<RunBody>,
) -> Result<Response, ApiError> {
    make(&api, body, key).await
}

/// Prompt a session: a run that goes on where it is
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/prompt", tag = "runs",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"),
        ("Idempotency-Key" = Option<String>, Header, description = "the same key and body make one run, also if they are sent again; kept for 24 hours", max_length = 255),
    ),
    request_body = PromptBody,
    responses(
        (status = 202, description = "the run", body = RunMade),
        (status = 400, description = "what was sent does not fit", body = ErrorBody),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 409, description = "the first request with this key is still opening its session", body = ErrorBody),
        (status = 413, description = "the body or a picture is too long", body = ErrorBody),
        (status = 415, description = "the body is no JSON", body = ErrorBody),
        (status = 422, description = "this key was used for another request", body = ErrorBody),
        (status = 424, description = "the agent cannot be started", body = ErrorBody),
        (status = 429, description = "too many prompts wait", body = ErrorBody),
        (status = 502, description = "the agent failed", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn prompt_session(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<PromptBody>,
) -> Result<Response, ApiError> {
    make(&api, body.of_session(id), key).await
}

/// A run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "runId": "r-7f3abcdefghi-k2m4qa", "sessionId": "s-7f3abcdefghi", "status": "succeeded",
    "agentId": "codex", "bin": "codex", "streamFormat": "acp-json-rpc", "projectId": "p1",
    "cwd": "/srv/projects/p1", "model": null, "reasoning": null, "mode": null, "turn": 1,
    "stopReason": "end_turn", "createdAt": "2026-11-15T08:30:00.123Z",
    "startedAt": "2026-11-15T08:30:00.123Z", "endedAt": "2026-11-15T08:31:10.456Z",
}))]
pub(crate) struct RunShown {
    run_id: String,
    session_id: String,
    status: Status,
    #[serde(flatten)]
    start: Start,
    /// Its turn in the session.
    turn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ApiError>,
    created_at: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
}

impl RunShown {
    fn of(run: &Run) -> Option<RunShown> {
        let course = run.course();
        let outcome = course.outcome();
        Some(RunShown {
            run_id: run.id.to_string(),
            session_id: run.id.session(),
            status: course.status()?,
            start: course.start.clone(),
            turn: course.turn,
            stop_reason: outcome.and_then(|it| it.stop_reason.clone()),
            error: outcome.and_then(|it| it.error.clone()),
            created_at: course.created_at.map(rfc3339),
            started_at: course.started_at.map(rfc3339),
            ended_at: course.ended_at.map(rfc3339),
        })
    }
}

/// Runs, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    runs: Vec<RunShown>,
}

/// Which runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Which {
    /// Those that are queued or running.
    Active,
    Queued,
    Running,
    Succeeded,
    Failed,
    Canceled,
}

impl Which {
    fn is(self, status: Status) -> bool {
        match self {
            Which::Active => matches!(status, Status::Queued | Status::Running),
            Which::Queued => status == Status::Queued,
            Which::Running => status == Status::Running,
            Which::Succeeded => status == Status::Succeeded,
            Which::Failed => status == Status::Failed,
            Which::Canceled => status == Status::Canceled,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunsQuery {
    /// All runs of this session, however old.
    session_id: Option<String>,
    project_id: Option<String>,
    #[param(inline)]
    status: Option<Which>,
}

/// The latest thousand runs since the daemon started, or all of a session
#[utoipa::path(
    get, path = "/api/runs", tag = "runs", params(RunsQuery),
    responses(
        (status = 200, description = "runs, the latest first", body = RunList),
        (status = 400, description = "a query that is none", body = ErrorBody),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn list_runs(
    State(api): State<Arc<Api>>,
    Params(query): Params<RunsQuery>,
) -> Result<Json<RunList>, ApiError> {
    let runs = match &query.session_id {
        Some(session) => of_session(&api, session).await?,
        None => api.runs.all(),
    };
    let mut runs: Vec<RunShown> = runs.iter().filter_map(|it| RunShown::of(it)).collect();
    runs.retain(|it| query.status.is_none_or(|which| which.is(it.status)));
    runs.retain(|it| query.project_id.is_none() || it.start.project_id == query.project_id);
    Ok(Json(RunList { runs }))
}

/// One run
#[utoipa::path(
    get, path = "/api/runs/{runId}", tag = "runs",
    params(("runId" = String, Path, example = "r-7f3abcdefghi-k2m4qa")),
    responses(
        (status = 200, description = "the run", body = RunShown),
        (status = 404, description = "there is no such run", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn show_run(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
) -> Result<Json<RunShown>, ApiError> {
    let run = find(&api, &id).await?;
    RunShown::of(&run).map(Json).ok_or_else(lost)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AfterQuery {
    /// Begin behind this event: the number of the last one that was read.
    #[param(value_type = Option<u64>, example = 3)]
    after: Option<String>,
}

/// A run's events: those behind the last one that was read, and then as they come
///
/// The numbers are the same for every reader and after every restart. Who has read all of them hears
/// the last one again.
#[utoipa::path(
    get, path = "/api/runs/{runId}/events", tag = "runs",
    params(
        ("runId" = String, Path, example = "r-7f3abcdefghi-k2m4qa"), AfterQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "comes before `after`"),
    ),
    responses(
        (status = 200, description = "the run's events; `RunEvent` is what each tells", body = ServerEvent, content_type = "text/event-stream"),
        (status = 400, description = "a query that is none", body = ErrorBody),
        (status = 404, description = "there is no such run", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn run_events(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
    Params(query): Params<AfterQuery>,
    last: LastEventId,
) -> Result<Response, ApiError> {
    let parse = |text: &str| {
        let why = || format!("`{}` is no number of an event", text.escape_debug());
        text.parse().map_err(|_| ApiError::invalid(why()))
    };
    let after = last.or(query.after.as_deref(), parse)?.unwrap_or(0);
    let run = find(&api, &id).await?;
    let log = api.hub.log(&run.id.session(), run.before()).await?;
    let (mut writer, chunks) = sse::channel();
    tokio::spawn(async move { follow(&run, log, after, &mut writer).await });
    Ok(chunks.events())
}

/// End a run: out of the queue, or off the agent; what else waits in the session goes on
#[utoipa::path(
    post, path = "/api/runs/{runId}/cancel", tag = "runs",
    params(("runId" = String, Path, example = "r-7f3abcdefghi-k2m4qa")),
    responses(
        (status = 200, description = "it ends, or has ended", body = Done),
        (status = 404, description = "there is no such run", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn cancel_run(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
) -> Result<Json<Done>, ApiError> {
    let run = find(&api, &id).await?;
    if run.is_driven() {
        run.stop.notify_one();
    } else if run.status().is_some_and(|it| Which::Active.is(it)) {
        end_run(&api, &run.id, run.waits()).await?;
    }
    Ok(Json(Done { ok: true }))
}
