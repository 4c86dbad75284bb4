//! Workers that know plain ACP only: the `sessionId` beside `params` is removed from messages to
//! them, and added to their messages.

use super::{
    super::{config::OuterSessionId, tables::RoutingTables},
    Worker,
};
use bytes::Bytes;
use jackfield_hub::ConnId;
use jackfield_protocol::Frame;
use std::{borrow::Cow, sync::Arc};

impl Worker {
    /// The message of a client as the worker gets it, and the outer session id that was removed,
    /// which is recorded for the session that the message names.
    pub(in super::super) fn remove_outer_id<'a>(
        &self,
        tables: &mut RoutingTables,
        conn: ConnId,
        frame: &'a Frame,
    ) -> (Cow<'a, Frame>, Option<Arc<str>>) {
        if self.outer_session_id == OuterSessionId::Forward {
            return (Cow::Borrowed(frame), None);
        }
        let Some(outer) = frame.outer_session_id() else { return (Cow::Borrowed(frame), None) };
        let outer: Arc<str> = outer.as_ref().into();
        if let Some(session) = frame.session_id() {
            tables.outer_ids.set_outer_id(conn, self.scope, &session, &outer);
        }
        (Cow::Owned(frame.without_outer_session_id()), Some(outer))
    }

    /// The text of a message of the worker for this client.
    pub(in super::super) fn add_outer_id(
        &self,
        tables: &RoutingTables,
        conn: ConnId,
        frame: &Frame,
    ) -> Bytes {
        let outer = (self.outer_session_id == OuterSessionId::Restore)
            .then(|| frame.session_id())
            .flatten()
            .and_then(|it| tables.outer_ids.find_outer_id(conn, self.scope, &it));
        match outer {
            Some(outer) => frame.with_outer_session_id(outer).into_bytes(),
            None => frame.bytes().clone(),
        }
    }
}
