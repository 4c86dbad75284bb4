//! Seats: who a process is there for. A client that it was introduced to has one, and so has each
//! session that it serves or is about to. There are as many as the agent's settings allow, one
//! unless they say otherwise, and a process ends when the last is given up.

use super::{Agent, Waiting};
use crate::{AgentId, ConnId, Hub, Launch, Output, SessionId, session::Session};
use jackfield_events::AgentName;
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, is_planted};

/// How the processes of an agent are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPool {
    /// So many wait, started and introduced, for the next session.
    pub warm: usize,
    /// So many seats each has.
    pub sessions_per_process: usize,
    /// The agent that is used when this one cannot be had.
    pub fallback: Option<AgentName>,
}

impl Default for AgentPool {
    fn default() -> AgentPool {
        AgentPool { warm: 0, sessions_per_process: 1, fallback: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seat {
    /// Of a client that has not opened a session yet.
    Spare(ConnId),
    /// Of a session, being opened or woken or served.
    Session(SessionId),
}

/// The seats that are taken, each kind in the order they were. Nobody sits in a warm process.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    pub(crate) spares: Vec<ConnId>,
    pub(crate) sessions: Vec<SessionId>,
    /// How many sessions have had a seat here.
    had: usize,
}

impl Seats {
    pub(super) fn sit(&mut self, seat: Seat) {
        match seat {
            Seat::Spare(conn) => self.spares.push(conn),
            Seat::Session(session) => {
                self.had += 1;
                self.sessions.push(session);
            }
        }
    }

    fn stand(&mut self, seat: &Seat) {
        match seat {
            Seat::Spare(conn) => self.spares.retain(|it| it != conn),
            Seat::Session(session) => self.sessions.retain(|it| it != session),
        }
    }

    fn taken(&self) -> usize {
        self.spares.len() + self.sessions.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken() == 0
    }

    /// Whether nobody else sits here.
    pub(crate) fn is_alone(&self, session: &SessionId) -> bool {
        self.spares.is_empty() && self.sessions.iter().all(|it| it == session)
    }

    /// The one session that was ever here, if there was no other: then whatever is said in this
    /// process is said in it.
    pub(crate) fn only(&self) -> Option<&SessionId> {
        self.sessions.first().filter(|_| self.had == 1)
    }

    /// Whether no session ever was here.
    pub(crate) fn is_unused(&self) -> bool {
        self.had == 0
    }

    pub(crate) fn has(&self, session: &SessionId) -> bool {
        self.sessions.contains(session)
    }
}

impl Hub {
    /// How many seats a process of this agent has.
    fn seats_of(&self, agent: &str) -> usize {
        self.cx.config.pools.get(agent).map_or(1, |it| it.sessions_per_process.max(1))
    }

    /// Gives a seat in a process that runs and has one free: in the one that had the session
    /// before, if it can be, for it may still have its files open; else where fewest sit.
    pub(crate) fn take_seat(
        &mut self,
        launch: &Launch,
        hello: Option<&str>,
        seat: &Seat,
    ) -> Option<AgentId> {
        let agent = self.free_seat(launch, hello, seat)?;
        self.agents.get_mut(&agent)?.seats.sit(seat.clone());
        Some(agent)
    }

    pub(crate) fn free_seat(
        &self,
        launch: &Launch,
        hello: Option<&str>,
        seat: &Seat,
    ) -> Option<AgentId> {
        let seats = self.seats_of(&launch.name);
        if seats == 1 {
            return None;
        }
        let session = match seat {
            Seat::Session(id) => self.sessions.get(id),
            Seat::Spare(_) => None,
        };
        let tenant = self.tenant_of_seat(seat);
        let fits = |it: &Agent| {
            let taken = it.seats.taken();
            let room = !it.stopping
                && 0 < taken
                && taken < seats + usize::from(is_planted("one-session-too-many-per-agent"));
            let alike = it.launch == *launch && it.hello.as_deref() == hello;
            // What one tenant says in a process, another could hear of.
            room && alike
                && (self.tenant_of_agent(it) == tenant || is_planted("share-agent-between-tenants"))
        };
        let last = session.and_then(|it| it.last);
        let fitting = self.agents.iter().filter(|(_, it)| fits(it));
        let fitting = fitting.filter(|(_, it)| session.is_none_or(|of| !self.has_namesake(it, of)));
        let order = |(id, it): &(&AgentId, &Agent)| (last != Some(**id), it.seats.taken(), **id);
        fitting.min_by_key(order).map(|(id, _)| *id)
    }

    /// Whether a process already serves a session that it would call by the same name.
    fn has_namesake(&self, agent: &Agent, session: &Session) -> bool {
        let name = session.theirs();
        !name.is_empty() && self.called(agent, name).is_some()
    }

    /// The session of a process that it means by this name.
    pub(crate) fn called(&self, agent: &Agent, name: &str) -> Option<SessionId> {
        let is_it = |id: &&SessionId| self.sessions.get(*id).is_some_and(|it| it.is_called(name));
        agent.seats.sessions.iter().find(is_it).cloned()
    }

    /// Whether a process may call this session so: no other that it serves has the name.
    pub(crate) fn is_free_name(&self, agent: AgentId, id: &SessionId, name: &str) -> bool {
        let other = self.agents.get(&agent).and_then(|it| self.called(it, name));
        !name.is_empty() && other.is_none_or(|it| it == *id)
    }

    /// Whether a process serves this session, and nobody else has a seat there.
    pub(crate) fn has_own_process(&self, id: &SessionId) -> bool {
        let agent = self.sessions.get(id).and_then(|it| it.agent);
        agent.and_then(|it| self.agents.get(&it)).is_some_and(|it| it.seats.is_alone(id))
    }

    /// A client gives its seat up; the process ends with the last one.
    pub(crate) fn leave_spare(&mut self, agent: AgentId, conn: ConnId) {
        let Some(it) = self.agents.get_mut(&agent) else { return };
        if it.seats.sessions.is_empty() && it.seats.spares.iter().all(|it| *it == conn) {
            return self.stop_agent(agent);
        }
        it.seats.stand(&Seat::Spare(conn));
    }

    /// A client's seat becomes its session's.
    pub(crate) fn give_spare_to(&mut self, agent: AgentId, conn: ConnId, id: &SessionId) {
        if let Some(it) = self.agents.get_mut(&agent) {
            it.seats.stand(&Seat::Spare(conn));
            it.seats.sit(Seat::Session(id.clone()));
        }
    }

    /// A session was not opened: its seat is its client's, for the next try.
    pub(crate) fn keep_for(&mut self, agent: AgentId, conn: ConnId, id: &SessionId) {
        if let Some(it) = self.agents.get_mut(&agent) {
            it.seats.stand(&Seat::Session(id.clone()));
            it.seats.sit(Seat::Spare(conn));
            it.seats.had -= 1;
        }
    }

    /// A session gives its seat up. The process ends with the last one, and then the seat stays
    /// taken: whoever wakes the session waits for that end. One that serves others is told to stop
    /// what it does for this one and to forget it.
    pub(crate) fn leave(&mut self, agent: AgentId, id: &SessionId, theirs: &str) {
        let Some(it) = self.agents.get_mut(&agent) else { return };
        if it.stopping || it.seats.is_alone(id) {
            if self.sessions.get(id).is_some_and(|it| it.leaving.is_some()) {
                // Its end may come when nobody here knows the session any more.
                self.want_nothing(agent, id);
            }
            return self.stop_agent(agent);
        }
        it.seats.stand(&Seat::Session(id.clone()));
        let works = self.want_nothing(agent, id);
        if let Some(session) = self.sessions.get_mut(id) {
            session.last = Some(agent);
        }
        if !theirs.is_empty() {
            self.dismiss_session(agent, theirs, works);
        }
        self.ease(agent);
    }

    /// The session is forgotten, and so is what processes that still end were asked in it.
    pub(crate) fn forsake(&mut self, id: &SessionId) {
        let had_it = self.agents.iter().filter(|(_, it)| it.seats.has(id)).map(|(agent, _)| *agent);
        for agent in had_it.collect::<Vec<_>>() {
            self.want_nothing(agent, id);
        }
    }

    /// Nobody waits any longer for what a process was asked in a session. Whether it works on a
    /// prompt there.
    fn want_nothing(&mut self, agent: AgentId, id: &SessionId) -> bool {
        let fault = Fault::Interrupted { why: "the session has let go of its agent".into() };
        // What still waits for the log is not said at all.
        let unsaid = self.sessions.get_mut(id).map(|it| it.log.withdraw_agent_frames(agent));
        let unsaid = unsaid.unwrap_or_default();
        let Some(it) = self.agents.get_mut(&agent) else { return false };
        let its = it.waiting.iter_mut().filter(|(_, it)| it.session() == Some(id));
        let its = its.map(|(our_id, it)| (*our_id, std::mem::replace(it, Waiting::Unwanted)));
        let mut works = false;
        for (our_id, waiting) in its.collect::<Vec<_>>() {
            let name = our_id.to_string();
            if unsaid.iter().any(|it| it.id() == Some(&*name)) {
                self.agents.get_mut(&agent).and_then(|it| it.waiting.remove(&our_id));
            } else {
                works |= matches!(waiting, Waiting::Prompt(..));
            }
            if let Waiting::Client { conn, id: theirs, .. } = waiting
                && !self.is_left_to_ask_again(id, conn, &theirs)
            {
                self.answer_in(id, conn, &Frame::error_for(&theirs, &fault));
            }
        }
        works
    }

    /// Tells a process that a session of its is of no use any more.
    pub(crate) fn dismiss_session(&mut self, agent: AgentId, theirs: &str, works: bool) {
        let Some(it) = self.agents.get_mut(&agent).filter(|it| it.is_ready()) else { return };
        let params = serde_json::json!({ "sessionId": theirs }).to_string();
        let cancel = works.then(|| Frame::notification(Method::SessionCancel.name(), &params));
        let close = it.can.close.then(|| {
            let our_id = it.expect(Waiting::Unwanted).to_string();
            Frame::request(&our_id, Method::SessionClose.name(), &params)
        });
        for frame in cancel.into_iter().chain(close) {
            self.cx.outputs.push_back(Output::ToAgent { agent, text: frame.bytes().clone() });
        }
    }

    /// The sessions that a process serves, or is about to, at this moment.
    pub(crate) fn served_by(&self, agent: AgentId) -> Vec<SessionId> {
        let seats = self.agents.get(&agent).map(|it| &it.seats.sessions);
        let is_its =
            |id: &&SessionId| self.sessions.get(*id).is_some_and(|it| it.agent == Some(agent));
        seats.into_iter().flatten().filter(is_its).cloned().collect()
    }
}
