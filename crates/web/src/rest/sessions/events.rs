//! A session as it goes: every fact retold in the vocabulary the reader wants.

use crate::rest::{
    Api,
    body::{LastEventId, Named, Params},
    error::{ApiError, ErrorBody},
    hub::{Entry, Fact, Log, Trouble},
    sse::{self, Left, ServerEvent, Writer},
    stream,
};
use axum::{extract::State, response::Response};
use jackfield_events::EventKind;
use jackfield_protocol::acp::Method;
use jackfield_views::{AgentEvent, AgentEvents, Envelope, Envelopes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{str::FromStr, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// How a session is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum View {
    /// ACP messages; what ACP has no words for is a `_jackfield/…` notification.
    Acp,
    /// The same few words for whatever any agent does, as in a run.
    #[default]
    Events,
    /// Small messages with ids, for clients that keep them.
    Envelopes,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The vocabulary [default: events].
    #[param(inline)]
    view: Option<View>,
    /// Begin behind this event: the id of the last one that was read.
    #[param(example = "120")]
    after: Option<String>,
}

/// What one event of a session tells: its name, and its data read as JSON.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum SessionEvent {
    /// In the view `events`.
    Agent(AgentEvent),
    /// In the view `envelopes`.
    Envelope(Envelope),
    /// In the view `acp`; it needs no name.
    Message(Value),
    /// The last one: the session was deleted.
    Gone(Value),
}

impl SessionEvent {
    fn tell(&self, id: Option<&str>, writer: &mut Writer) {
        match self {
            SessionEvent::Agent(it) => writer.event(id, Some("agent"), it),
            SessionEvent::Envelope(it) => writer.event(id, Some("envelope"), it),
            SessionEvent::Message(it) => writer.event(id, None, it),
            SessionEvent::Gone(it) => writer.event(id, Some("gone"), it),
        }
    }
}

/// How far a reader has come: the number of a fact, and of an item made of it if it made several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    seq: u64,
    /// All items of the fact, unless a reader left in the middle.
    item: Option<usize>,
}

impl Place {
    /// The fact behind which the log is read.
    fn after(self) -> u64 {
        if self.item.is_some() { self.seq.saturating_sub(1) } else { self.seq }
    }

    /// Whether the reader has this item already.
    fn has(self, seq: u64, item: usize) -> bool {
        seq < self.seq || (seq == self.seq && self.item.is_none_or(|it| item <= it))
    }
}

impl FromStr for Place {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Place, ApiError> {
        let number = |it: &str| it.parse().ok();
        let place = match text.split_once('.') {
            None => number(text).map(|seq| Place { seq, item: None }),
            Some((seq, item)) => number(seq)
                .zip(item.parse().ok())
                .map(|(seq, item)| Place { seq, item: Some(item) }),
        };
        let why = || format!("`{text}` is no id of an event: it is a number, or two with a dot");
        place.ok_or_else(|| ApiError::invalid(why()))
    }
}

/// What was said in a session and what is being said, as server-sent events
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/events", tag = "sessions",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"), EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "comes before `after`"),
    ),
    responses(
        (status = 200, description = "events, without end; `SessionEvent` is what each tells", body = ServerEvent, content_type = "text/event-stream"),
        (status = 400, description = "a query that is none", body = ErrorBody),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn session_events(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
    Params(query): Params<EventsQuery>,
    last: LastEventId,
) -> Result<Response, ApiError> {
    let place: Place = last.or(query.after.as_deref(), str::parse)?.unwrap_or_default();
    let retold = Retold::new(query.view.unwrap_or_default(), &id);
    let after = if retold.remembers() { 0 } else { place.after() };
    let log = api.hub.log(&id, after).await?;
    let (writer, chunks) = sse::channel();
    tokio::spawn(follow(log, retold, place, writer));
    Ok(chunks.events())
}

async fn follow(
    mut log: Log,
    mut retold: Retold,
    place: Place,
    mut writer: Writer,
) -> Result<(), Left> {
    loop {
        match stream::next(&mut log, &mut writer).await? {
            Ok(Entry::Fact(fact)) => retold.tell(&fact, place, &mut writer),
            Ok(Entry::Live) => {}
            Err(trouble) => return end(&trouble, writer).await,
        }
    }
}

/// The session was deleted, or the hub is gone: whoever comes again hears which.
async fn end(trouble: &Trouble, mut writer: Writer) -> Result<(), Left> {
    if trouble.name() == Some("session_not_found") {
        SessionEvent::Gone(json!({})).tell(None, &mut writer);
    }
    writer.flush().await
}

/// Facts in the reader's words.
enum Retold {
    Acp,
    Events(Box<AgentEvents>),
    Envelopes(Box<Envelopes>),
}

impl Retold {
    fn new(view: View, session: &str) -> Retold {
        match view {
            View::Acp => Retold::Acp,
            View::Events => Retold::Events(Box::default()),
            View::Envelopes => Retold::Envelopes(Box::new(Envelopes::new(session))),
        }
    }

    /// Whether what is told of a fact depends on those before it.
    fn remembers(&self) -> bool {
        !matches!(self, Retold::Acp)
    }

    fn tell(&mut self, fact: &Fact, place: Place, writer: &mut Writer) {
        let told: Vec<SessionEvent> = match self {
            // An event that nests deeper than a value may cannot be sent as a message.
            Retold::Acp => message(fact).map(SessionEvent::Message).into_iter().collect(),
            Retold::Events(fold) => {
                let events = fact.event().map(|it| fold.fold(&it));
                events.into_iter().flatten().map(SessionEvent::Agent).collect()
            }
            Retold::Envelopes(fold) => {
                let envelopes = fact.event().map(|it| fold.fold(&it));
                envelopes.into_iter().flatten().map(SessionEvent::Envelope).collect()
            }
        };
        let seq = fact.seq;
        for (item, event) in told.iter().enumerate().filter(|(it, _)| !place.has(seq, *it)) {
            let id = if self.remembers() { format!("{seq}.{item}") } else { seq.to_string() };
            event.tell(Some(&id), writer);
        }
    }
}

/// An event as the agent's message, or as the notification in which clients receive it.
fn message(fact: &Fact) -> Option<Value> {
    let mut params = fact.value()?;
    match fact.kind().map(EventKind::notification_method) {
        Some(None) => Some(params["frame"].take()),
        Some(Some(method)) => Some(notification(method, &params)),
        // A kind of a newer daemon.
        None => Some(notification(Method::ControlSession, &params)),
    }
}

fn notification(method: Method, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method.name(), "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_comes_again_gets_what_it_has_not_got() {
        let place = |text: &str| text.parse::<Place>().unwrap();
        let whole = place("7");
        assert!(whole.has(7, 0) && whole.has(7, 5) && !whole.has(8, 0));
        assert_eq!(whole.after(), 7);
        let half = place("7.1");
        assert!(half.has(6, 9) && half.has(7, 1) && !half.has(7, 2));
        assert_eq!((half.after(), place("0.0").after()), (6, 0));
        for bad in ["", "x", "7.", ".1", "7.1.2", "-1", "7 "] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_acp_has_no_words_for_is_a_notification_of_ours() {
        let message = |fact: &Value| message(&Fact::of(fact)).unwrap();
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
