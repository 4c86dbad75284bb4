//! A connection that reads the log of a session. The hub sends no more than the client reads, and
//! keeps the client's position.

use crate::{EventLine, HubClientError, HubConnection, HubMessage, SessionReplay, attach_params};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// The log of a session: the existing events, then new ones.
#[derive(Debug)]
pub struct EventLog {
    connection: HubConnection,
    replay: SessionReplay,
    /// The entry that was received when the log was opened.
    first: Option<LogEntry>,
}

/// The next entry of a log.
#[derive(Debug)]
pub enum LogEntry {
    Event(EventLine),
    /// All existing events were read; new events follow.
    Live,
}

impl EventLog {
    /// Opens the log of a session, starting after `after`. Fails if the session does not exist.
    pub async fn open(
        mut connection: HubConnection,
        session: &str,
        after: u64,
    ) -> Result<EventLog, HubClientError> {
        let params = attach_params(session, after);
        let attach_id = connection.send_request(Method::ControlAttach, &params).await?;
        let replay = SessionReplay::new(session, after, attach_id);
        let mut log = EventLog { connection, replay, first: None };
        log.first = Some(log.next_entry().await?);
        Ok(log)
    }

    /// The next entry. Safe to cancel.
    pub async fn next_entry(&mut self) -> Result<LogEntry, HubClientError> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        loop {
            match self.connection.next_message().await? {
                HubMessage::Event(event) => {
                    if let Some(event) = self.replay.on_event(event)? {
                        return Ok(LogEntry::Event(event));
                    }
                }
                HubMessage::Response(response) => {
                    if self.replay.on_response(response)?.is_some() {
                        return Ok(LogEntry::Live);
                    }
                }
                HubMessage::Frame(_) => {}
            }
        }
    }

    /// Reads all existing events in order.
    pub async fn read_existing(
        mut self,
        mut on_event: impl FnMut(EventLine),
    ) -> Result<(), HubClientError> {
        while let LogEntry::Event(event) = self.next_entry().await? {
            on_event(event);
        }
        Ok(())
    }

    /// Whether [`EventLog::next_entry`] returns without waiting.
    pub fn has_buffered(&self) -> bool {
        self.first.is_some() || self.connection.has_buffered()
    }

    /// Asks the hub whether the session still exists: the log of a deleted session sends nothing. If
    /// it was deleted, [`EventLog::next_entry`] returns the error.
    pub async fn check_session(&mut self) -> Result<(), HubClientError> {
        let params: Value = json!({ "sessionId": self.replay.session() });
        self.connection.send_request(Method::ControlQueue, &params).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_hub::FakeHub;
    use jackfield_protocol::{Fault, Frame};

    async fn read_events(log: &mut EventLog, count: usize) -> Vec<u64> {
        let mut read = Vec::new();
        while read.len() < count {
            match log.next_entry().await.unwrap() {
                LogEntry::Event(event) => read.push(event.seq),
                LogEntry::Live => panic!("{read:?}"),
            }
        }
        read
    }

    #[tokio::test]
    async fn log_is_read_across_pages_and_then_live() {
        let (connection, mut hub) = FakeHub::connect();
        hub.send_events("s-1", 3..5);
        let mut log = EventLog::open(connection, "s-1", 2).await.unwrap();
        let attach = hub.read_request();
        assert!(attach.is_method(Method::ControlAttach));
        let expected = r#"{"sessionId":"s-1","after":2,"observe":true,"facts":true}"#;
        assert_eq!(attach.params(), Some(expected));
        assert_eq!(read_events(&mut log, 2).await, [3, 4]);
        hub.send_events("s-2", 1..2);
        hub.send_events("s-1", 5..8);
        hub.send(&Frame::result_for("1", r#"{"head":7}"#));
        assert_eq!(read_events(&mut log, 3).await, [5, 6, 7]);
        assert!(log.has_buffered());
        assert!(matches!(log.next_entry().await, Ok(LogEntry::Live)));
        hub.send_events("s-1", 8..9);
        hub.send_events("s-1", 10..11);
        assert_eq!(read_events(&mut log, 1).await, [8]);
        let error = log.next_entry().await.unwrap_err();
        assert_eq!(error.to_string(), "event 9 of s-1 is missing");
    }

    #[tokio::test]
    async fn unknown_and_deleted_sessions_are_errors() {
        let refused = |id| Frame::error_for(id, &Fault::SessionNotFound { session: "s-1".into() });
        let (connection, mut hub) = FakeHub::connect();
        hub.send(&refused("1"));
        let error = EventLog::open(connection, "s-1", 0).await.unwrap_err();
        assert_eq!(error.error_name(), "session_not_found");
        let (connection, mut hub) = FakeHub::connect();
        hub.send(&Frame::result_for("1", r#"{"head":0}"#));
        let mut log = EventLog::open(connection, "s-1", 0).await.unwrap();
        assert!(matches!(log.next_entry().await, Ok(LogEntry::Live)));
        log.check_session().await.unwrap();
        hub.send(&refused("2"));
        assert_eq!(log.next_entry().await.unwrap_err().error_name(), "session_not_found");
    }
}
