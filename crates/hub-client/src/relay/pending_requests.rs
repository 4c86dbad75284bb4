//! The requests of a relayed client that have no response yet.

use super::replays_history;
use jackfield_protocol::{Frame, acp::Method};
use std::{borrow::Cow, collections::BTreeMap};

/// A request without a response. The frame is kept, to be sent again on the next connection.
#[derive(Debug)]
pub(super) struct PendingRequest {
    frame: Frame,
    /// The order of arrival.
    order: u64,
    /// The client canceled it.
    is_canceled: bool,
}

/// Requests by the client's id.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    by_id: BTreeMap<Box<str>, PendingRequest>,
    last_order: u64,
}

impl PendingRequest {
    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(super) fn id(&self) -> &str {
        self.frame.id().unwrap_or("null")
    }

    pub(super) fn is_canceled(&self) -> bool {
        self.is_canceled
    }

    fn is_in(&self, session: &str) -> bool {
        self.frame.session_id().is_some_and(|it| it == session)
    }

    /// Whether the request has the same effect if an earlier daemon has executed it.
    fn is_repeatable(&self) -> bool {
        match self.frame.known_method() {
            Some(Method::SessionFork) => false,
            // The hub finds the first `session/new` by its key.
            Some(
                Method::SessionNew
                | Method::Initialize
                | Method::SessionList
                | Method::ControlConnect
                | Method::ControlSessions
                | Method::ControlAsks
                | Method::ControlFindKey
                | Method::ControlStatus
                | Method::ControlOperator,
            ) => true,
            _ => self.frame.session_id().is_some(),
        }
    }
}

impl PendingRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn add(&mut self, frame: Frame) {
        let Some(id) = frame.id().map(Box::from) else { return };
        self.last_order += 1;
        let request = PendingRequest { frame, order: self.last_order, is_canceled: false };
        self.by_id.insert(id, request);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<PendingRequest> {
        self.by_id.remove(id)
    }

    /// The pending request with this frame.
    pub(super) fn get(&self, frame: &Frame) -> Option<&PendingRequest> {
        self.by_id.get(frame.id()?).filter(|it| it.frame == *frame)
    }

    pub(super) fn mark_canceled(&mut self, id: &str) {
        if let Some(request) = self.by_id.get_mut(id) {
            request.is_canceled = true;
        }
    }

    pub(super) fn mark_prompts_canceled(&mut self, session: &str) {
        for request in self.by_id.values_mut().filter(|it| it.is_in(session)) {
            request.is_canceled |= request.frame.is_method(Method::SessionPrompt);
        }
    }

    /// The sessions in which the client waits for the end of a turn.
    pub(super) fn prompted_sessions(&self) -> impl Iterator<Item = String> {
        let prompts = self.by_id.values().filter(|it| it.frame.is_method(Method::SessionPrompt));
        prompts.filter_map(|it| it.frame.session_id().map(Cow::into_owned))
    }

    pub(super) fn has_replay_of(&self, session: &str) -> bool {
        self.by_id.values().any(|it| it.is_in(session) && replays_history(&it.frame))
    }

    pub(super) fn in_order(&self) -> Vec<&PendingRequest> {
        let mut requests: Vec<&PendingRequest> = self.by_id.values().collect();
        requests.sort_unstable_by_key(|it| it.order);
        requests
    }

    pub(super) fn take_of_session(&mut self, session: &str) -> Vec<PendingRequest> {
        self.take(|it| it.is_in(session))
    }

    pub(super) fn take_unrepeatable(&mut self) -> Vec<PendingRequest> {
        self.take(|it| !it.is_repeatable())
    }

    pub(super) fn take_all(&mut self) -> Vec<PendingRequest> {
        self.take(|_| true)
    }

    fn take(&mut self, is_taken: impl Fn(&PendingRequest) -> bool) -> Vec<PendingRequest> {
        let mut taken: Vec<PendingRequest> =
            self.by_id.extract_if(.., |_, it| is_taken(it)).map(|(_, it)| it).collect();
        taken.sort_unstable_by_key(|it| it.order);
        taken
    }
}
