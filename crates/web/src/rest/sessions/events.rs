//! Streams a session: its events in the view that the client wants.

use super::log::LogEvent;
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{LastEventId, PathParams, QueryFlag, QueryParams},
    log_reader,
    streaming::{self, ChunkWriter, ReaderDisconnected, ServerEvent},
};
use axum::{extract::State, response::Response};
use jackfield_events::EventKind;
use jackfield_hub_client::{EventLine, EventLog, HubClientError, LogEntry};
use jackfield_protocol::acp::Method;
use jackfield_views::{AgentEvent, AgentEventView, Envelope, EnvelopeView};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{str::FromStr, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// The format of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum View {
    /// ACP messages; events without an ACP message are `_jackfield/…` notifications.
    Acp,
    /// Agent events, a small vocabulary for all agents, as in a run.
    #[default]
    Events,
    /// Small messages with ids, for clients that store them.
    Envelopes,
    /// The events of the log, as an exported file has them.
    Log,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The format of the events [default: events].
    #[param(inline)]
    view: Option<View>,
    /// Start after this event: the id of the last received event.
    #[param(example = "120")]
    after: Option<String>,
    /// `1`: add to the view `envelopes` what its protocol does not have: permission requests, errors, usage.
    #[serde(default)]
    #[param(value_type = Option<QueryFlag>, inline)]
    additions: QueryFlag,
}

/// An event of a session: its name, and its data as JSON.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
#[schema(as = SessionEvent)]
pub(crate) enum StreamedSessionEvent {
    /// In the view `events`.
    Agent(AgentEvent),
    /// In the view `envelopes`.
    Envelope(Envelope),
    /// In the view `acp`, without a name.
    Message(Value),
    /// In the view `log`.
    Log(LogEvent),
    /// The last event: the session was deleted.
    Gone(Value),
}

impl StreamedSessionEvent {
    fn write_to(&self, id: Option<&str>, writer: &mut ChunkWriter) {
        match self {
            StreamedSessionEvent::Agent(it) => writer.write_event(id, Some("agent"), it),
            StreamedSessionEvent::Envelope(it) => writer.write_event(id, Some("envelope"), it),
            StreamedSessionEvent::Message(it) => writer.write_event(id, None, it),
            StreamedSessionEvent::Log(it) => writer.write_event(id, Some("log"), it),
            StreamedSessionEvent::Gone(it) => writer.write_event(id, Some("gone"), it),
        }
    }
}

/// The position of a client: a sequence number, and the index of an item if the event has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct EventPosition {
    seq: u64,
    /// `None` after all items of the event.
    item: Option<usize>,
}

impl EventPosition {
    /// The sequence number after which the log is read.
    fn read_after(self) -> u64 {
        if self.item.is_some() { self.seq.saturating_sub(1) } else { self.seq }
    }

    /// Whether the client has received this item.
    fn includes(self, seq: u64, item: usize) -> bool {
        seq < self.seq || (seq == self.seq && self.item.is_none_or(|it| item <= it))
    }
}

impl FromStr for EventPosition {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<EventPosition, ApiError> {
        let number = |it: &str| it.parse().ok();
        let position = match text.split_once('.') {
            None => number(text).map(|seq| EventPosition { seq, item: None }),
            Some((seq, item)) => number(seq)
                .zip(item.parse().ok())
                .map(|(seq, item)| EventPosition { seq, item: Some(item) }),
        };
        let why = || {
            format!(
                "`{text}` is not an event id: expected a number, or two numbers separated by a dot"
            )
        };
        position.ok_or_else(|| ApiError::invalid(why()))
    }
}

/// Stream the past and future events of a session as server-sent events
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/events", tag = "sessions",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"), EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "takes precedence over `after`"),
    ),
    responses(
        (status = 200, description = "an endless stream of events; each is a `SessionEvent`", body = ServerEvent, content_type = "text/event-stream"),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn session_events(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<EventsQuery>,
    last: LastEventId,
) -> Result<Response, ApiError> {
    let position: EventPosition =
        last.resolve_position(query.after.as_deref(), str::parse)?.unwrap_or_default();
    let renderer = EventRenderer::new(query.view.unwrap_or_default(), query.additions, &id);
    let after = if renderer.is_stateful() { 0 } else { position.read_after() };
    let log = state.hub.open_log(&id, after).await?;
    let (writer, chunks) = streaming::chunk_channel();
    tokio::spawn(stream_events(log, renderer, position, writer));
    Ok(chunks.into_event_response())
}

async fn stream_events(
    mut log: EventLog,
    mut renderer: EventRenderer,
    position: EventPosition,
    mut writer: ChunkWriter,
) -> Result<(), ReaderDisconnected> {
    loop {
        match log_reader::next_entry(&mut log, &mut writer).await? {
            Ok(LogEntry::Event(event)) => renderer.write_event(&event, position, &mut writer),
            Ok(LogEntry::Live) => {}
            Err(error) => return end_stream(&error, writer).await,
        }
    }
}

/// Ends a stream whose session was deleted, or whose hub is gone. A client that reconnects learns which.
async fn end_stream(
    error: &HubClientError,
    mut writer: ChunkWriter,
) -> Result<(), ReaderDisconnected> {
    if error.error_name() == "session_not_found" {
        StreamedSessionEvent::Gone(json!({})).write_to(None, &mut writer);
    }
    writer.flush().await
}

/// Renders events of the log in a view.
enum EventRenderer {
    Acp,
    Log,
    Events(Box<AgentEventView>),
    Envelopes(Box<EnvelopeView>),
}

impl EventRenderer {
    fn new(view: View, additions: QueryFlag, session: &str) -> EventRenderer {
        let envelopes = EnvelopeView::new(session);
        match view {
            View::Acp => EventRenderer::Acp,
            View::Log => EventRenderer::Log,
            View::Events => EventRenderer::Events(Box::default()),
            View::Envelopes if additions.is_set() => {
                EventRenderer::Envelopes(Box::new(envelopes.with_additions()))
            }
            View::Envelopes => EventRenderer::Envelopes(Box::new(envelopes)),
        }
    }

    /// Whether the output for an event depends on earlier events.
    fn is_stateful(&self) -> bool {
        !matches!(self, EventRenderer::Acp | EventRenderer::Log)
    }

    fn write_event(&mut self, line: &EventLine, position: EventPosition, writer: &mut ChunkWriter) {
        let items: Vec<StreamedSessionEvent> = match self {
            // An event that nests too deep to be parsed cannot be sent as a message.
            EventRenderer::Acp => {
                to_message(line).map(StreamedSessionEvent::Message).into_iter().collect()
            }
            EventRenderer::Log => {
                let event = LogEvent::parse(line.to_journal_text());
                event.map(StreamedSessionEvent::Log).into_iter().collect()
            }
            EventRenderer::Events(view) => {
                let events = line.to_event().map(|it| view.fold_event(&it));
                events.into_iter().flatten().map(StreamedSessionEvent::Agent).collect()
            }
            EventRenderer::Envelopes(view) => {
                let envelopes = line.to_event().map(|it| view.fold_event(&it));
                envelopes.into_iter().flatten().map(StreamedSessionEvent::Envelope).collect()
            }
        };
        let seq = line.seq;
        for (item, event) in items.iter().enumerate().filter(|(it, _)| !position.includes(seq, *it))
        {
            let id = if self.is_stateful() { format!("{seq}.{item}") } else { seq.to_string() };
            event.write_to(Some(&id), writer);
        }
    }
}

/// The message of the agent, or the notification in which clients receive the event.
fn to_message(line: &EventLine) -> Option<Value> {
    let mut params = line.to_value()?;
    match line.kind().map(EventKind::notification_method) {
        Some(None) => Some(params["frame"].take()),
        Some(Some(method)) => Some(notification(method, &params)),
        // An unknown kind of a newer daemon.
        None => Some(notification(Method::ControlSession, &params)),
    }
}

fn notification(method: Method, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method.name(), "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::hub_client::event_line;

    #[test]
    fn reconnecting_client_receives_only_new_items() {
        let position = |text: &str| text.parse::<EventPosition>().unwrap();
        let all_items = position("7");
        assert!(all_items.includes(7, 0) && all_items.includes(7, 5) && !all_items.includes(8, 0));
        assert_eq!(all_items.read_after(), 7);
        let some_items = position("7.1");
        assert!(
            some_items.includes(6, 9) && some_items.includes(7, 1) && !some_items.includes(7, 2)
        );
        assert_eq!((some_items.read_after(), position("0.0").read_after()), (6, 0));
        for bad in ["", "x", "7.", ".1", "7.1.2", "-1", "7 "] {
            assert!(bad.parse::<EventPosition>().is_err(), "{bad}");
        }
    }

    #[test]
    fn envelopes_have_additions_only_on_request() {
        let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
        let params = json!({ "toolCall": { "toolCallId": "c1" }, "options": options });
        let frame = json!({ "id": 1, "method": "session/request_permission", "params": params });
        let asked = json!({ "seq": 1, "at": 1, "is": "asked", "ask": 1, "frame": frame });
        let count = |additions: QueryFlag| {
            let EventRenderer::Envelopes(mut view) =
                EventRenderer::new(View::Envelopes, additions, "s-1")
            else {
                panic!("another view");
            };
            view.fold_event(&event_line(&asked).to_event().unwrap()).len()
        };
        assert_eq!((count(QueryFlag::Zero), count(QueryFlag::One)), (0, 1));
    }

    #[test]
    fn event_without_an_acp_message_is_a_notification() {
        let message = |event: &Value| to_message(&event_line(event)).unwrap();
        let frame = json!({ "method": "session/update" });
        let said = json!({ "seq": 1, "at": 1, "is": "said", "frame": frame });
        assert_eq!(message(&said), json!({ "method": "session/update" }));
        let ended = message(&json!({ "seq": 2, "at": 1, "is": "ended" }));
        assert_eq!(
            (&ended["method"], &ended["params"]["seq"]),
            (&json!("_jackfield/turn"), &json!(2))
        );
    }
}
