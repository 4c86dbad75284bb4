//! Reads the log of a session: the existing events, then new ones. The hub sends no more than the client
//! reads, and keeps the client's position.

use super::{EventLine, HubClientError, HubConnection, HubMessage};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct EventLog {
    connection: HubConnection,
    session: String,
    /// The id of the attach request. Its response follows the existing events.
    attach_id: u64,
    /// The message that was received while the log was opened.
    first: Option<HubMessage>,
}

/// The next entry of a log.
#[derive(Debug)]
pub(crate) enum LogEntry {
    Event(EventLine),
    /// All existing events were read; new events follow.
    Live,
}

impl EventLog {
    /// Opens the log of a session, starting after `after`. Fails if the session does not exist.
    pub(super) async fn open(
        connection: HubConnection,
        session: &str,
        after: u64,
    ) -> Result<EventLog, HubClientError> {
        let mut log =
            EventLog { connection, session: session.to_owned(), attach_id: 0, first: None };
        let params =
            json!({ "sessionId": session, "after": after, "observe": true, "facts": true });
        log.attach_id = log.connection.send_request(Method::ControlAttach.name(), &params).await?;
        log.first = match log.connection.next_message().await? {
            HubMessage::Response(_, Err(error)) => return Err(HubClientError::Refused(error)),
            message => Some(message),
        };
        Ok(log)
    }

    /// The next entry. Safe to cancel.
    pub(crate) async fn next_entry(&mut self) -> Result<LogEntry, HubClientError> {
        loop {
            let message = match self.first.take() {
                Some(message) => message,
                None => self.connection.next_message().await?,
            };
            match message {
                HubMessage::Event(event) => return Ok(LogEntry::Event(event)),
                HubMessage::Response(_, Err(error)) => return Err(HubClientError::Refused(error)),
                HubMessage::Response(id, Ok(_)) if id == self.attach_id => {
                    return Ok(LogEntry::Live);
                }
                HubMessage::Response(..) | HubMessage::Other => {}
            }
        }
    }

    /// Reads all existing events in order.
    pub(crate) async fn read_existing(
        mut self,
        mut on_event: impl FnMut(EventLine),
    ) -> Result<(), HubClientError> {
        while let LogEntry::Event(event) = self.next_entry().await? {
            on_event(event);
        }
        Ok(())
    }

    /// Whether [`EventLog::next_entry`] returns without waiting.
    pub(crate) fn has_buffered(&self) -> bool {
        self.first.is_some() || self.connection.has_buffered()
    }

    /// Asks the hub whether the session still exists: the log of a deleted session sends nothing. If it
    /// was deleted, [`EventLog::next_entry`] returns the error.
    pub(crate) async fn check_session(&mut self) -> Result<(), HubClientError> {
        let params: Value = json!({ "sessionId": self.session });
        self.connection.send_request(Method::ControlQueue.name(), &params).await.map(drop)
    }
}
