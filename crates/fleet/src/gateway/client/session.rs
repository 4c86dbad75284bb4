//! A client's use of a session: the host connection, the waiting messages, the replay position.

use super::pending_requests::PendingRequests;
use crate::gateway::{frame_fields::AttachOptions, host_connection_id::HostConnectionId};
use jackfield_hub::{SessionId, Time};
use jackfield_hub_client::{ReplayPosition, log_head, replays_history};
use jackfield_protocol::{Frame, acp::Method, is_planted};
use serde_json::json;
use std::collections::VecDeque;

/// A session that a client uses.
#[derive(Debug, Default)]
pub(super) struct ClientSession {
    /// The connection to the owner, if the owner is known.
    host_conn: Option<HostConnectionId>,
    /// Messages that wait for the owner, in order, and since when.
    waiting: VecDeque<(Time, WaitingMessage)>,
    /// The options of the client's subscription, if it has one.
    attached: Option<AttachOptions>,
    /// The session is being imported by the host of `host_conn`. It has no owner yet, so a search
    /// would not find it.
    is_importing: bool,
    position: ReplayPosition,
    /// Since when no owner has shown that it serves the session.
    unserved_since: Option<Time>,
}

#[derive(Debug)]
pub(super) enum WaitingMessage {
    Request(Box<str>),
    Notification(Frame),
}

impl ClientSession {
    /// A session whose first frame precedes the response that names it.
    pub(super) fn from_first_frame(host_conn: HostConnectionId, seq: u64) -> ClientSession {
        let mut position = ReplayPosition::up_to(0);
        position.accept_frame(seq);
        ClientSession {
            host_conn: Some(host_conn),
            attached: Some(AttachOptions::default()),
            position,
            ..ClientSession::default()
        }
    }

    pub(super) fn host_conn(&self) -> Option<HostConnectionId> {
        self.host_conn
    }

    /// Whether nothing needs the session here: no subscription, no import, no waiting message.
    pub(super) fn is_unused(&self) -> bool {
        self.attached.is_none() && !self.is_importing && self.waiting.is_empty()
    }

    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// The oldest waiting message waits since then.
    pub(super) fn first_waiting_since(&self) -> Option<Time> {
        self.waiting.front().map(|(since, _)| *since)
    }

    pub(super) fn push_waiting(&mut self, since: Time, message: WaitingMessage) {
        self.waiting.push_back((since, message));
    }

    pub(super) fn pop_waiting(&mut self) -> Option<WaitingMessage> {
        self.waiting.pop_front().map(|(_, message)| message)
    }

    pub(super) fn take_waiting(&mut self) -> VecDeque<(Time, WaitingMessage)> {
        std::mem::take(&mut self.waiting)
    }

    /// A client that sends a prompt is attached to the session.
    pub(super) fn attach_by_prompt(&mut self) {
        self.attached.get_or_insert_default();
    }

    /// The client asked for a replay from an earlier position.
    pub(super) fn request_replay(&mut self) {
        self.position.request_replay();
    }

    /// The owner is known.
    pub(super) fn set_owner(&mut self, host_conn: HostConnectionId) {
        self.host_conn = Some(host_conn);
    }

    /// The request that attaches a subscribed client again, after the last frame it received.
    pub(super) fn attach_request(
        &mut self,
        session: &SessionId,
        requests: &PendingRequests,
    ) -> Option<Frame> {
        let AttachOptions { observe, facts } = self.attached?;
        let after = self.position.resume_after()?;
        if !is_planted("gateway-replays-twice") && self.has_waiting_replay(requests) {
            return None;
        }
        let params = json!({
            "sessionId": &**session, "after": after, "observe": observe, "facts": facts,
        });
        Some(Frame::request("0", Method::ControlAttach.name(), &params.to_string()))
    }

    /// Whether a waiting request replays the session anyway. Attaching in addition would replay it
    /// twice.
    fn has_waiting_replay(&self, requests: &PendingRequests) -> bool {
        self.waiting.iter().any(|(_, it)| match it {
            WaitingMessage::Request(id) => {
                requests.get(id).is_some_and(|it| replays_history(it.frame()))
            }
            WaitingMessage::Notification(_) => false,
        })
    }

    /// Unbinds the session from its connection, which is returned.
    pub(super) fn take_owner(&mut self) -> Option<HostConnectionId> {
        let host_conn = self.host_conn.take()?;
        self.position.on_connection_lost();
        self.is_importing = false;
        Some(host_conn)
    }

    /// Puts requests that were sent to a lost owner before the waiting messages. Returns since when
    /// no owner serves the session, if messages wait.
    pub(super) fn requeue_requests(&mut self, requests: Vec<Box<str>>, now: Time) -> Option<Time> {
        let since = *self.unserved_since.get_or_insert(now);
        for id in requests.into_iter().rev() {
            if !is_planted("gateway-forgets-open-request") {
                self.waiting.push_front((since, WaitingMessage::Request(id)));
            }
        }
        (!self.waiting.is_empty()).then_some(since)
    }

    /// The client no longer subscribes to the session.
    pub(super) fn clear_attached(&mut self) {
        self.attached = None;
    }

    /// The session was deleted.
    pub(super) fn on_deleted(&mut self) {
        (self.attached, self.is_importing) = (None, false);
    }

    /// The client is attached by a request with these options.
    pub(super) fn set_attached(&mut self, options: AttachOptions) {
        self.attached = Some(options);
    }

    /// The host of this connection imports the session.
    pub(super) fn start_import(&mut self, host_conn: HostConnectionId) {
        (self.host_conn, self.is_importing) = (Some(host_conn), true);
    }

    /// A response opened the session, with this end of its log. A frame may have preceded it.
    pub(super) fn on_opened(&mut self, host_conn: HostConnectionId, head: Option<u64>) {
        if self.attached.is_none() {
            self.position = head.map_or_else(ReplayPosition::default, ReplayPosition::up_to);
            (self.host_conn, self.attached) = (Some(host_conn), Some(AttachOptions::default()));
        }
    }

    /// The owner has answered.
    pub(super) fn mark_served(&mut self) {
        self.unserved_since = None;
    }

    /// A response attached the client.
    pub(super) fn on_attach_response(&mut self, answer: &Frame) {
        self.position.complete_replay(log_head(answer));
    }

    /// Everything up to this sequence number was delivered.
    pub(super) fn complete_replay(&mut self, head: u64) {
        self.position.complete_replay(Some(head));
    }

    /// Records a frame of the owner. Returns whether the client has not received it yet.
    pub(super) fn accept_frame(&mut self, seq: Option<u64>) -> bool {
        self.mark_served();
        let Some(seq) = seq else { return true };
        self.attached.get_or_insert_default();
        self.position.accept_frame(seq)
    }
}
