//! The agent as a value, and its loop: lines in, turns on, wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    asks::Ask,
    flags::{Death, Flags, Ids, Switch},
    input::Input,
    output::Output,
    process,
    session::Sessions,
    turn::Turn,
    witness::Witness,
};

pub(crate) struct Agent {
    pub(crate) flags: Flags,
    pub(crate) out: Output,
    pub(crate) sessions: Sessions,
    pub(crate) witness: Option<Witness>,
    /// Turns that run, and ended ones that still have something to send.
    pub(crate) turns: Vec<Turn>,
    /// Our requests without an answer, by the JSON text of their id; and the turn that asks.
    pub(crate) asks: BTreeMap<String, (u64, Ask)>,
    /// Requests whose turn is over: their answers may still come.
    pub(crate) forgiven: BTreeSet<String>,
    /// Requests of the client that are never answered unless it cancels them.
    pub(crate) hanging: Vec<Value>,
    /// What `client` announced in `initialize`.
    pub(crate) client: Option<Value>,
    pub(crate) authenticated: bool,
    /// It has said once that a session is locked.
    pub(crate) was_locked: bool,
    /// What the client did wrong.
    pub(crate) complaints: Vec<String>,
    pub(crate) turns_begun: u64,
    asked: u64,
    later: Vec<(Instant, Value)>,
    input: Input,
}

const BANNER: &[u8] = b"\x1b[2J\x1b[1;32mWelcome to the fake agent!\x1b[0m\n\
    \x1b]0;fake agent\x07\x1b]8;;http://127.0.0.1/\x07a link\x1b]8;;\x07\n\
    \n   (node:1) Warning: this is not JSON {\n";

impl Agent {
    pub(crate) fn new(flags: Flags) -> Agent {
        Agent {
            out: Output::new(flags.on(Switch::Crlf)),
            sessions: Sessions::new(flags.state.clone()),
            witness: flags.witness.as_deref().map(Witness::start),
            authenticated: !flags.on(Switch::Auth) && !flags.on(Switch::AuthRefused),
            flags,
            turns: Vec::new(),
            asks: BTreeMap::new(),
            forgiven: BTreeSet::new(),
            hanging: Vec::new(),
            client: None,
            was_locked: false,
            complaints: Vec::new(),
            turns_begun: 0,
            asked: 0,
            later: Vec::new(),
            input: Input::default(),
        }
    }

    /// Serves until stdin ends or the script says to die.
    pub(crate) fn run(mut self) -> Death {
        let death = self.start().and_then(|()| {
            loop {
                self.turn_over()?;
            }
        });
        self.out.flush();
        match death {
            Err(death) => death,
            Ok(()) => Death::Exit(0),
        }
    }

    fn start(&mut self) -> Result<(), Death> {
        self.flags.stderr.iter().for_each(|it| process::note(it));
        process::flood_stderr(self.flags.stderr_flood);
        if let Some(death) = self.flags.exit_before_initialize {
            self.die_unless_done(death)?;
        }
        if self.flags.on(Switch::Bom) {
            self.out.bytes("\u{feff}".as_bytes());
        }
        if self.flags.on(Switch::Banner) {
            self.out.bytes(BANNER);
        }
        self.out.flush();
        process::leave_orphans(&self.flags);
        Ok(())
    }

    /// Once around: what was read, what is due, what can go on; then waits for more.
    fn turn_over(&mut self) -> Result<(), Death> {
        while let Some(line) = self.input.line() {
            self.on_line(&line)?;
        }
        self.serve_later()?;
        let busy = self.run_turns()?;
        let stays = self.flags.on(Switch::IgnoreEof);
        if self.out.is_broken() && !stays {
            return Err(Death::Exit(1));
        }
        if (self.input.has_ended() && !stays) || self.input.is_forgotten() {
            return Err(Death::Exit(0));
        }
        if busy {
            self.input.fill(Some(Duration::ZERO));
        } else {
            self.out.flush();
            self.input.fill(self.next_wake());
        }
        Ok(())
    }

    pub(crate) fn postpone(&mut self, delay: Duration, frame: Value) {
        self.later.push((Instant::now() + delay, frame));
    }

    fn serve_later(&mut self) -> Result<(), Death> {
        if self.later.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|it| it.0 <= now);
        self.later = later;
        let mut due: Vec<(Instant, Value)> = due;
        due.sort_by_key(|it| it.0);
        due.into_iter().try_for_each(|(_, frame)| self.on_frame(frame, true))
    }

    fn next_wake(&self) -> Option<Duration> {
        let turns = self.turns.iter().filter(|it| !it.hangs).filter_map(|it| it.wake);
        let first = turns.chain(self.later.iter().map(|it| it.0)).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// The id of our next request.
    pub(crate) fn next_id(&mut self) -> Value {
        let count = self.asked;
        self.asked += 1;
        match self.flags.ids {
            Ids::Number => json!(count + 1),
            Ids::Zero => json!(count),
            Ids::Big => json!(9_007_199_254_740_993 + 2 * count),
            Ids::String => json!(format!("fake-{:08x}-{count}", std::process::id())),
        }
    }

    /// Dies if `--die-at` names this step.
    pub(crate) fn die_at(&self, step: &str) -> Result<(), Death> {
        if self.flags.dies_at(step) { self.die_unless_done(self.flags.die_with) } else { Ok(()) }
    }

    /// With `--die-once` a file says that another process died already.
    fn die_unless_done(&self, death: Death) -> Result<(), Death> {
        let once = self.flags.on(Switch::DieOnce);
        let Some(dir) = self.flags.state.as_ref().filter(|_| once) else { return Err(death) };
        let first = fs::File::create_new(dir.join("died")).is_ok();
        if first { Err(death) } else { Ok(()) }
    }
}
