//! The events of `/api/events`.

use crate::rest::{
    asks::OpenAsk,
    sessions::{LogEvent, SessionResource},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// An event of `/api/events`: its name, and its data as JSON.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
#[schema(as = ListEvent)]
#[expect(dead_code, reason = "it describes the events in the API document")]
pub(crate) enum StreamedListEvent {
    /// Forget all rows: those that exist follow.
    Reset(EmptyEvent),
    /// A session that is new or has changed.
    Session(SessionResource),
    /// A session was deleted.
    Removed(SessionName),
    /// An open request of an agent to the user.
    Ask(OpenAsk),
    /// A request was answered, or closed without an answer.
    Answered(AnsweredAsk),
    /// All rows were sent.
    Ready(EmptyEvent),
    /// An event of a followed session.
    Log(FollowedEvent),
    /// A followed session does not exist, or was deleted.
    Gone(SessionName),
}

/// An event without data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmptyEvent {}

/// The session that an event concerns.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionName {
    session_id: String,
}

/// How a request was closed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnsweredAsk {
    session_id: String,
    /// The number of the request in the session.
    ask: u64,
    /// The client that answered it, `policy` for a rule, or `jackfield` if it was closed without an answer.
    by: Option<String>,
    /// The chosen option of a permission request.
    option: Option<String>,
}

/// An event of the log of a followed session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FollowedEvent {
    session_id: String,
    event: LogEvent,
}

/// A change of a list as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListEvent {
    pub(super) name: &'static str,
    /// The session that was deleted.
    pub(super) removed: Option<String>,
    /// JSON text.
    pub(super) data: String,
}

impl ListEvent {
    pub(super) fn session(row: &SessionResource) -> ListEvent {
        ListEvent::new("session", row)
    }

    pub(super) fn ask(row: &OpenAsk) -> ListEvent {
        ListEvent::new("ask", row)
    }

    pub(super) fn removed(session: &str) -> ListEvent {
        let event = ListEvent::new("removed", &json!({ "sessionId": session }));
        ListEvent { removed: Some(session.to_owned()), ..event }
    }

    /// `change` is from the hub.
    pub(super) fn answered(change: &Value) -> ListEvent {
        ListEvent::new("answered", change)
    }

    /// A request that is not open any more; how it was closed is not known.
    pub(super) fn closed_ask(session: &str, ask: u64) -> ListEvent {
        ListEvent::new("answered", &json!({ "sessionId": session, "ask": ask }))
    }

    fn new(name: &'static str, data: &impl Serialize) -> ListEvent {
        let data = serde_json::to_string(data).expect("plain data serializes");
        ListEvent { name, removed: None, data }
    }
}
