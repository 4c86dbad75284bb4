//! The state of the agent and its loop: read lines, continue turns, wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    asks::OutgoingRequest,
    flags::{AgentFlags, FlagSwitch, ProcessEnd, RequestIdKind},
    input::StdinReader,
    output::StdoutWriter,
    process,
    session::SessionStore,
    turn::RunningTurn,
    witness::WitnessFile,
};

pub(crate) struct FakeAgent {
    pub(crate) flags: AgentFlags,
    pub(crate) out: StdoutWriter,
    pub(crate) sessions: SessionStore,
    pub(crate) witness: Option<WitnessFile>,
    /// Running turns, and ended ones that still have steps.
    pub(crate) turns: Vec<RunningTurn>,
    /// Open requests to the client by the JSON text of their id, each with its turn.
    pub(crate) open_requests: BTreeMap<String, (u64, OutgoingRequest)>,
    /// Requests whose turn has ended; their responses may still arrive.
    pub(crate) abandoned_requests: BTreeSet<String>,
    /// Requests of the client that are only answered when they are cancelled.
    pub(crate) hanging_requests: Vec<Value>,
    /// The client capabilities of `initialize`.
    pub(crate) client_capabilities: Option<Value>,
    pub(crate) authenticated: bool,
    /// The error "locked" was sent once.
    pub(crate) was_locked: bool,
    /// Protocol violations of the client.
    pub(crate) complaints: Vec<String>,
    pub(crate) turns_begun: u64,
    requests_sent: u64,
    postponed: Vec<(Instant, Value)>,
    input: StdinReader,
}

const BANNER: &[u8] = b"\x1b[2J\x1b[1;32mWelcome to the fake agent!\x1b[0m\n\
    \x1b]0;fake agent\x07\x1b]8;;http://127.0.0.1/\x07a link\x1b]8;;\x07\n\
    \n   (node:1) Warning: this is not JSON {\n";

impl FakeAgent {
    pub(crate) fn new(flags: AgentFlags) -> FakeAgent {
        FakeAgent {
            out: StdoutWriter::new(flags.has_switch(FlagSwitch::Crlf)),
            sessions: SessionStore::new(flags.state.clone()),
            witness: flags.witness.as_deref().map(WitnessFile::start),
            authenticated: !flags.has_switch(FlagSwitch::Auth)
                && !flags.has_switch(FlagSwitch::AuthRefused),
            flags,
            turns: Vec::new(),
            open_requests: BTreeMap::new(),
            abandoned_requests: BTreeSet::new(),
            hanging_requests: Vec::new(),
            client_capabilities: None,
            was_locked: false,
            complaints: Vec::new(),
            turns_begun: 0,
            requests_sent: 0,
            postponed: Vec::new(),
            input: StdinReader::default(),
        }
    }

    /// Serves until stdin ends or the script ends the process.
    pub(crate) fn run(mut self) -> ProcessEnd {
        let death = self.start().and_then(|()| {
            loop {
                self.run_iteration()?;
            }
        });
        self.out.flush();
        match death {
            Err(death) => death,
            Ok(()) => ProcessEnd::Exit(0),
        }
    }

    fn start(&mut self) -> Result<(), ProcessEnd> {
        self.flags.stderr.iter().for_each(|it| process::write_stderr_line(it));
        process::flood_stderr(self.flags.stderr_flood);
        if let Some(death) = self.flags.exit_before_initialize {
            self.end_unless_done(death)?;
        }
        if self.flags.has_switch(FlagSwitch::Bom) {
            self.out.write_bytes("\u{feff}".as_bytes());
        }
        if self.flags.has_switch(FlagSwitch::Banner) {
            self.out.write_bytes(BANNER);
        }
        self.out.flush();
        process::start_orphans(&self.flags);
        Ok(())
    }

    /// One iteration: handles input, due frames and turns, then waits.
    fn run_iteration(&mut self) -> Result<(), ProcessEnd> {
        while let Some(line) = self.input.next_line() {
            self.on_line(&line)?;
        }
        self.serve_postponed()?;
        let busy = self.run_turns()?;
        let stays = self.flags.has_switch(FlagSwitch::IgnoreEof);
        if self.out.is_broken() && !stays {
            return Err(ProcessEnd::Exit(1));
        }
        if (self.input.has_ended() && !stays) || self.input.has_expired() {
            return Err(ProcessEnd::Exit(0));
        }
        if busy {
            self.input.wait_and_read(Some(Duration::ZERO));
        } else {
            self.out.flush();
            self.input.wait_and_read(self.next_deadline());
        }
        Ok(())
    }

    pub(crate) fn postpone(&mut self, delay: Duration, frame: Value) {
        self.postponed.push((Instant::now() + delay, frame));
    }

    fn serve_postponed(&mut self) -> Result<(), ProcessEnd> {
        if self.postponed.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let (due, later) =
            std::mem::take(&mut self.postponed).into_iter().partition(|it| it.0 <= now);
        self.postponed = later;
        let mut due: Vec<(Instant, Value)> = due;
        due.sort_by_key(|it| it.0);
        due.into_iter().try_for_each(|(_, frame)| self.on_frame(frame, true))
    }

    fn next_deadline(&self) -> Option<Duration> {
        let turns = self.turns.iter().filter(|it| !it.hangs).filter_map(|it| it.wake_at);
        let first = turns.chain(self.postponed.iter().map(|it| it.0)).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// The id of the next request to the client.
    pub(crate) fn next_id(&mut self) -> Value {
        let count = self.requests_sent;
        self.requests_sent += 1;
        match self.flags.ids {
            RequestIdKind::Number => json!(count + 1),
            RequestIdKind::Zero => json!(count),
            RequestIdKind::Big => json!(9_007_199_254_740_993 + 2 * count),
            RequestIdKind::String => json!(format!("fake-{:08x}-{count}", std::process::id())),
        }
    }

    /// Ends the process if `--die-at` names this step.
    pub(crate) fn end_at_step(&self, step: &str) -> Result<(), ProcessEnd> {
        if self.flags.should_end_at(step) {
            self.end_unless_done(self.flags.die_with)
        } else {
            Ok(())
        }
    }

    /// With `--die-once`, a file records that an earlier process has ended already.
    fn end_unless_done(&self, death: ProcessEnd) -> Result<(), ProcessEnd> {
        let once = self.flags.has_switch(FlagSwitch::DieOnce);
        let Some(dir) = self.flags.state.as_ref().filter(|_| once) else { return Err(death) };
        let first = fs::File::create_new(dir.join("died")).is_ok();
        if first { Err(death) } else { Ok(()) }
    }
}
