//! Places: how many agents may be alive at a time, who must make room, and who waits for it.
//!
//! An agent is alive from its start until it is asked to stop or has ended. One that is asked to
//! stop no longer counts, although its process needs a moment.

use super::{Agent, Seat, Waiting};
use crate::{AgentId, ConnId, Hub, Launch, SessionId, Time, session::Stage};
use jackfield_protocol::{Fault, is_planted};

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
        if self.cx.config.sleep.max_live.is_none() {
            return true;
        }
        let is_first = self.starts.front().is_none_or(|it| it == start);
        if is_first && self.make_place() {
            self.starts.pop_front();
            return true;
        }
        if !self.starts.contains(start) && !is_planted("forget-start-that-waits") {
            self.starts.push_back(start.clone());
        }
        false
    }

    /// Those in line have their turn, in order, as far as there is room.
    pub(crate) fn admit(&mut self) {
        while let Some(start) = self.starts.front().cloned() {
            let wanted = self.is_wanted(&start);
            if wanted && !self.finds_a_seat(&start) && !self.make_place() {
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

    /// Whether a process that runs has a seat for this by now.
    fn finds_a_seat(&self, start: &Start) -> bool {
        let hello = |conn: &ConnId| self.conns.get(conn)?.hello.as_deref();
        match start {
            Start::Hello(conn, _) => {
                let launch = self.conns.get(conn).and_then(|it| it.launch.as_ref());
                let seat = Seat::Spare(*conn);
                launch.is_some_and(|it| self.free_seat(it, hello(conn), &seat).is_some())
            }
            Start::Session(id) => {
                let Some((launch, asker)) = self.wants(id) else { return false };
                let hello = asker.as_ref().and_then(hello);
                self.free_seat(&launch, hello, &Seat::Session(id.clone())).is_some()
            }
        }
    }

    /// What a session without a process would be started with, and for whom.
    fn wants(&self, id: &SessionId) -> Option<(Launch, Option<ConnId>)> {
        let session = self.sessions.get(id)?;
        if let Stage::Opening(opening) = &session.stage {
            return Some((opening.launch.clone(), Some(opening.conn)));
        }
        let asker = session.asker();
        Some((self.launch_again(id, asker), asker))
    }

    fn is_wanted(&self, start: &Start) -> bool {
        match start {
            Start::Hello(conn, _) => self.conns.contains_key(conn),
            Start::Session(id) => self.sessions.get(id).is_some_and(|it| match it.stage {
                Stage::Opening(_) => it.agent.is_none(),
                Stage::Asleep => {
                    it.leaving.is_none() && (!it.queue.is_empty() || !it.parked.is_empty())
                }
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
        self.places_free().is_none_or(|it| 0 < it)
    }

    /// Processes that may still be started; none if there is no bound.
    pub(crate) fn places_free(&self) -> Option<usize> {
        let alive = self.agents.values().filter(|it| !it.stopping).count();
        Some(
            self.cx
                .config
                .sleep
                .max_live?
                .max(1)
                .saturating_add(usize::from(is_planted("one-agent-too-many")))
                .saturating_sub(alive),
        )
    }

    /// Ends what is needed least: a warm process, else the one whose sessions were not used for the
    /// longest time. False if nothing can go.
    pub(crate) fn free_one(&mut self, why: &str) -> bool {
        let least = |hub: &Hub, fits: &dyn Fn(&Agent) -> bool| {
            let fits = hub.agents.iter().filter(|(_, it)| !it.stopping && fits(it));
            let by_use = |(id, it): &(&AgentId, &Agent)| (it.used, **id);
            fits.min_by_key(by_use).map(|(id, _)| *id)
        };
        if let Some(warm) = least(self, &Agent::is_warm) {
            self.stop_agent(warm);
            return true;
        }
        let Some(agent) = least(self, &|it| self.may_all_sleep(it)) else { return false };
        self.put_all_to_sleep(agent, why);
        true
    }

    /// A process that waits for its client to open a session can be started again when it does.
    fn drop_spare(&mut self) -> bool {
        let idle = |it: &Agent| {
            let spare = it.seats.sessions.is_empty() && !it.seats.is_empty();
            spare && it.is_ready() && !it.waiting.values().any(Waiting::is_wanted)
        };
        let used = |(id, it): &(&AgentId, &Agent)| -> (Time, AgentId) { (it.used, **id) };
        let spare = self.agents.iter().filter(|(_, it)| idle(it)).min_by_key(used);
        let Some(spare) = spare.map(|(id, _)| *id) else { return false };
        self.stop_agent(spare);
        true
    }
}
