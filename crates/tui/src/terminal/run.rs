//! Runs the interface: reads keys and updates, executes effects, draws frames.

use super::{
    clipboard::TerminalMultiplexer,
    file_search::FileSearches,
    frame_painter::{FramePainter, frame_size},
    hub_link::{DaemonAccess, HubLink},
    pacing::{FrameNeed, FramePacing},
    screen::{ScreenModes, restore_on_panic},
    signals::{ReceivedSignal, SignalStreams},
    syntax_loads::SyntaxLoads,
};
use crate::{
    app::AppState,
    hub::HubUpdate,
    keymap::{EditingKeys, KeyBindings},
    page::{AppEffect, AppInput, ViewOptions},
    text::{ColorDepth, TerminalBackground},
};
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use jackfield_events::Time;
use ratatui::text::Line;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufWriter, Stdout},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

/// How often the state is updated and drawn without an input: ages are shown in seconds.
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// How long the end waits for threads that connect or search.
const SHUTDOWN_MAX: Duration = Duration::from_millis(100);

/// What the interface is started with.
pub struct TuiOptions {
    pub daemon: Arc<dyn DaemonAccess>,
    /// The environment of the user, for agents that are started.
    pub environment: Map<String, Value>,
    /// Random, so that keys of requests are unique.
    pub key_seed: u64,
    /// The directory in which new sessions start.
    pub cwd: String,
    /// The session to open at once.
    pub session: Option<String>,
    /// Draw below the prompt of the shell instead of on the alternate screen.
    pub is_inline: bool,
    pub uses_mouse: bool,
    pub has_color: bool,
    pub editing: EditingKeys,
    /// The keys of actions, where they differ from the default.
    pub key_changes: BTreeMap<String, Vec<String>>,
}

/// How the interface ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuiEnd {
    Quit,
    /// By SIGTERM, SIGINT or SIGHUP.
    Signal,
}

/// Why the interface could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("the keys in config.toml are invalid: {0}")]
    Keys(String),
    #[error("failed to use the terminal")]
    Terminal(#[from] io::Error),
    #[error("a task of the interface panicked")]
    Panicked,
}

/// Runs the interface on the terminal of this process until the user leaves it.
pub fn run_tui(options: TuiOptions) -> Result<TuiEnd, TuiError> {
    let keymap = KeyBindings::from_config(options.editing, &options.key_changes);
    let keymap = keymap.map_err(|it| TuiError::Keys(it.reason))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let modes = ScreenModes { is_inline: options.is_inline, uses_mouse: options.uses_mouse };
    let has_panicked = restore_on_panic(move || {
        // It cannot be reported where it would be seen.
        let _restored = modes.leave();
    });
    modes.enter()?;
    let ended = runtime.block_on(async {
        let mut interface = TerminalInterface::start(options, keymap, modes)?;
        let ended = interface.run(&has_panicked).await;
        interface.finish().await;
        ended
    });
    if !has_panicked.load(Ordering::SeqCst) {
        modes.leave()?;
    }
    runtime.shutdown_timeout(SHUTDOWN_MAX);
    ended
}

pub(super) struct TerminalInterface {
    state: AppState,
    pub(super) painter: FramePainter<BufWriter<Stdout>>,
    pub(super) modes: ScreenModes,
    multiplexer: TerminalMultiplexer,
    /// `None` while another program has the terminal.
    pub(super) events: Option<EventStream>,
    link: HubLink,
    updates: mpsc::Receiver<HubUpdate>,
    pub(super) editor: Option<JoinHandle<Option<String>>>,
    /// Lines that are printed above the next frame.
    pub(super) lines_above: Vec<Line<'static>>,
    searches: FileSearches,
    syntax_loads: SyntaxLoads,
    pub(super) pacing: FramePacing,
    next_tick: Instant,
    wake_times: BTreeSet<Time>,
    end: Option<TuiEnd>,
}

impl TerminalInterface {
    fn start(
        options: TuiOptions,
        keymap: KeyBindings,
        modes: ScreenModes,
    ) -> Result<TerminalInterface, TuiError> {
        let env = |name: &str| std::env::var(name).ok();
        let color_depth =
            if options.has_color { ColorDepth::detect(env) } else { ColorDepth::None };
        let view_options = ViewOptions {
            color_depth,
            background: TerminalBackground::detect(env),
            home: env("HOME"),
            cwd: options.cwd,
            is_inline: modes.is_inline,
            loads_syntaxes: true,
            session: options.session,
        };
        let size = crossterm::terminal::size()?;
        let painter = FramePainter::new(BufWriter::new(io::stdout()), size, modes.is_inline)?;
        let frame = frame_size(size, modes.is_inline);
        let (link, updates) = HubLink::start(options.daemon, options.environment, options.key_seed);
        let now = Instant::now();
        Ok(TerminalInterface {
            state: AppState::new(view_options, keymap, frame, wall_time()),
            painter,
            modes,
            multiplexer: TerminalMultiplexer::detect(env),
            events: Some(EventStream::new()),
            link,
            updates,
            editor: None,
            lines_above: Vec::new(),
            searches: FileSearches::default(),
            syntax_loads: SyntaxLoads::default(),
            pacing: FramePacing::new(now),
            next_tick: now + TICK_INTERVAL,
            wake_times: BTreeSet::new(),
            end: None,
        })
    }

    async fn run(&mut self, has_panicked: &AtomicBool) -> Result<TuiEnd, TuiError> {
        let mut signals = SignalStreams::new()?;
        self.on_resize(self.painter.size())?;
        loop {
            if let Some(end) = self.end {
                return Ok(end);
            }
            if has_panicked.load(Ordering::SeqCst) {
                return Err(TuiError::Panicked);
            }
            self.draw_if_due()?;
            let timer = tokio::time::sleep_until(self.next_timer());
            tokio::select! {
                biased;
                signal = signals.next() => self.on_signal(signal)?,
                event = next_event(&mut self.events) => self.on_event(event)?,
                edited = join(&mut self.editor) => self.on_edited(edited.flatten())?,
                found = join(&mut self.searches.running) => self.on_found(found)?,
                loaded = join(&mut self.syntax_loads.running) => self.on_syntax_loaded(loaded)?,
                Some(update) = self.updates.recv() => {
                    self.link.note_update(&update);
                    self.on_input(AppInput::Hub(update), FrameNeed::Update)?;
                }
                () = timer => self.on_timer()?,
            }
        }
    }

    /// Ends the connections when what was sent has arrived.
    async fn finish(mut self) {
        // The terminal may be gone.
        let _finished = self.painter.finish();
        self.link.finish(self.updates).await;
    }

    fn draw_if_due(&mut self) -> Result<(), TuiError> {
        if self.events.is_none() || !self.pacing.is_due(Instant::now()) {
            return Ok(());
        }
        let lines_above = std::mem::take(&mut self.lines_above);
        if !lines_above.is_empty() {
            self.painter.print_above(&lines_above)?;
        }
        self.painter.draw(&self.state)?;
        // The time after the frame was written, so that a slow terminal gets fewer frames.
        self.pacing.on_drawn(Instant::now());
        let effects = self.state.update(wall_time(), AppInput::Drawn);
        self.execute(effects)
    }

    /// When the loop has to continue without an input.
    fn next_timer(&self) -> Instant {
        let frame = self.pacing.due_at().filter(|_| self.events.is_some());
        let now = wall_time();
        let until_wake = self.wake_times.first().map(|it| Duration::from_millis(it.since(now)));
        let wake = until_wake.map(|it| Instant::now() + it);
        [frame, wake].into_iter().flatten().fold(self.next_tick, Instant::min)
    }

    fn on_timer(&mut self) -> Result<(), TuiError> {
        let (now, time) = (Instant::now(), wall_time());
        let is_woken = self.wake_times.first().is_some_and(|it| *it <= time);
        if !is_woken && now < self.next_tick {
            return Ok(());
        }
        self.wake_times.retain(|it| time < *it);
        if self.next_tick <= now {
            self.next_tick = now + TICK_INTERVAL;
        }
        self.on_input(AppInput::Tick, FrameNeed::Update)
    }

    fn on_event(&mut self, event: Option<io::Result<Event>>) -> Result<(), TuiError> {
        let input = match event {
            Some(Ok(Event::Key(key))) => AppInput::Key(key),
            Some(Ok(Event::Paste(text))) => AppInput::Paste(text),
            Some(Ok(Event::Mouse(mut mouse))) => {
                // An inline frame does not start at the top of the terminal.
                let Some(row) = mouse.row.checked_sub(self.painter.top_row()) else {
                    return Ok(());
                };
                mouse.row = row;
                AppInput::Mouse(mouse)
            }
            Some(Ok(Event::Resize(width, height))) => return self.on_resize((width, height)),
            Some(Ok(Event::FocusGained | Event::FocusLost)) => return Ok(()),
            Some(Err(error)) => return Err(error.into()),
            None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        };
        self.on_input(input, FrameNeed::Key)
    }

    pub(super) fn on_resize(&mut self, size: (u16, u16)) -> Result<(), TuiError> {
        // An inline frame may have lost rows even if the size is again what it was.
        if self.modes.is_inline || self.painter.size() != size {
            self.painter.resize(size)?;
            self.read_top_row();
        }
        let (width, height) = frame_size(size, self.modes.is_inline);
        self.on_input(AppInput::Resize { width, height }, FrameNeed::Update)
    }

    fn on_signal(&mut self, signal: ReceivedSignal) -> Result<(), TuiError> {
        match signal {
            // The editor gets the signal of the key, too.
            ReceivedSignal::Interrupt if self.editor.is_some() => {}
            ReceivedSignal::Interrupt | ReceivedSignal::Terminate => {
                self.end = Some(TuiEnd::Signal);
            }
            ReceivedSignal::Continue if self.events.is_some() => self.resume()?,
            ReceivedSignal::Continue => {}
        }
        Ok(())
    }

    pub(super) fn on_input(&mut self, input: AppInput, need: FrameNeed) -> Result<(), TuiError> {
        self.pacing.request(need);
        let effects = self.state.update(wall_time(), input);
        self.execute(effects)
    }

    fn execute(&mut self, effects: Vec<AppEffect>) -> Result<(), TuiError> {
        for effect in effects {
            match effect {
                AppEffect::Hub(number, request) => {
                    if let Some(refused) = self.link.send(number, request) {
                        self.on_input(AppInput::Hub(refused), FrameNeed::Update)?;
                    }
                }
                AppEffect::Copy(text) => {
                    if let Some(sequence) = self.multiplexer.copy_sequence(&text) {
                        self.painter.write(&sequence)?;
                    }
                }
                AppEffect::EditExternally(text) => self.start_editor(text)?,
                AppEffect::FindFiles { session, directories, query } => {
                    self.searches.request(session, directories, query);
                }
                AppEffect::LoadSyntax(sample) => self.syntax_loads.request(sample),
                AppEffect::PrintToScrollback(lines) => self.print_lines(&lines)?,
                AppEffect::PrintAbove(lines) => self.print_above(lines),
                AppEffect::WakeAt(time) => drop(self.wake_times.insert(time)),
                AppEffect::Redraw => {
                    self.painter.clear()?;
                    self.pacing.request(FrameNeed::Key);
                }
                AppEffect::Suspend => self.suspend()?,
                AppEffect::Quit => self.end = Some(TuiEnd::Quit),
            }
        }
        Ok(())
    }

    fn on_found(&mut self, found: Option<AppInput>) -> Result<(), TuiError> {
        self.searches.start_next();
        found.map_or(Ok(()), |it| self.on_input(it, FrameNeed::Key))
    }

    fn on_syntax_loaded(&mut self, loaded: Option<AppInput>) -> Result<(), TuiError> {
        self.syntax_loads.start_next();
        loaded.map_or(Ok(()), |it| self.on_input(it, FrameNeed::Update))
    }
}

/// The next event of the terminal; never while another program has the terminal.
async fn next_event(events: &mut Option<EventStream>) -> Option<io::Result<Event>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// The result of a task, if there is one; `None` if it failed.
async fn join<T>(task: &mut Option<JoinHandle<T>>) -> Option<T> {
    let Some(running) = task else { return std::future::pending().await };
    let result = running.await.ok();
    *task = None;
    result
}

fn wall_time() -> Time {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
