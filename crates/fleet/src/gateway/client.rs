//! Clients: what they say, and what is left to do when they go.

use super::{
    Gateway, GatewayNote, GatewayOutput, HostConnectionId, HostId, ask::Asked,
    config::KEPT_BYTES_MIN, merge::MergedRequest, opening::Opening, session::Use,
};
use jackfield_hub::{ConnId, SessionId, Tenant, Time};
use jackfield_protocol::{
    Fault, Frame, Kind,
    acp::{GatewayRoute, Method},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

#[derive(Debug, Default)]
pub(super) struct Client {
    /// Whose client it is, and how that is said on its host connections; nobody's is the operator's.
    pub(super) tenant: Option<(Arc<Tenant>, Frame)>,
    /// What it asked and waits for, by its own id.
    pub(super) requests: BTreeMap<Box<str>, Open>,
    pub(super) sessions: BTreeMap<SessionId, Use>,
    /// One for each host.
    pub(super) host_conns: BTreeMap<HostId, HostConnectionId>,
    /// Where goes what is about no session.
    pub(super) home: Option<HostConnectionId>,
    pub(super) opening: Opening,
    /// Requests that wait for a host that may have them, and since when.
    pub(super) unplaced: VecDeque<(Box<str>, Time)>,
    /// What hosts asked it, by our id.
    pub(super) asked: BTreeMap<u64, Asked>,
    pub(super) next_ask: u64,
    /// Bytes handed to it and not yet written.
    pub(super) unwritten: usize,
    /// Bytes of it that its host connections have not taken.
    pub(super) untaken: usize,
    /// Bytes of its open requests, and of what waits for a session.
    pub(super) kept: usize,
    /// Its reading is paused.
    pub(super) paused: bool,
    /// Will say nothing more.
    pub(super) finished: bool,
    /// Was hung up on: what it says now is not heard.
    pub(super) closing: bool,
    /// Messages that went nowhere.
    unrouted: u64,
}

/// A request without an answer. It is kept whole, to be sent again when its host is lost.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) frame: Frame,
    pub(super) to: To,
    /// Which came first.
    pub(super) order: u64,
    /// By which host connection, and under which id of ours.
    pub(super) sent: Option<(HostConnectionId, u64)>,
    /// How often a host would not have it.
    pub(super) bounces: u32,
    /// The client wants it no more, and whoever gets it is told so.
    pub(super) cancelled: bool,
    /// Since when no host that speaks has had it, if one is to be chosen for it.
    pub(super) lost: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum To {
    /// The owner of this session.
    Session(SessionId),
    /// A host that is chosen for it.
    New,
    Home,
    /// Every host the client has to do with; the answer from home counts.
    Opening,
    /// Every host there is.
    All,
}

impl Gateway {
    pub(super) fn on_opened(&mut self, conn: ConnId) {
        self.counters.clients_opened += 1;
        let known = self.clients.insert(conn, Client::default());
        assert!(known.is_none(), "a conn id is used once");
        let open = self.clients.len();
        if self.config.limits.clients_max < open {
            let what = format!("{} clients are connected, as many as may be", open - 1);
            self.say(conn, &Frame::error_for("null", &Fault::Overloaded { what }));
            self.hang_up(conn);
        } else if self.stopping {
            self.hang_up(conn);
        }
    }

    pub(super) fn on_client(&mut self, conn: ConnId, frame: &Frame) {
        if self.clients.get(&conn).is_none_or(|it| it.closing) {
            return;
        }
        self.counters.heard(frame);
        match frame.kind() {
            Kind::Request => self.on_request(conn, frame),
            Kind::Notification => self.on_notice(conn, frame),
            Kind::Response => self.on_client_answers(conn, frame),
        }
    }

    /// A line that is no message: it is answered, and the next one is heard.
    pub(super) fn on_invalid_frame(&mut self, conn: ConnId, fault: &Fault) {
        self.counters.refused += 1;
        self.say(conn, &Frame::error_for(fault.request_id(), fault));
    }

    fn on_request(&mut self, conn: ConnId, frame: &Frame) {
        let id = frame.id().expect("a request has an id");
        if let Err(fault) = self.may_ask(conn, frame) {
            // Not `fail`: that would end the open request of the same id.
            self.say(conn, &Frame::error_for(id, &fault));
            return self.unrouted(conn, frame, &fault);
        }
        let session = frame.session_id().map(|it| SessionId::from(&*it));
        let method = frame.known_method();
        let route = method.map_or(GatewayRoute::Owner, |it| it.row().route);
        match (route, method, session) {
            (GatewayRoute::Opening, Some(Method::ControlConnect), _) => {
                self.on_opening(conn, frame, Opening::CONNECT);
            }
            (GatewayRoute::Opening, _, _) if self.begins(conn) => {
                self.on_opening(conn, frame, Opening::HELLO);
            }
            (GatewayRoute::AllHosts, Some(method), _) => {
                let request = MergedRequest::from_method(method);
                self.ask_all(conn, frame, request.expect("a method for all hosts is merged"));
            }
            // A client of the fleet has no host to stop, and is no gateway.
            (GatewayRoute::Refused, _, _) => {
                let method = frame.method().unwrap_or_default().into_owned();
                let fault = Fault::NotServed { method };
                self.say(conn, &Frame::error_for(id, &fault));
                self.unrouted(conn, frame, &fault);
            }
            // An import that names a session continues on its host.
            (GatewayRoute::Placed, Some(Method::ControlImport), Some(session)) => {
                self.ask_in(conn, &session, frame);
            }
            (GatewayRoute::Placed, _, _) => {
                self.begin(conn, frame.clone(), To::New);
                self.place(conn, id);
            }
            (_, _, Some(session)) => self.ask_in(conn, &session, frame),
            (_, _, None) => {
                self.begin(conn, frame.clone(), To::Home);
                self.place(conn, id);
            }
        }
    }

    fn may_ask(&self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        self.may_name(conn, frame)?;
        let (client, limits) = (&self.clients[&conn], &self.config.limits);
        let overloaded = |what: String| Err(Fault::Overloaded { what });
        if limits.pending_max <= client.requests.len() {
            return overloaded(format!("{} requests in flight", client.requests.len()));
        }
        if client.requests.contains_key(frame.id().expect("a request has an id")) {
            let why = "this id is in use by an open request".to_owned();
            return Err(Fault::InvalidRequest { why });
        }
        self.check_kept(conn, frame)
    }

    /// Whether a frame may be kept until it is answered, or until the owner of its session is known.
    pub(super) fn check_kept(&self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        let (limits, own) = (&self.config.limits, self.clients[&conn].kept);
        let wanted = own + frame.bytes().len();
        if 0 < own && limits.kept_bytes_max < wanted {
            let what = format!("{own} bytes of this client wait for an answer; wait for one");
            return Err(Fault::Overloaded { what });
        }
        if wanted <= KEPT_BYTES_MIN {
            return Ok(());
        }
        let all: usize = self.clients.values().map(|it| it.kept).sum();
        if 0 < all && limits.kept_bytes_all_max < all + frame.bytes().len() {
            let what = format!("{all} bytes of all clients wait for an answer; try again later");
            return Err(Fault::Overloaded { what });
        }
        Ok(())
    }

    /// Takes a request in: it is answered from now on, whatever happens.
    pub(super) fn begin(&mut self, conn: ConnId, frame: Frame, to: To) {
        let order = self.next_id();
        let client = self.clients.get_mut(&conn).expect("it spoke");
        client.kept += frame.bytes().len();
        let id = frame.id().expect("a request has an id").into();
        let open = Open { frame, to, order, sent: None, bounces: 0, cancelled: false, lost: None };
        let known = client.requests.insert(id, open);
        assert!(known.is_none(), "`may_ask` refuses an id that is in use");
    }

    /// Answers a request of a client.
    pub(super) fn finish(&mut self, conn: ConnId, answer: &Frame, from: Option<HostConnectionId>) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let id = answer.id().expect("an answer has an id");
        let Some(open) = client.requests.remove(id) else { return };
        client.kept -= open.frame.bytes().len();
        client.opening.answered(id);
        self.on_done(conn, &open.frame, answer);
        self.tell_client(conn, answer.bytes().clone(), from);
        if let To::Session(session) = open.to {
            self.leave_if_idle(conn, &session);
        }
        self.close_finished(conn);
    }

    pub(super) fn fail(&mut self, conn: ConnId, id: &str, fault: &Fault) {
        self.counters.refused += 1;
        self.finish(conn, &Frame::error_for(id, fault), None);
    }

    fn on_notice(&mut self, conn: ConnId, frame: &Frame) {
        if let Err(fault) = self.may_name(conn, frame) {
            return self.unrouted(conn, frame, &fault);
        }
        match (frame.known_method(), frame.session_id()) {
            (Some(Method::ControlTenant), _) => self.on_bind(conn, frame),
            (Some(Method::CancelRequest), _) => self.on_withdrawn(conn, frame),
            (Some(Method::ControlConnect), _) => self.on_opening(conn, frame, Opening::CONNECT),
            (Some(Method::ControlRelay), _) => {}
            (method, Some(session)) => {
                let session = SessionId::from(&*session);
                if method == Some(Method::SessionCancel) {
                    self.cancel_prompts(conn, &session);
                }
                self.notify_in(conn, &session, frame);
            }
            (_, None) => {
                let Some(host_conn) = self.clients[&conn].home else {
                    let why = "say `initialize` first".to_owned();
                    return self.unrouted(conn, frame, &Fault::NoHost { why });
                };
                self.send_to_host(host_conn, frame.bytes().clone());
            }
        }
    }

    /// A client withdraws a request of its own: hop by hop, so the id is translated.
    fn on_withdrawn(&mut self, conn: ConnId, frame: &Frame) {
        let client = self.clients.get_mut(&conn).expect("it spoke");
        let Some((id, open)) = frame.request_id().and_then(|id| client.requests.get_key_value(id))
        else {
            // It was answered in the meantime.
            return;
        };
        let (id, sent, to_all) = (id.clone(), open.sent, open.to == To::All);
        match sent {
            Some((host_conn, ours)) => {
                client.requests.get_mut(&id).expect("found above").cancelled = true;
                self.withdraw_from(host_conn, ours);
            }
            // Nobody has got it: there is nothing to undo.
            None if !to_all => self.fail(conn, &id, &Fault::Cancelled),
            None => {}
        }
    }

    /// Told now and then: a client that goes on for ever must not fill the log.
    pub(super) fn unrouted(&mut self, conn: ConnId, frame: &Frame, fault: &Fault) {
        self.counters.refused += 1;
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.unrouted += 1;
        if client.unrouted.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            self.note(GatewayNote::Unrouted { conn, method, why: fault.to_string() });
        }
    }

    /// It has closed its side: it is served until it has its answers, and can answer nothing.
    pub(super) fn on_finished(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.finished = true;
        self.refuse_passing(conn);
        self.close_finished(conn);
    }

    /// Hangs up on a client that has said everything and heard everything.
    fn close_finished(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get(&conn) else { return };
        if client.finished && client.requests.is_empty() {
            self.hang_up(conn);
        }
    }

    pub(super) fn hang_up(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if !client.closing {
            client.closing = true;
            self.outputs.push_back(GatewayOutput::CloseClient { conn });
            self.drop_host_conns(conn);
        }
    }

    pub(super) fn on_client_gone(&mut self, conn: ConnId) {
        if !self.clients.contains_key(&conn) {
            return;
        }
        self.counters.clients_closed += 1;
        self.drop_host_conns(conn);
        self.clients.remove(&conn);
        self.merges.retain(|_, it| it.conn != conn);
        self.stop_if_left();
    }
}
