//! The end of a run: trouble stops, everyone comes back and reads on, and the hub is stopped in order.

use super::{
    World,
    agent::Process,
    check::{Kind, hold},
    temper::Temper,
};
use jackfield_hub::{AgentId, ConnId, Input, SessionId};

/// More rounds than any world of a few hundred steps needs.
const ROUNDS_MAX: u32 = 20_000;

impl World {
    /// No more trouble: everyone catches up, every request is answered, a stop ends everything.
    pub(super) fn settle(&mut self) {
        self.trace.say(self.now, || "-- trouble stops".into());
        self.calm = true;
        self.temper = Temper::calm();
        if self.stopping {
            self.until_stopped();
        }
        for round in 0.. {
            self.come_back();
            self.rest();
            // What was said again may wait for an agent that is deaf: it is cancelled, too.
            if self.has_settled() && (1 < round || !self.waits_for_what_was_said_again()) {
                break;
            }
            hold("who_is_let_go_goes_and_is_found", round < 5, || format!("{:?}", self.fleet));
        }
        self.everyone_catches_up();
        self.the_numbers_tell_of_no_trouble();
        self.no_process_is_left_over();
        self.stop();
        self.until_stopped();
        self.start_again();
        self.rest();
    }

    /// What is watched from outside says the same as the world: everybody has heard everything.
    fn the_numbers_tell_of_no_trouble(&self) {
        let it = self.hub.gauges();
        let holds = it.lag_max == 0
            && it.behind == 0
            && it.held_events == 0
            && it.held_bytes == 0
            && it.starts_waiting == 0
            && it.processes.len() <= it.agents;
        hold("the_numbers_agree_with_the_world", holds, || format!("{it:?}"));
    }

    fn until_stopped(&mut self) {
        let mut rounds = 0;
        while !self.stopped || !self.procs.is_empty() {
            rounds += 1;
            hold("a_stop_ends", rounds < ROUNDS_MAX, || {
                format!("{} processes are left and the hub has not stopped", self.procs.len())
            });
            self.round();
        }
    }

    /// Everyone connects, attaches to everything, and stops what still runs.
    fn come_back(&mut self) {
        if self.stopped {
            self.start_again();
        }
        self.adopt_all();
        // In half of the worlds nobody looks back, and only what hangs is cancelled.
        let looks_back = self.rng.chance(50);
        let hangs = self.procs.values().any(|it| it.deaf);
        for client in 0..self.clients.len() {
            if self.clients[client].conn.is_none() {
                self.connect(client);
            }
            let conn = self.clients[client].conn.expect("connected above");
            let sessions = self.disk.streams.keys().filter(|it| !self.is_strange(conn, it));
            let sessions: Vec<SessionId> = sessions.cloned().collect();
            for session in &sessions {
                let params = r#""cwd":"/x""#;
                if !looks_back {
                    self.request(conn, Kind::Resume, Some(session), "session/resume", params);
                } else if self.clients[client].aware {
                    self.attach(conn, client, session);
                } else {
                    self.request(conn, Kind::Load, Some(session), "session/load", params);
                }
                if looks_back || hangs {
                    self.say_in(conn, session, "session/cancel");
                }
            }
            while !self.clients[client].again.is_empty() {
                self.say_again(conn, client);
            }
        }
    }

    /// Runs until nothing happens by itself any more.
    fn rest(&mut self) {
        let mut rounds = 0;
        loop {
            rounds += 1;
            hold("the_world_comes_to_rest", rounds < ROUNDS_MAX, || {
                "something goes on and on".into()
            });
            if self.round() {
                continue;
            }
            if self.shake_the_deaf() || self.make_room() {
                continue;
            }
            return;
        }
    }

    /// Everything that can happen happens once; if nothing can, time passes. False if all is quiet.
    fn round(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..32 {
            moved |= self.deliver();
        }
        let procs: Vec<AgentId> = self.procs.keys().copied().collect();
        for agent in procs.into_iter().filter(|it| self.procs[it].is_busy()).collect::<Vec<_>>() {
            self.act(agent);
            moved = true;
        }
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        for conn in conns {
            for _ in 0..16 {
                moved |= !self.conns[&conn].outbox.is_empty();
                self.read_letter(conn);
            }
            for _ in 0..4 {
                self.answer_ask(conn);
            }
            moved |= !self.conns[&conn].sent.is_empty();
        }
        for _ in 0..8 {
            moved |= self.disk_acts();
        }
        if moved {
            return true;
        }
        match self.hub.poll_timeout() {
            Some(at) => {
                self.now = self.now.max(at);
                self.feed(Input::Tick);
                true
            }
            None => false,
        }
    }

    /// Nobody waits for an agent that will never read again: its user ends it.
    fn shake_the_deaf(&mut self) -> bool {
        let owes = |it: &Process| !it.inbox.is_empty() || !it.duties.is_empty();
        let owes = |it: &Process| owes(it) && it.prompts.is_empty();
        let deaf = self.procs.iter().filter(|(_, it)| it.deaf && !it.dead && owes(it));
        let deaf: Vec<AgentId> = deaf.map(|(&agent, _)| agent).collect();
        for agent in &deaf {
            self.kill(*agent, "signal 9 (KILL)");
        }
        !deaf.is_empty()
    }
}
