//! A page of a session's log: its events exactly as an exported file has them.

use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody, ErrorCode},
    extract::{LogNumber, PathParams, QueryParams},
};
use axum::{Json, extract::State};
use jackfield_protocol::acp::Method;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use std::{borrow::Cow, sync::Arc};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr, Schema,
        schema::{AdditionalProperties, Type},
    },
};

/// The default number of events in a page, and the largest.
const PAGE_EVENTS: u64 = 200;
const PAGE_EVENTS_MAX: u64 = 1000;

/// An event of a log. Its text is not parsed: some events nest too deep for that.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct LogEvent(Box<RawValue>);

impl LogEvent {
    /// The event with this line; `None` if the line is not JSON.
    pub(crate) fn parse(line: String) -> Option<LogEvent> {
        RawValue::from_string(line).ok().map(LogEvent)
    }

    /// JSON text.
    pub(crate) fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialSchema for LogEvent {
    fn schema() -> RefOr<Schema> {
        let member = |kind: Type, about: &str| {
            ObjectBuilder::new().schema_type(kind).description(Some(about)).build()
        };
        let said = json!({
            "seq": 7, "at": 1_700_000_000_123_u64, "is": "said", "turn": 1,
            "frame": { "jsonrpc": "2.0", "method": Method::SessionUpdate.name(), "params": {} },
        });
        ObjectBuilder::new()
            .description(Some("An event of a log, as an exported file has it."))
            .property(
                "seq",
                member(Type::Integer, "The position in the log, from 1 and without gaps."),
            )
            .property("at", member(Type::Integer, "Milliseconds since 1970."))
            .property(
                "is",
                member(Type::String, "What happened: `said`, `prompted`, `ended`, `asked`, …"),
            )
            .required("seq")
            .required("at")
            .required("is")
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .examples([said])
            .into()
    }
}

impl ToSchema for LogEvent {
    fn name() -> Cow<'static, str> {
        "LogEvent".into()
    }
}

/// A page of the events of a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogPage {
    /// In the order of their sequence numbers. An event that is damaged on disk is left out.
    events: Vec<LogEvent>,
    /// The sequence number of the last event of the session.
    last: u64,
    /// Whether the session has earlier events than this page.
    has_before: bool,
    /// Whether the session has later events than this page.
    has_after: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogQuery {
    /// The events before this one, the last ones of them.
    #[param(value_type = Option<u64>)]
    before: Option<LogNumber>,
    /// The events after this one, the first ones of them.
    #[param(value_type = Option<u64>)]
    after: Option<LogNumber>,
    /// The maximum number of events [default: 200].
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}

/// What the hub answers: the events as lines of one text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogLines {
    lines: String,
    last: u64,
    has_before: bool,
    has_after: bool,
}

/// Read a page of the events of a session: the last ones, or those before or after an event
///
/// A page ends after about 4 MiB. The session is not woken.
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/log", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi"), LogQuery),
    responses(
        (status = 200, description = "a page of events", body = LogPage),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn session_log(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<LogQuery>,
) -> Result<Json<LogPage>, ApiError> {
    let LogQuery { before, after, limit } = query;
    let limit = limit.unwrap_or(PAGE_EVENTS);
    if !(1..=PAGE_EVENTS_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!("`limit` must be from 1 to {PAGE_EVENTS_MAX}")));
    }
    if before.is_some() && after.is_some() {
        return Err(ApiError::invalid("set either `before` or `after`"));
    }
    let [before, after] = [before, after].map(|it| it.map(|number| number.0));
    let params = json!({ "sessionId": id, "before": before, "after": after, "limit": limit });
    let response = state.hub.call_method(Method::ControlReadLog, &params).await?;
    let page: LogLines = serde_json::from_value(response).map_err(|error| {
        let why = format!("the hub answered with an unknown page: {error}");
        ApiError::new(ErrorCode::InternalError, why)
    })?;
    let events = page.lines.lines().filter_map(|it| LogEvent::parse(it.to_owned())).collect();
    let LogLines { last, has_before, has_after, .. } = page;
    Ok(Json(LogPage { events, last, has_before, has_after }))
}
