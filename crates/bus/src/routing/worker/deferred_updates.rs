//! Updates that a worker sends for a session before it has answered the request that opens it.

use super::super::context::BusContext;
use jackfield_hub::{
    budget::{ByteCharge, ByteOwner},
    limits,
};
use jackfield_protocol::Frame;
use std::{collections::VecDeque, sync::Arc};

/// Updates for sessions that the worker has not named yet, in order.
#[derive(Debug, Default)]
pub(super) struct DeferredUpdates {
    updates: VecDeque<DeferredUpdate>,
    bytes: ByteOwner,
}

#[derive(Debug)]
struct DeferredUpdate {
    session: Arc<str>,
    frame: Frame,
    _charge: ByteCharge,
}

impl DeferredUpdates {
    /// Returns whether there was room for the update.
    pub(super) fn add_update(&mut self, cx: &BusContext, session: Arc<str>, frame: Frame) -> bool {
        match cx.unnamed_updates().charge(&self.bytes, frame.bytes().len()) {
            Ok(charge) if self.updates.len() < limits::EARLY_MAX => {
                self.updates.push_back(DeferredUpdate { session, frame, _charge: charge });
                true
            }
            _ => false,
        }
    }

    /// Takes the updates of a session that has a name now.
    pub(super) fn take_session(&mut self, session: &str) -> Vec<Frame> {
        if self.updates.is_empty() {
            return Vec::new();
        }
        let updates = std::mem::take(&mut self.updates);
        let (named, unnamed): (VecDeque<_>, _) =
            updates.into_iter().partition(|it| *it.session == *session);
        self.updates = unnamed;
        named.into_iter().map(|it| it.frame).collect()
    }

    /// Drops all updates, and returns how many there were.
    pub(super) fn drop_all(&mut self) -> usize {
        let count = self.updates.len();
        self.updates.clear();
        count
    }
}
