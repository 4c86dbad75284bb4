//! Turns: each is a row of steps that runs until it has to wait. Nothing here blocks, so any
//! number of sessions can be busy at once in one thread.

use std::{
    collections::VecDeque,
    mem,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::{
    agent::Agent,
    asks::{Ask, Asker, tool_run},
    flags::{Death, Switch, Usage},
    process,
    session::Entry,
    words::{Outcome, Step, chunk},
};

/// Updates of a burst between two looks at stdin.
const SLICE: u64 = 1024;

pub(crate) struct Turn {
    pub(crate) key: u64,
    pub(crate) session: String,
    /// The JSON-RPC id of the prompt.
    pub(crate) id: Value,
    pub(crate) params: Value,
    /// Which prompt of the session this is, from 1.
    pub(crate) number: usize,
    pub(crate) steps: VecDeque<Step>,
    pub(crate) outcome: Outcome,
    pub(crate) answered: bool,
    pub(crate) hangs: bool,
    /// Asks without an answer yet.
    pub(crate) asks: usize,
    pub(crate) wake: Option<Instant>,
    updates: u64,
}

#[derive(PartialEq, Eq)]
enum Run {
    Over,
    Waits,
    Busy,
}

impl Turn {
    pub(crate) fn new(key: u64, session: &str, id: Value, params: Value, number: usize) -> Turn {
        Turn {
            key,
            session: session.to_owned(),
            id,
            params,
            number,
            steps: VecDeque::new(),
            outcome: Outcome::Stop("end_turn".to_owned()),
            answered: false,
            hangs: false,
            asks: 0,
            wake: None,
            updates: 0,
        }
    }

    pub(crate) fn asker(&self) -> Asker<'_> {
        Asker { session: &self.session, prompt: &self.id, number: self.number }
    }
}

impl Agent {
    /// Gives every turn a go; whether one of them could go on at once.
    pub(crate) fn run_turns(&mut self) -> Result<bool, Death> {
        let mut busy = false;
        for mut turn in mem::take(&mut self.turns) {
            let run = self.run_turn(&mut turn)?;
            busy |= run == Run::Busy;
            if run != Run::Over {
                self.turns.push(turn);
            }
        }
        Ok(busy)
    }

    fn run_turn(&mut self, turn: &mut Turn) -> Result<Run, Death> {
        loop {
            if turn.wake.is_some_and(|it| Instant::now() < it) || turn.hangs {
                return Ok(Run::Waits);
            }
            let was_asleep = turn.wake.take().is_some();
            if 0 < turn.asks {
                if was_asleep {
                    self.withdraw_asks(turn);
                }
                return Ok(Run::Waits);
            }
            let Some(step) = turn.steps.pop_front() else {
                if !turn.answered {
                    self.answer(turn)?;
                }
                return Ok(Run::Over);
            };
            let is_burst = matches!(step, Step::Burst { .. });
            self.take_step(turn, step)?;
            if 0 < turn.updates && !turn.answered {
                self.die_at("after-update")?;
            }
            if is_burst {
                return Ok(Run::Busy);
            }
        }
    }

    fn take_step(&mut self, turn: &mut Turn, step: Step) -> Result<(), Death> {
        match step {
            Step::Say(text) => self.say(turn, &text),
            Step::Update(update) => self.update(turn, update),
            Step::Burst { next, count, size } => self.burst(turn, next, count, size),
            Step::Slow { next, count, every } => self.slow(turn, next, count, every),
            Step::Tick { next, count, every } => self.tick(turn, next, count, every),
            Step::Wait(time) => turn.wake = Some(Instant::now() + time),
            Step::Tool => {
                let tool = turn.asker().tool_id(0);
                for update in tool_run(&tool) {
                    self.update(turn, update);
                }
            }
            Step::Asks(asks, withdraw) => {
                for ask in asks {
                    self.ask(turn, ask);
                }
                turn.wake = withdraw.map(|it| Instant::now() + it);
            }
            Step::Raw(line) => {
                let line = line.replace("{sid}", &turn.session);
                self.out.line(line.replace("{id}", &turn.id.to_string()).as_bytes());
            }
            Step::Junk => JUNK.iter().for_each(|it| self.out.line(it)),
            Step::BadUtf8 => self.out.line(b"{\"jsonrpc\":\"2.0\",\"method\":\"_fake/\xff\xfe\"}"),
            Step::Partial(pause) => {
                let update =
                    self.update_frame(&turn.session, &chunk("agent_message_chunk", "partial"));
                self.out.trickle(&update, pause);
            }
            Step::Half => self.out.bytes(br#"{"jsonrpc":"2.0","method":"session/upda"#),
            Step::Huge(size) => {
                self.out.huge(&turn.session, size);
                self.remember(turn, Entry::Huge(size));
            }
            Step::Notify(method, params) => {
                let unnamed = json!({"sessionId": turn.session, "text": "nobody knows this"});
                let params = if params.is_null() { unnamed } else { params };
                self.out.frame(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
            }
            Step::Stderr(text) => process::note(&text),
            Step::StderrFlood(size) => process::flood_stderr(size),
            Step::Report(what, about) => {
                let text = self.report(turn, what, &about);
                self.say(turn, &text);
            }
            Step::SwitchMode(mode) => self.switch_mode(turn, &mode),
            Step::Spawn => {
                let text = process::leave_orphan(&self.flags, &[])
                    .map_or("spawned nothing".to_owned(), |pid| format!("spawned {pid}"));
                self.say(turn, &text);
            }
            Step::Hang => turn.hangs = true,
            Step::Die(death) => return Err(death),
            Step::Outcome(outcome) => turn.outcome = outcome,
            Step::Answer => self.answer(turn)?,
        }
        Ok(())
    }

    fn say(&mut self, turn: &mut Turn, text: &str) {
        let mut update = chunk("agent_message_chunk", text);
        if self.flags.on(Switch::Nulls) {
            update["messageId"] = Value::Null;
            update["_meta"] = Value::Null;
        }
        self.update(turn, update);
    }

    /// Sends an update and remembers it for the replay.
    fn update(&mut self, turn: &mut Turn, update: Value) {
        let frame = self.update_frame(&turn.session, &update);
        self.out.frame(&frame);
        self.remember(turn, Entry::Update(update));
    }

    fn remember(&mut self, turn: &mut Turn, entry: Entry) {
        turn.updates += 1;
        if let Some(session) = self.sessions.open(&turn.session) {
            session.remember(entry);
        }
    }

    pub(crate) fn update_frame(&self, session: &str, update: &Value) -> Value {
        let mut params = json!({"sessionId": session, "update": update});
        if self.flags.on(Switch::Nulls) {
            params["_meta"] = Value::Null;
        }
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    }

    fn burst(&mut self, turn: &mut Turn, next: u64, count: u64, size: usize) {
        let slice = if self.flags.dies_at("after-update") { 1 } else { SLICE };
        let last = count.min(next + slice - 1);
        self.out.burst(&turn.session, next, last, size);
        turn.updates += 1 + last - next;
        if last < count {
            turn.steps.push_front(Step::Burst { next: last + 1, count, size });
        } else {
            self.remember(turn, Entry::Burst { count, size });
        }
    }

    fn slow(&mut self, turn: &mut Turn, next: u64, count: u64, every: Duration) {
        if next <= count {
            self.say(turn, &format!("slow {next} "));
            turn.wake = Some(Instant::now() + every);
            turn.steps.push_front(Step::Slow { next: next + 1, count, every });
        }
    }

    fn tick(&mut self, turn: &mut Turn, next: u64, count: u64, every: Duration) {
        if next <= count {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.say(turn, &format!("tick {next} {} ", now.as_micros()));
            turn.wake = Some(Instant::now() + every);
            turn.steps.push_front(Step::Tick { next: next + 1, count, every });
        }
    }

    fn switch_mode(&mut self, turn: &mut Turn, mode: &str) {
        if let Some(session) = self.sessions.open(&turn.session) {
            session.set_mode(mode);
        }
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
        self.update(turn, update);
    }

    fn ask(&mut self, turn: &mut Turn, ask: Ask) {
        let id = self.next_id();
        let (method, params) = ask.request(&turn.asker());
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.out.frame(&frame);
        self.asks.insert(id.to_string(), (turn.key, ask));
        turn.asks += 1;
    }

    /// Tells the client that the answers are no longer wanted; they come all the same.
    fn withdraw_asks(&mut self, turn: &Turn) {
        for (id, _) in self.asks.iter().filter(|(_, (key, _))| *key == turn.key) {
            let id: Value = serde_json::from_str(id).expect("it was printed by us");
            let params = json!({"requestId": id});
            let frame = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
            self.out.frame(&frame);
        }
    }

    /// Answers the prompt as the turn decided; what the turn still has to do comes late.
    pub(crate) fn answer(&mut self, turn: &mut Turn) -> Result<(), Death> {
        if mem::replace(&mut turn.answered, true) {
            return Ok(());
        }
        self.die_at("before-answer")?;
        let usage = self.usage(turn);
        if let Some(used) = usage {
            let update = json!({"sessionUpdate": "usage_update", "used": used, "size": 100_000});
            self.update(turn, update);
        }
        let result = |reason: &str| {
            let mut result = json!({"stopReason": reason});
            if let Some(used) = usage {
                let (input, output) = (used - used / 10, used / 10);
                let tokens =
                    json!({"totalTokens": used, "inputTokens": input, "outputTokens": output});
                result["usage"] = tokens;
            }
            json!({"jsonrpc": "2.0", "id": turn.id, "result": result})
        };
        match &turn.outcome {
            Outcome::Stop(reason) => self.out.frame(&result(reason)),
            Outcome::StopTwice => (0..2).for_each(|_| self.out.frame(&result("end_turn"))),
            Outcome::StopWithNullError => {
                let mut frame = result("end_turn");
                frame["error"] = Value::Null;
                self.out.frame(&frame);
            }
            Outcome::Error(code, message) => self.fault(&turn.id, *code, message, &Value::Null),
        }
        Ok(())
    }

    fn usage(&self, turn: &Turn) -> Option<usize> {
        match self.flags.usage {
            Usage::Never => None,
            Usage::Current => Some(100),
            Usage::Cumulative => Some(100 * turn.number),
        }
    }
}

/// Lines that are no JSON, or JSON that is no frame.
const JUNK: &[&[u8]] = &[
    b"Loading model weights... done",
    b"\x1b[31mwarning:\x1b[0m something coloured",
    b"\x1b]0;a window title\x07",
    b"",
    b"42",
    b"null",
    b"[]",
    b"{\"hello\":\"world\"}",
    b"{\"jsonrpc\":\"2.0\",\"method\":",
];
