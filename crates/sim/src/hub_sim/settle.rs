//! The end of a run: faults stop, all clients reconnect and catch up, and the hub is stopped in order.

use super::{
    HubWorld,
    agent::AgentProcess,
    check::{RequestKind, check_invariant},
    fault_rates::FaultRates,
};
use jackfield_hub::{AgentId, ConnId, Input, SessionId};

/// More rounds than any run of a few hundred steps needs.
const ROUNDS_MAX: u32 = 20_000;

impl HubWorld {
    /// Stops the faults: all clients must catch up, all requests must be answered, and a stop must end everything.
    pub(super) fn settle(&mut self) {
        self.trace.note(self.now, || "-- faults stop".into());
        self.faults_stopped = true;
        self.fault_rates = FaultRates::none();
        if self.stopping {
            self.run_until_stopped();
        }
        for round in 0.. {
            self.reconnect_clients();
            self.run_until_idle();
            // A repeated prompt may wait for an agent that hangs, so it is cancelled in another round.
            if self.has_settled() && (1 < round || !self.has_repeated_requests()) {
                break;
            }
            check_invariant("moved_sessions_find_an_owner", round < 5, || {
                format!("{:?}", self.session_moves)
            });
        }
        self.clients_eventually_catch_up();
        self.gauges_agree_with_the_world();
        self.no_leftover_processes();
        self.stop_hub();
        self.run_until_stopped();
        self.restart_hub();
        self.run_until_idle();
    }

    /// The hub's gauges agree with the world: every client has received everything.
    fn gauges_agree_with_the_world(&self) {
        let it = self.hub.gauges();
        let holds = it.lag_max == 0
            && it.behind == 0
            && it.held_events == 0
            && it.held_bytes == 0
            && it.starts_waiting == 0
            && it.processes.len() <= it.agents;
        check_invariant("gauges_agree_with_the_world", holds, || format!("{it:?}"));
    }

    fn run_until_stopped(&mut self) {
        let mut rounds = 0;
        while !self.stopped || !self.procs.is_empty() {
            rounds += 1;
            check_invariant("stop_completes", rounds < ROUNDS_MAX, || {
                format!("{} processes are left and the hub has not stopped", self.procs.len())
            });
            self.run_round();
        }
    }

    /// All clients connect, attach to all sessions, and cancel what still runs.
    fn reconnect_clients(&mut self) {
        if self.stopped {
            self.restart_hub();
        }
        self.adopt_all();
        // In half of the worlds clients do not replay, and cancel only if an agent hangs.
        let replays = self.rng.chance(50);
        let has_hung = self.procs.values().any(|it| it.hung);
        for client in 0..self.clients.len() {
            if self.clients[client].conn.is_none() {
                self.connect_client(client);
            }
            let conn = self.clients[client].conn.expect("connected above");
            let sessions = self.disk.streams.keys().filter(|it| !self.is_foreign(conn, it));
            let sessions: Vec<SessionId> = sessions.cloned().collect();
            for session in &sessions {
                let params = r#""cwd":"/x""#;
                if !replays {
                    self.send_request(
                        conn,
                        RequestKind::Resume,
                        Some(session),
                        "session/resume",
                        params,
                    );
                } else if self.clients[client].aware {
                    self.send_attach(conn, client, session);
                } else {
                    self.send_request(
                        conn,
                        RequestKind::Load,
                        Some(session),
                        "session/load",
                        params,
                    );
                }
                if replays || has_hung {
                    self.notify_session(conn, session, "session/cancel");
                }
            }
            while !self.clients[client].unanswered_prompts.is_empty() {
                self.repeat_prompt(conn, client);
            }
        }
    }

    /// Runs until nothing happens without further input.
    fn run_until_idle(&mut self) {
        let mut rounds = 0;
        loop {
            rounds += 1;
            check_invariant("world_becomes_idle", rounds < ROUNDS_MAX, || {
                "the world does not become idle".into()
            });
            if self.run_round() {
                continue;
            }
            if self.kill_hung_agents() || self.free_agent_slot() {
                continue;
            }
            return;
        }
    }

    /// Lets everything happen once; if nothing can, advances the clock. Returns false if the world is idle.
    fn run_round(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..32 {
            moved |= self.deliver_input();
        }
        let procs: Vec<AgentId> = self.procs.keys().copied().collect();
        for agent in procs.into_iter().filter(|it| self.procs[it].is_busy()).collect::<Vec<_>>() {
            self.run_agent(agent);
            moved = true;
        }
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        for conn in conns {
            for _ in 0..16 {
                moved |= !self.conns[&conn].outbox.is_empty();
                self.read_message(conn);
            }
            for _ in 0..4 {
                self.answer_ask(conn);
            }
            moved |= !self.conns[&conn].sent.is_empty();
        }
        for _ in 0..8 {
            moved |= self.run_disk_step();
        }
        if moved {
            return true;
        }
        match self.hub.poll_timeout() {
            Some(at) => {
                self.now = self.now.max(at);
                self.feed_input(Input::Tick);
                true
            }
            None => false,
        }
    }

    /// Kills agents that hang and have unread or unanswered requests, as a user would.
    fn kill_hung_agents(&mut self) -> bool {
        let has_work = |it: &AgentProcess| !it.inbox.is_empty() || !it.unanswered.is_empty();
        let has_work = |it: &AgentProcess| has_work(it) && it.prompts.is_empty();
        let hung = self.procs.iter().filter(|(_, it)| it.hung && !it.has_exited && has_work(it));
        let hung: Vec<AgentId> = hung.map(|(&agent, _)| agent).collect();
        for agent in &hung {
            self.kill_process(*agent, "signal 9 (KILL)");
        }
        !hung.is_empty()
    }
}
