//! Places: how many agents may be alive at a time, who must make room, and who waits for it.
//!
//! An agent is alive from its start until it is asked to stop or has ended. One that is asked to
//! stop no longer counts, although its process needs a moment.

use super::{Agent, Purpose};
use crate::{AgentId, ConnId, Hub, SessionId, Time, session::Stage};
use jackfield_wire::Fault;

/// A start that waits for a place; each is there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// For a client's `initialize`, which is answered with what the agent can do.
    Hello(ConnId, Box<str>),
    /// For a session that is opened or woken.
    Session(SessionId),
}

impl Hub {
    /// Whether an agent may be started for this now. If not, it is in line and will be.
    pub(crate) fn has_place(&mut self, start: &Start) -> bool {
        if self.config.sleep.max_live.is_none() {
            return true;
        }
        let is_first = self.starts.front().is_none_or(|it| it == start);
        if is_first && self.make_place() {
            self.starts.pop_front();
            return true;
        }
        if !self.starts.contains(start) {
            self.starts.push_back(start.clone());
        }
        false
    }

    /// Those in line have their turn, in order, as far as there is room.
    pub(crate) fn admit(&mut self) {
        while let Some(start) = self.starts.front().cloned() {
            let wanted = self.is_wanted(&start);
            if wanted && !self.make_place() {
                return;
            }
            match &start {
                _ if !wanted => {}
                Start::Hello(conn, request) => self.introduce(*conn, request),
                Start::Session(id) if self.sessions[id].is_opening() => self.find_agent(id),
                Start::Session(id) => self.pump(id),
            }
            // Whatever came of it, it had its turn.
            self.starts.pop_front_if(|it| *it == start);
        }
    }

    fn is_wanted(&self, start: &Start) -> bool {
        match start {
            Start::Hello(conn, _) => self.conns.contains_key(conn),
            Start::Session(id) => self.sessions.get(id).is_some_and(|it| match it.stage {
                Stage::Opening(_) => it.agent.is_none(),
                Stage::Asleep => !it.queue.is_empty() || !it.parked.is_empty(),
                Stage::Importing(_) | Stage::Waking(_) | Stage::Bound => false,
            }),
        }
    }

    /// The daemon stops: nobody in line will get a place.
    pub(crate) fn refuse_starts(&mut self) {
        for start in std::mem::take(&mut self.starts) {
            match start {
                Start::Hello(conn, request) => self.answer(conn, &request, Err(&Fault::Stopping)),
                Start::Session(id) => {
                    let opening = self.sessions.get(&id).filter(|it| it.agent.is_none());
                    let Some(Stage::Opening(opening)) = opening.map(|it| &it.stage) else {
                        continue; // Whoever waits for one that sleeps is told in that session.
                    };
                    let (conn, request) = (opening.conn, opening.request.clone());
                    self.sessions.remove(&id);
                    self.answer(conn, &request, Err(&Fault::Stopping));
                }
            }
        }
    }

    /// Whether one more may be alive; if need be, something that is not in use makes room.
    fn make_place(&mut self) -> bool {
        while !self.has_room() {
            if !self.free_one("others need the place") && !self.drop_spare() {
                return false;
            }
        }
        true
    }

    pub(crate) fn has_room(&self) -> bool {
        let alive = self.agents.values().filter(|it| !it.stopping).count();
        self.config.sleep.max_live.is_none_or(|max| alive < max.max(1))
    }

    /// Ends what is needed least: a warm process, else the one of the session that was not used for
    /// the longest time. False if nothing can go.
    pub(crate) fn free_one(&mut self, why: &str) -> bool {
        let least = |hub: &Hub, fits: &dyn Fn(&Agent) -> bool| {
            let fits = hub.agents.iter().filter(|(_, it)| !it.stopping && fits(it));
            let by_use = |(id, it): &(&AgentId, &Agent)| (it.pulse.used, **id);
            fits.min_by_key(by_use).map(|(id, _)| *id)
        };
        if let Some(warm) = least(self, &|it| matches!(it.purpose, Purpose::Warm)) {
            self.stop_agent(warm);
            return true;
        }
        let Some(agent) = least(self, &|it| self.may_sleep(it)) else { return false };
        let Purpose::Session(session) = self.agents[&agent].purpose.clone() else { return false };
        self.put_to_sleep(&session, why);
        true
    }

    /// A process that waits for its client to open a session can be started again when it does.
    fn drop_spare(&mut self) -> bool {
        let idle = |it: &Agent| {
            let spare = matches!(it.purpose, Purpose::Spare(_)) && it.is_ready();
            spare && it.waiting.is_empty()
        };
        let used = |(id, it): &(&AgentId, &Agent)| -> (Time, AgentId) { (it.pulse.used, **id) };
        let spare = self.agents.iter().filter(|(_, it)| idle(it)).min_by_key(used);
        let Some(spare) = spare.map(|(id, _)| *id) else { return false };
        self.stop_agent(spare);
        true
    }
}
