//! A session's log as somebody reads it: what there is, and then what comes. Who does not read on is
//! not sent more: the hub keeps its place.

use super::{Conn, Fact, Heard, Trouble};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Log {
    conn: Conn,
    session: String,
    /// The request that let us in; it is answered when everything that there was is told.
    attach: u64,
    /// Heard when it was opened.
    first: Option<Heard>,
}

/// What comes next in a log.
#[derive(Debug)]
pub(crate) enum Entry {
    Fact(Fact),
    /// Everything that there was is told; from here on it is news.
    Live,
}

impl Log {
    /// A session that is not there is an error here, not later.
    pub(super) async fn open(conn: Conn, session: &str, after: u64) -> Result<Log, Trouble> {
        let mut log = Log { conn, session: session.to_owned(), attach: 0, first: None };
        let params =
            json!({ "sessionId": session, "after": after, "observe": true, "facts": true });
        log.attach = log.conn.send(Method::ControlAttach.name(), &params).await?;
        log.first = match log.conn.next().await? {
            Heard::Answer(_, Err(error)) => return Err(Trouble::Refused(error)),
            heard => Some(heard),
        };
        Ok(log)
    }

    /// The next entry. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Result<Entry, Trouble> {
        loop {
            let heard = match self.first.take() {
                Some(heard) => heard,
                None => self.conn.next().await?,
            };
            match heard {
                Heard::Fact(fact) => return Ok(Entry::Fact(fact)),
                Heard::Answer(_, Err(error)) => return Err(Trouble::Refused(error)),
                Heard::Answer(id, Ok(_)) if id == self.attach => return Ok(Entry::Live),
                Heard::Answer(..) | Heard::Else => {}
            }
        }
    }

    /// Everything that there is, in order.
    pub(crate) async fn read(mut self, mut each: impl FnMut(Fact)) -> Result<(), Trouble> {
        while let Entry::Fact(fact) = self.next().await? {
            each(fact);
        }
        Ok(())
    }

    /// Whether [`Log::next`] has something without waiting.
    pub(crate) fn has_more(&self) -> bool {
        self.first.is_some() || self.conn.has_more()
    }

    /// Asks whether the session is still there: the log of one that was deleted falls silent. If it
    /// is gone, [`Log::next`] says so.
    pub(crate) async fn look(&mut self) -> Result<(), Trouble> {
        let params: Value = json!({ "sessionId": self.session });
        self.conn.send(Method::ControlQueue.name(), &params).await.map(drop)
    }
}
