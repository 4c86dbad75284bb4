//! Workers: what they say, and who hears it.

use super::{
    Bus, BusNote, WorkerId,
    calls::{Call, CallKind, Calls, Peer},
    client::{WITHDRAWS, ours},
    output::MessageSender,
    pool::PoolId,
    sessions::Sessions,
};
use bytes::Bytes;
use jackfield_hub::{
    ConnId, Time,
    budget::{ByteCharge, ByteOwner},
    limits,
};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, Kind, Splice, is_planted};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

/// What may name the request it is about.
const ELICITS: &str = Method::ElicitationCreate.name();

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) pool: PoolId,
    /// Its place in the pool; a retiring worker has lost it.
    pub(super) slot: Option<usize>,
    pub(super) calls: Calls,
    /// Sessions of it that clients use, and those that are being opened.
    pub(super) used_sessions: usize,
    pub(super) opening: usize,
    /// Clients that stay with it, and their sessions, if the pool is one of connections.
    pub(super) bound: BTreeSet<ConnId>,
    pub(super) sessions: Sessions,
    /// What it said of sessions that it has not named yet, in order.
    held: VecDeque<Held>,
    unnamed_updates: ByteOwner,
    /// Bytes that it has not taken, and whose they are.
    pub(super) backlog: ByteCharge,
    pub(super) sent: VecDeque<(Option<ConnId>, usize)>,
    /// So many clients must read before it is read again.
    pub(super) held_by: usize,
    /// Asked to stop.
    pub(super) stopping: bool,
    /// Gets no new sessions, and is stopped when nobody uses it.
    pub(super) retiring: bool,
    pub(super) started: bool,
    pub(super) heard: Time,
    unrouted: u64,
}

/// What a worker said of a session that it has not named yet.
#[derive(Debug)]
struct Held {
    session: Arc<str>,
    text: Bytes,
    _charge: ByteCharge,
}

impl Worker {
    pub(super) fn new(pool: PoolId, slot: usize, now: Time, backlog: ByteCharge) -> Worker {
        Worker {
            pool,
            slot: Some(slot),
            calls: Calls::default(),
            used_sessions: 0,
            opening: 0,
            bound: BTreeSet::new(),
            sessions: Sessions::default(),
            held: VecDeque::new(),
            unnamed_updates: ByteOwner::default(),
            backlog,
            sent: VecDeque::new(),
            held_by: 0,
            stopping: false,
            retiring: false,
            started: false,
            heard: now,
            unrouted: 0,
        }
    }

    /// Whether it may be given something new.
    pub(super) fn is_fit(&self) -> bool {
        !self.stopping && !self.retiring
    }

    pub(super) fn load(&self) -> usize {
        self.used_sessions + self.opening + self.bound.len()
    }
}

impl Bus {
    pub(super) fn on_worker(&mut self, worker: WorkerId, frame: &Frame) {
        let Some(it) = self.workers.get_mut(&worker) else { return };
        it.heard = self.now;
        self.counters.heard(frame);
        match frame.kind() {
            Kind::Response => self.on_worker_answers(worker, frame),
            Kind::Notification => self.on_news(worker, frame),
            Kind::Request => self.ask_client(worker, frame),
        }
    }

    fn on_worker_answers(&mut self, worker: WorkerId, frame: &Frame) {
        let it = self.workers.get_mut(&worker).expect("it spoke");
        let call = ours(frame).and_then(|id| it.calls.answered(id).map(|call| (id, call)));
        let Some((ours, call)) = call else {
            // Often the answer to a client that has gone since.
            self.counters.stray += 1;
            return;
        };
        it.opening -= usize::from(call.kind == CallKind::Opens);
        let Peer::Client(conn) = call.by else { return self.retire_if_idle(worker) };
        self.pending -= 1;
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.calls.settled(&call.id, ours);
        match self.learn(worker, conn, frame, &call.kind) {
            Ok(()) => {
                let text = frame.with_id(&call.id).into_bytes();
                self.tell_client(conn, text, Some(worker));
            }
            Err(fault) => self.say(conn, &Frame::error_for(&call.id, &fault)),
        }
        self.drop_held(worker);
        self.close_finished(conn);
        self.retire_if_idle(worker);
        self.stop_if_drained();
    }

    /// What an answer says about sessions.
    fn learn(
        &mut self,
        worker: WorkerId,
        conn: ConnId,
        frame: &Frame,
        kind: &CallKind,
    ) -> Result<(), Fault> {
        let home = self.home(worker).expect("it spoke");
        if let CallKind::Closes(id) = kind
            && frame.result().is_some()
        {
            self.forget(home, id);
        }
        let Some(id) = frame.session_id() else { return Ok(()) };
        let other = self.table(home).and_then(|it| it.get(&id)).map(|it| it.worker);
        if other.is_some_and(|it| it != worker && self.is_alive(it)) {
            let why = format!(
                "the worker named its session `{id}`, which is the name of another worker's: give \
                 the pool one instance, or `\"affinity\": \"connection\"`"
            );
            return Err(Fault::Internal { why });
        }
        self.make_room(home, [Some(&id), None])?;
        self.attach(home, &id, worker, conn);
        if !is_planted("bus-drops-early-updates") {
            self.tell_held(worker, &id);
        }
        Ok(())
    }

    fn on_news(&mut self, worker: WorkerId, frame: &Frame) {
        if frame.method().is_some_and(|it| WITHDRAWS.contains(&&*it)) {
            return self.withdraw(worker, frame);
        }
        match self.audience(worker, frame) {
            Audience::These(conns) => match conns.split_last() {
                Some((last, others)) => {
                    for conn in others {
                        self.tell_client(*conn, frame.bytes().clone(), Some(worker));
                    }
                    self.tell_client(*last, frame.bytes().clone(), Some(worker));
                }
                None => self.on_nobody(worker, frame, "nobody uses its session now"),
            },
            Audience::One(conn) => self.tell_client(conn, frame.bytes().clone(), Some(worker)),
            Audience::Later(id) => self.hold(worker, id, frame),
            Audience::Nobody(why) => self.on_nobody(worker, frame, why),
        }
    }

    /// A worker takes back what it asked.
    fn withdraw(&mut self, worker: WorkerId, frame: &Frame) {
        let asked = frame.request_id().and_then(|id| self.workers[&worker].calls.whom(id));
        let Some((Peer::Client(conn), ours)) = asked else { return };
        let ours = ours.to_string();
        let splice = Splice { request_id: Some(&ours), ..Splice::default() };
        self.tell_client(conn, frame.spliced(splice).into_bytes(), Some(worker));
    }

    /// A worker asks: whoever used the session last answers.
    fn ask_client(&mut self, worker: WorkerId, frame: &Frame) {
        // It may be about a request instead of a session.
        let about = frame.request_id().filter(|_| frame.method().as_deref() == Some(ELICITS));
        let about = about.and_then(|it| it.parse().ok());
        let call = about.and_then(|it| self.workers[&worker].calls.about(it));
        let about = match call {
            Some(Call { by: Peer::Client(conn), id, .. }) => Some((*conn, Arc::clone(id))),
            _ => None,
        };
        let asked = match (&about, self.audience(worker, frame)) {
            (Some((conn, _)), _) => Ok(*conn),
            (None, Audience::One(conn)) => Ok(conn),
            (None, Audience::These(conns)) => conns.last().copied().ok_or("its client is gone"),
            (None, Audience::Later(_)) => Err("it has not told the name of that session yet"),
            (None, Audience::Nobody(why)) => Err(why),
        };
        let listens =
            |it: &ConnId| self.clients.get(it).is_some_and(|it| !it.finished && !it.closing);
        let conn = match asked {
            Ok(conn) if listens(&conn) => conn,
            Ok(_) => return self.refuse_worker(worker, frame, "its client has gone"),
            Err(why) => return self.refuse_worker(worker, frame, why),
        };
        let ours = self.next_id();
        let id: Arc<str> = frame.id().expect("a request has an id").into();
        let it = self.workers.get_mut(&worker).expect("it spoke");
        it.calls.ask(Arc::clone(&id), Peer::Client(conn), ours);
        let client = self.clients.get_mut(&conn).expect("it listens");
        client.calls.owe(ours, Call { by: Peer::Worker(worker), id, kind: CallKind::Plain });
        self.pending += 1;
        let ours = ours.to_string();
        let request_id = about.as_ref().map(|(_, id)| &**id);
        let splice = Splice { id: Some(&ours), request_id, ..Splice::default() };
        self.tell_client(conn, frame.spliced(splice).into_bytes(), Some(worker));
    }

    fn refuse_worker(&mut self, worker: WorkerId, frame: &Frame, why: &'static str) {
        let fault = Fault::NoClient { why: why.to_owned() };
        let id = frame.id().expect("a request has an id");
        self.tell_worker(worker, Frame::error_for(id, &fault).into_bytes(), None);
        self.on_nobody(worker, frame, why);
    }

    fn audience(&self, worker: WorkerId, frame: &Frame) -> Audience {
        let it = &self.workers[&worker];
        let pool = &self.pools[&it.pool];
        let is_bound = pool.spec.affinity == super::SessionAffinity::Connection;
        let table = if is_bound { &it.sessions } else { &pool.sessions };
        let (outer, inner) = (frame.outer_session_id(), frame.session_id());
        let mut named = None;
        for id in [outer, inner].into_iter().flatten() {
            match table
                .get(&id)
                .filter(|it| it.worker == worker || is_planted("bus-mixes-sessions-of-workers"))
            {
                Some(session) => return Audience::of(&session.clients),
                None => named = Some(id),
            }
        }
        match named {
            Some(id) if 0 < it.opening => Audience::Later(id.as_ref().into()),
            None if is_bound => Audience::of(&it.bound.iter().copied().collect::<Vec<_>>()),
            Some(_) => Audience::Nobody("no client has used its session"),
            None => Audience::Nobody("it names no session"),
        }
    }

    /// A worker speaks of a session before it has answered the request that opens it.
    fn hold(&mut self, worker: WorkerId, id: Arc<str>, frame: &Frame) {
        let it = self.workers.get_mut(&worker).expect("it spoke");
        match self.unnamed_updates.charge(&it.unnamed_updates, frame.bytes().len()) {
            Ok(charge) if it.held.len() < limits::EARLY_MAX => {
                it.held.push_back(Held {
                    session: id,
                    text: frame.bytes().clone(),
                    _charge: charge,
                });
            }
            _ => self.on_nobody(worker, frame, "too much was said before its session was named"),
        }
    }

    /// The session has a name now: what was said of it before comes before the answer.
    fn tell_held(&mut self, worker: WorkerId, id: &str) {
        let it = self.workers.get_mut(&worker).expect("it spoke");
        if it.held.is_empty() {
            return;
        }
        let (of_it, others) =
            std::mem::take(&mut it.held).into_iter().partition(|it| *it.session == *id);
        it.held = others;
        let home = self.home(worker).expect("it spoke");
        let session = self.table(home).and_then(|it| it.get(id)).expect("just attached");
        let conns = session.clients.clone();
        let of_it: VecDeque<Held> = of_it;
        for held in of_it {
            for conn in &conns {
                self.tell_client(*conn, held.text.clone(), Some(worker));
            }
        }
    }

    /// Nothing is being opened any more: what was held is of no session that anyone knows.
    pub(super) fn drop_held(&mut self, worker: WorkerId) {
        let it = self.workers.get_mut(&worker).expect("the caller found it");
        if it.opening == 0 && !it.held.is_empty() {
            self.counters.unheard += it.held.len() as u64;
            it.held.clear();
        }
    }

    /// Told now and then: a worker that goes on for ever must not fill the log.
    fn on_nobody(&mut self, worker: WorkerId, frame: &Frame, why: &'static str) {
        self.counters.unheard += 1;
        let it = self.workers.get_mut(&worker).expect("it spoke");
        it.unrouted += 1;
        if it.unrouted.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            let from = MessageSender::Worker(worker);
            self.note(BusNote::Unrouted { from, method, why: why.to_owned() });
        }
    }

    /// Whether a worker that gets nothing new has anything left to do.
    pub(super) fn retire_if_idle(&mut self, worker: WorkerId) {
        let Some(it) = self.workers.get(&worker) else { return };
        let busy = 0 < it.calls.owes() || 0 < it.load();
        if it.retiring && !it.stopping && !busy {
            self.stop_worker(worker, false);
        }
    }
}

/// Who hears what a worker says.
enum Audience {
    One(ConnId),
    These(Vec<ConnId>),
    /// Those of a session that is being opened, when it has a name.
    Later(Arc<str>),
    Nobody(&'static str),
}

impl Audience {
    /// Without an allocation where there is one, as nearly always.
    fn of(conns: &[ConnId]) -> Audience {
        match conns {
            [one] => Audience::One(*one),
            many => Audience::These(many.to_vec()),
        }
    }
}
