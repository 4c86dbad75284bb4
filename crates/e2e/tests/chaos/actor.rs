//! The people of one session, on up to three connections: they prompt, queue, cancel, answer, leave
//! in mid-sentence and come back, and when trouble stops they see to it that nothing stays open.

use super::{conn::Conn, temper, world::World};
use jackfield_test_support::rng::Rng;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Between two acts; two cores carry two hundred actors at this pace.
const PAUSE_MS_MAX: u64 = 600;
const CONNS_MAX: usize = 3;
/// Prompts one actor has waiting: enough for a queue.
const PROMPTS_MAX: usize = 5;
/// A session may be at the bottom of two ladders: waking, then cancelling.
const SETTLE_MAX: Duration = Duration::from_secs(90);

pub(super) struct Actor<'a> {
    world: &'a World,
    dice: Rng,
    agent: Vec<String>,
    /// It answers a plain prompt, and can be woken.
    reliable: bool,
    session: Option<String>,
    /// How far anybody here has heard the session.
    heard: u64,
    conns: Vec<Conn>,
}

impl<'a> Actor<'a> {
    pub(super) fn new(world: &'a World, number: u64) -> Actor<'a> {
        let mut dice = Rng::new(world.plan.seed.wrapping_mul(1_000_003).wrapping_add(number));
        let state = world.agent_state(number);
        let mut flags = vec!["--state", state.to_str().expect("a path in UTF-8")];
        flags.extend(temper::flags(&mut dice));
        let reliable = temper::is_reliable(&flags);
        let agent = world.home.fake_agent(&flags);
        Actor { world, dice, agent, reliable, session: None, heard: 0, conns: Vec::new() }
    }

    pub(super) fn live(mut self) {
        while self.world.in_trouble() {
            self.act();
            let pause = Duration::from_millis(self.dice.below(PAUSE_MS_MAX));
            if self.dice.chance(10) || self.conns.is_empty() {
                // Nobody reads meanwhile: a slow client.
                self.world.pass(pause * 3);
            } else {
                self.listen(pause);
            }
        }
        while !self.world.is_calm() {
            self.listen(Duration::from_millis(50));
            self.world.pass(Duration::from_millis(50));
        }
        self.settle();
    }

    fn act(&mut self) {
        let come = if self.conns.is_empty() { 100 } else { 12 };
        if self.conns.len() < CONNS_MAX && self.dice.chance(come) {
            return self.come();
        }
        if self.conns.is_empty() {
            return;
        }
        let at = self.dice.index(self.conns.len());
        match self.dice.below(100) {
            0..30 => self.prompt(at),
            30..60 => self.answer(at),
            60..65 => self.cancel(at),
            65..68 => self.withdraw(at),
            68..75 => {
                let conn = self.conns.swap_remove(at);
                self.world.count(if conn.asked.is_empty() {
                    "clients killed"
                } else {
                    "clients killed in mid-ask"
                });
            }
            75..76 => self.in_session(at, "session/close", &json!({})),
            76..78 => self.in_session(at, "session/set_mode", &json!({ "modeId": "auto" })),
            // What an earlier daemon left in the queue.
            78..80 => self.in_session(at, "_jackfield/release", &json!({})),
            _ => {}
        }
    }

    /// Opens the session, comes back to it, or visits another.
    fn come(&mut self) {
        let Some(session) = self.session.clone() else { return self.open() };
        let others = self.world.sessions();
        let visits = self.dice.chance(15);
        let session = if visits { others[self.dice.index(others.len())].clone() } else { session };
        let aware = self.dice.chance(75);
        let conn = if !visits && self.dice.chance(6) {
            Conn::start_shim(self.world, &self.agent, aware)
        } else {
            Conn::dial(self.world, aware)
        };
        let Some(mut conn) = conn else { return };
        conn.hello();
        conn.session = Some(session.clone());
        if aware {
            let known = self.dice.chance(85) && self.session.as_ref() == Some(&session);
            conn.cursor = if known { self.heard } else { 0 };
            let after = conn.cursor;
            let params = json!({ "sessionId": session, "after": after });
            conn.attach = Some(conn.request("_jackfield/attach", &params));
        } else {
            let method = self.dice.pick(&["session/load", "session/resume"]);
            let cwd = self.world.home.path();
            conn.request(method, &json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }));
        }
        self.world.count("clients came");
        self.conns.push(conn);
    }

    fn open(&mut self) {
        let Some(mut conn) = Conn::dial(self.world, true) else { return };
        let agent = json!({ "agent": { "name": "fake", "argv": self.agent } });
        conn.notify("_jackfield/connect", &agent);
        conn.hello();
        let cwd = self.world.home.path();
        conn.request("session/new", &json!({ "cwd": cwd, "mcpServers": [] }));
        let begin = Instant::now();
        while !conn.pending.is_empty() && !conn.broken && begin.elapsed() < SETTLE_MAX {
            conn.listen(self.world, Duration::from_millis(50));
        }
        if let Some(session) = conn.session.clone().filter(|_| conn.pending.is_empty()) {
            self.world.add_session(&session);
            self.session = Some(session);
            self.conns.push(conn);
        }
    }

    fn prompt(&mut self, at: usize) {
        let waiting: usize = self.conns.iter().map(|it| it.pending.len()).sum();
        let conn = &mut self.conns[at];
        let Some(session) = conn.session.clone().filter(|_| waiting < PROMPTS_MAX) else { return };
        let token = self.world.token();
        let text = format!("{token}\n{}", temper::script(&mut self.dice));
        conn.prompt(&session, token, &text);
        self.world.count("prompts");
    }

    /// Answers the first thing it was asked: properly, with an error, or as somebody else.
    fn answer(&mut self, at: usize) {
        let conn = &mut self.conns[at];
        let Some((id, method)) = conn.asked.first_key_value() else { return };
        let (id, method) = (*id, method.clone());
        self.world.count("asks answered");
        if self.dice.chance(8) {
            let error = json!({ "code": -32603, "message": "no dialog today" });
            return conn.answer(id, "error", &error);
        }
        let option = self.dice.pick(&["allow-once", "allow-once", "reject-once"]);
        conn.answer(id, "result", &agreed(&method, option));
    }

    fn cancel(&mut self, at: usize) {
        let conn = &mut self.conns[at];
        let Some(session) = &conn.session else { return };
        self.world.count("cancels");
        conn.notify("session/cancel", &json!({ "sessionId": session.clone() }));
    }

    fn withdraw(&mut self, at: usize) {
        let conn = &mut self.conns[at];
        let prompt = conn.pending.iter().filter(|(_, token)| token.is_some()).map(|(id, _)| *id);
        if let Some(id) = prompt.max() {
            self.world.count("prompts withdrawn");
            conn.notify("$/cancel_request", &json!({ "requestId": id }));
        }
    }

    fn in_session(&mut self, at: usize, method: &str, params: &Value) {
        let conn = &mut self.conns[at];
        let Some(session) = &conn.session else { return };
        let mut params = params.clone();
        params["sessionId"] = json!(session);
        conn.request(method, &params);
    }

    fn listen(&mut self, time: Duration) {
        let share = u32::try_from(self.conns.len()).map_or(time, |it| time / it.max(1));
        for conn in &mut self.conns {
            conn.listen(self.world, share);
            if conn.session == self.session {
                self.heard = self.heard.max(conn.cursor);
            }
        }
        self.conns.retain(|it| !it.broken);
    }

    /// Trouble is over: everything that was asked, either way, is answered, and a prompt works.
    fn settle(&mut self) {
        let begin = Instant::now();
        let late = || SETTLE_MAX < begin.elapsed();
        let Some(session) = self.session.clone() else { return };
        self.quiet_down(begin);
        // Held prompts end with it; the prompt after it wakes the session. A connection may have died with
        // an earlier daemon, and be known to be dead only when it is listened to.
        while !late() {
            self.be_there(begin);
            self.own_conn(|at, it| it.in_session(at, "session/close", &json!({})));
            self.quiet_down(begin);
            if self.own().is_some() {
                break;
            }
        }
        let token = self.world.token();
        let prompt = (token.clone(), session.clone());
        self.own_conn(|at, it| it.conns[at].prompt(&prompt.1, prompt.0.clone(), &prompt.0));
        self.quiet_down(begin);
        let outcome = self.world.outcome(&token);
        // A visitor may have cancelled it.
        let works = matches!(outcome, Some(Ok(_)));
        // One that ended too often is not started again for a while.
        let rests = outcome == Some(Err("cannot_resume".to_owned()));
        if !late() && self.reliable && !works && !rests {
            let agent = &self.agent;
            self.world.fault(format!("a last prompt in {session}: {outcome:?} by {agent:?}"));
        }
        if late() {
            let open: Vec<_> = self.conns.iter().map(|it| (&it.pending, &it.asked)).collect();
            self.world.fault(format!("{session} does not come to rest: {open:?}"));
        }
    }

    /// A connection to the session itself.
    fn own(&self) -> Option<usize> {
        self.conns.iter().position(|it| it.session == self.session)
    }

    fn be_there(&mut self, begin: Instant) {
        while self.own().is_none() && begin.elapsed() < SETTLE_MAX {
            self.come();
            self.listen(Duration::from_millis(20));
        }
    }

    fn own_conn(&mut self, act: impl Fn(usize, &mut Actor<'a>)) {
        if let Some(at) = self.own() {
            act(at, self);
        }
    }

    /// Answers everything and cancels what does not end, until nothing is open on any connection.
    fn quiet_down(&mut self, begin: Instant) {
        let mut cancel_at = Instant::now() + Duration::from_secs(3);
        while begin.elapsed() < SETTLE_MAX {
            self.listen(Duration::from_millis(100));
            for at in 0..self.conns.len() {
                while let Some((id, method)) = self.conns[at].asked.pop_first() {
                    self.conns[at].answer(id, "result", &agreed(&method, "allow-once"));
                }
                if cancel_at < Instant::now() {
                    self.cancel(at);
                }
            }
            if cancel_at < Instant::now() {
                cancel_at = Instant::now() + Duration::from_secs(8);
            }
            if self.conns.iter().all(|it| it.pending.is_empty() && it.asked.is_empty()) {
                return;
            }
        }
    }
}

/// A good answer to what an agent asks.
fn agreed(method: &str, option: &str) -> Value {
    match method {
        "session/request_permission" => {
            json!({ "outcome": { "outcome": "selected", "optionId": option } })
        }
        "elicitation/create" => json!({ "action": "accept", "content": { "branch": "main" } }),
        _ => json!({}),
    }
}
