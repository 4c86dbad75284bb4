//! Which clients receive a message of a worker.

use super::{
    super::{ids::SessionScope, tables::RoutingTables},
    Worker,
};
use jackfield_hub::ConnId;
use jackfield_protocol::{Frame, is_planted};
use std::sync::Arc;

/// The clients that receive a message of a worker.
pub(in super::super) enum MessageRecipients {
    One(ConnId),
    Many(Vec<ConnId>),
    /// The clients of a session that is being opened, once it has a name.
    Deferred(Arc<str>),
    Unknown(&'static str),
}

impl MessageRecipients {
    /// Avoids an allocation in the common case of one client.
    fn from_conns(conns: &[ConnId]) -> MessageRecipients {
        match conns {
            [one] => MessageRecipients::One(*one),
            many => MessageRecipients::Many(many.to_vec()),
        }
    }
}

impl Worker {
    pub(in super::super) fn find_recipients(
        &self,
        tables: &RoutingTables,
        frame: &Frame,
    ) -> MessageRecipients {
        let (outer, inner) = (frame.outer_session_id(), frame.session_id());
        let mut named = None;
        for id in [outer, inner].into_iter().flatten() {
            let route = tables.sessions.find_route(self.scope, &id);
            match route
                .filter(|it| it.worker() == self.id || is_planted("bus-mixes-sessions-of-workers"))
            {
                Some(route) => return MessageRecipients::from_conns(route.clients()),
                None => named = Some(id),
            }
        }
        match named {
            Some(id) if 0 < self.opening => MessageRecipients::Deferred(id.as_ref().into()),
            None if matches!(self.scope, SessionScope::Worker(_)) => {
                let bound: Vec<ConnId> = tables.bindings.bound_clients(self.id).collect();
                MessageRecipients::from_conns(&bound)
            }
            Some(_) => MessageRecipients::Unknown("no client has used its session"),
            None => MessageRecipients::Unknown("the message names no session"),
        }
    }
}
