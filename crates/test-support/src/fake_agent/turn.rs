//! Turns: each is a queue of steps that runs until it must wait. Nothing blocks, so one thread serves any number of
//! sessions.

use std::{
    collections::VecDeque,
    mem,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::{
    agent::FakeAgent,
    asks::{OutgoingRequest, RequestContext, tool_call_updates},
    flags::{FlagSwitch, ProcessEnd, UsageMode},
    process,
    session::HistoryEntry,
    words::{TurnOutcome, TurnStep, chunk},
};

/// The number of updates of a burst between two reads of stdin.
const SLICE: u64 = 1024;

pub(crate) struct RunningTurn {
    pub(crate) key: u64,
    pub(crate) session: String,
    /// The JSON-RPC id of the prompt.
    pub(crate) id: Value,
    pub(crate) params: Value,
    /// The number of the prompt in its session, from 1.
    pub(crate) number: usize,
    pub(crate) steps: VecDeque<TurnStep>,
    pub(crate) outcome: TurnOutcome,
    pub(crate) answered: bool,
    pub(crate) hangs: bool,
    /// Open requests to the client.
    pub(crate) open_requests: usize,
    pub(crate) wake_at: Option<Instant>,
    updates: u64,
}

#[derive(PartialEq, Eq)]
enum TurnProgress {
    Ended,
    Waiting,
    Busy,
}

impl RunningTurn {
    pub(crate) fn new(
        key: u64,
        session: &str,
        id: Value,
        params: Value,
        number: usize,
    ) -> RunningTurn {
        RunningTurn {
            key,
            session: session.to_owned(),
            id,
            params,
            number,
            steps: VecDeque::new(),
            outcome: TurnOutcome::Stop("end_turn".to_owned()),
            answered: false,
            hangs: false,
            open_requests: 0,
            wake_at: None,
            updates: 0,
        }
    }

    pub(crate) fn request_context(&self) -> RequestContext<'_> {
        RequestContext { session: &self.session, prompt: &self.id, number: self.number }
    }
}

impl FakeAgent {
    /// Runs every turn until it waits; returns whether one could continue at once.
    pub(crate) fn run_turns(&mut self) -> Result<bool, ProcessEnd> {
        let mut busy = false;
        for mut turn in mem::take(&mut self.turns) {
            let run = self.run_turn(&mut turn)?;
            busy |= run == TurnProgress::Busy;
            if run != TurnProgress::Ended {
                self.turns.push(turn);
            }
        }
        Ok(busy)
    }

    fn run_turn(&mut self, turn: &mut RunningTurn) -> Result<TurnProgress, ProcessEnd> {
        loop {
            if turn.wake_at.is_some_and(|it| Instant::now() < it) || turn.hangs {
                return Ok(TurnProgress::Waiting);
            }
            let was_asleep = turn.wake_at.take().is_some();
            if 0 < turn.open_requests {
                if was_asleep {
                    self.cancel_requests(turn);
                }
                return Ok(TurnProgress::Waiting);
            }
            let Some(step) = turn.steps.pop_front() else {
                if !turn.answered {
                    self.answer_prompt(turn)?;
                }
                return Ok(TurnProgress::Ended);
            };
            let is_burst = matches!(step, TurnStep::Burst { .. });
            self.run_step(turn, step)?;
            if 0 < turn.updates && !turn.answered {
                self.end_at_step("after-update")?;
            }
            if is_burst {
                return Ok(TurnProgress::Busy);
            }
        }
    }

    fn run_step(&mut self, turn: &mut RunningTurn, step: TurnStep) -> Result<(), ProcessEnd> {
        match step {
            TurnStep::SendText(text) => self.send_text(turn, &text),
            TurnStep::Update(update) => self.send_update(turn, update),
            TurnStep::Burst { next, count, size } => self.send_burst_slice(turn, next, count, size),
            TurnStep::Slow { next, count, every } => self.send_slow(turn, next, count, every),
            TurnStep::Tick { next, count, every } => self.send_tick(turn, next, count, every),
            TurnStep::Wait(time) => turn.wake_at = Some(Instant::now() + time),
            TurnStep::Tool => {
                let tool = turn.request_context().tool_id(0);
                for update in tool_call_updates(&tool) {
                    self.send_update(turn, update);
                }
            }
            TurnStep::SendRequests(asks, withdraw) => {
                for ask in asks {
                    self.send_request(turn, ask);
                }
                turn.wake_at = withdraw.map(|it| Instant::now() + it);
            }
            TurnStep::Raw(line) => {
                let line = line.replace("{sid}", &turn.session);
                self.out.write_line(line.replace("{id}", &turn.id.to_string()).as_bytes());
            }
            TurnStep::Junk => JUNK.iter().for_each(|it| self.out.write_line(it)),
            TurnStep::BadUtf8 => {
                self.out.write_line(b"{\"jsonrpc\":\"2.0\",\"method\":\"_fake/\xff\xfe\"}");
            }
            TurnStep::Partial(pause) => {
                let update =
                    self.update_frame(&turn.session, &chunk("agent_message_chunk", "partial"));
                self.out.write_slowly(&update, pause);
            }
            TurnStep::Half => self.out.write_bytes(br#"{"jsonrpc":"2.0","method":"session/upda"#),
            TurnStep::Huge(size) => {
                self.out.write_huge(&turn.session, size);
                self.add_history(turn, HistoryEntry::Huge(size));
            }
            TurnStep::Notify(method, params) => {
                let unnamed = json!({"sessionId": turn.session, "text": "nobody knows this"});
                let params = if params.is_null() { unnamed } else { params };
                self.out
                    .write_frame(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
            }
            TurnStep::Stderr(text) => process::write_stderr_line(&text),
            TurnStep::StderrFlood(size) => process::flood_stderr(size),
            TurnStep::Report(what, about) => {
                let text = self.report_text(turn, what, &about);
                self.send_text(turn, &text);
            }
            TurnStep::SwitchMode(mode) => self.switch_mode(turn, &mode),
            TurnStep::Spawn => {
                let text = process::start_orphan(&self.flags, &[])
                    .map_or("spawned nothing".to_owned(), |pid| format!("spawned {pid}"));
                self.send_text(turn, &text);
            }
            TurnStep::Hang => turn.hangs = true,
            TurnStep::Die(death) => return Err(death),
            TurnStep::Outcome(outcome) => turn.outcome = outcome,
            TurnStep::Answer => self.answer_prompt(turn)?,
        }
        Ok(())
    }

    fn send_text(&mut self, turn: &mut RunningTurn, text: &str) {
        let mut update = chunk("agent_message_chunk", text);
        if self.flags.has_switch(FlagSwitch::Nulls) {
            update["messageId"] = Value::Null;
            update["_meta"] = Value::Null;
        }
        self.send_update(turn, update);
    }

    /// Sends an update and adds it to the history.
    fn send_update(&mut self, turn: &mut RunningTurn, update: Value) {
        let frame = self.update_frame(&turn.session, &update);
        self.out.write_frame(&frame);
        self.add_history(turn, HistoryEntry::Update(update));
    }

    fn add_history(&mut self, turn: &mut RunningTurn, entry: HistoryEntry) {
        turn.updates += 1;
        if let Some(session) = self.sessions.open(&turn.session) {
            session.append_entry(entry);
        }
    }

    pub(crate) fn update_frame(&self, session: &str, update: &Value) -> Value {
        let mut params = json!({"sessionId": session, "update": update});
        if self.flags.has_switch(FlagSwitch::Nulls) {
            params["_meta"] = Value::Null;
        }
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    }

    fn send_burst_slice(&mut self, turn: &mut RunningTurn, next: u64, count: u64, size: usize) {
        let slice = if self.flags.should_end_at("after-update") { 1 } else { SLICE };
        let last = count.min(next + slice - 1);
        self.out.write_burst(&turn.session, next, last, size);
        turn.updates += 1 + last - next;
        if last < count {
            turn.steps.push_front(TurnStep::Burst { next: last + 1, count, size });
        } else {
            self.add_history(turn, HistoryEntry::Burst { count, size });
        }
    }

    fn send_slow(&mut self, turn: &mut RunningTurn, next: u64, count: u64, every: Duration) {
        if next <= count {
            self.send_text(turn, &format!("slow {next} "));
            turn.wake_at = Some(Instant::now() + every);
            turn.steps.push_front(TurnStep::Slow { next: next + 1, count, every });
        }
    }

    fn send_tick(&mut self, turn: &mut RunningTurn, next: u64, count: u64, every: Duration) {
        if next <= count {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.send_text(turn, &format!("tick {next} {} ", now.as_micros()));
            turn.wake_at = Some(Instant::now() + every);
            turn.steps.push_front(TurnStep::Tick { next: next + 1, count, every });
        }
    }

    fn switch_mode(&mut self, turn: &mut RunningTurn, mode: &str) {
        if let Some(session) = self.sessions.open(&turn.session) {
            session.set_mode(mode);
        }
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
        self.send_update(turn, update);
    }

    fn send_request(&mut self, turn: &mut RunningTurn, ask: OutgoingRequest) {
        let id = self.next_id();
        let (method, params) = ask.request(&turn.request_context());
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.out.write_frame(&frame);
        self.open_requests.insert(id.to_string(), (turn.key, ask));
        turn.open_requests += 1;
    }

    /// Cancels the open requests of a turn; their responses still arrive.
    fn cancel_requests(&mut self, turn: &RunningTurn) {
        for (id, _) in self.open_requests.iter().filter(|(_, (key, _))| *key == turn.key) {
            let id: Value = serde_json::from_str(id).expect("it was printed by us");
            let params = json!({"requestId": id});
            let frame = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
            self.out.write_frame(&frame);
        }
    }

    /// Answers the prompt with the outcome of the turn; remaining steps run afterwards.
    pub(crate) fn answer_prompt(&mut self, turn: &mut RunningTurn) -> Result<(), ProcessEnd> {
        if mem::replace(&mut turn.answered, true) {
            return Ok(());
        }
        self.end_at_step("before-answer")?;
        let usage = self.turn_usage(turn);
        if let Some(used) = usage {
            let update = json!({"sessionUpdate": "usage_update", "used": used, "size": 100_000});
            self.send_update(turn, update);
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
            TurnOutcome::Stop(reason) => self.out.write_frame(&result(reason)),
            TurnOutcome::StopTwice => {
                (0..2).for_each(|_| self.out.write_frame(&result("end_turn")));
            }
            TurnOutcome::StopWithNullError => {
                let mut frame = result("end_turn");
                frame["error"] = Value::Null;
                self.out.write_frame(&frame);
            }
            TurnOutcome::Error(code, message) => {
                self.send_error(&turn.id, *code, message, &Value::Null);
            }
        }
        Ok(())
    }

    fn turn_usage(&self, turn: &RunningTurn) -> Option<usize> {
        match self.flags.usage {
            UsageMode::Never => None,
            UsageMode::Current => Some(100),
            UsageMode::Cumulative => Some(100 * turn.number),
        }
    }
}

/// Lines that are not JSON, or JSON that is not a frame.
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
