//! Relays a client's pipes to the daemon, and connects again when the daemon has ended: `jackfield acp` for editors, and
//! `jackfield attach` for its own connection.
//!
//! One thread copies from the client to the hub, another one from the hub to the client, so that neither direction waits
//! for the other. The second one also reconnects; meanwhile the first one waits if the client sends something.

use super::{BlockingSocket, bridge_link::BridgeLink};
use bytes::{Bytes, BytesMut};
use jackfield_hub_client::ClientRelay;
use jackfield_protocol::{FRAME_BYTES_MAX, Frame, HUB_FRAME_BYTES_MAX, LineSplitter};
use jackfield_transport::{read_ready, wait_for_reader_exit, write_all_ready};
use std::{
    io,
    net::Shutdown,
    os::fd::AsFd,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

const BUFFER_BYTES: usize = 64 << 10;
/// How often to look for a daemon that another command has started.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long canceled turns may take to end before the bridge exits.
const CANCEL_MAX: Duration = Duration::from_secs(5);

/// How a bridge ended.
#[derive(Debug)]
pub(crate) enum BridgeEnd {
    /// The client closed its input and has all responses, it no longer reads, or [`BridgeHandle::stop`] was called.
    Finished,
    /// The daemon has ended, and no connection could be opened again.
    DaemonGone,
    /// Copying failed: the output is a file on a full disk, or no thread could be started.
    Failed(io::Error),
}

/// What happens to the turns that the client waits for when the bridge ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunningTurns {
    Continue,
    Cancel,
}

/// The state that the threads share.
pub(crate) struct BridgeHandle<O> {
    state: Mutex<BridgeState>,
    changed: Condvar,
    output: O,
    /// Held while lines are written to the client.
    writing: Mutex<()>,
    at_end: RunningTurns,
}

struct BridgeState {
    relay: ClientRelay,
    /// The connection, unless it is lost.
    hub: Option<Arc<BlockingSocket>>,
    /// The client has sent something that needs a connection.
    is_wanted: bool,
    /// Why the last attempt to connect failed.
    failure: Option<String>,
    input_ended: bool,
    is_stopped: bool,
}

impl BridgeState {
    fn is_finished(&self) -> bool {
        self.is_stopped || (self.input_ended && !self.relay.has_pending_requests())
    }
}

impl<O: AsFd + Send + Sync + 'static> BridgeHandle<O> {
    pub(crate) fn new(
        relay: ClientRelay,
        hub: BlockingSocket,
        output: O,
        at_end: RunningTurns,
    ) -> Arc<BridgeHandle<O>> {
        let state = BridgeState {
            relay,
            hub: Some(Arc::new(hub)),
            is_wanted: false,
            failure: None,
            input_ended: false,
            is_stopped: false,
        };
        Arc::new(BridgeHandle {
            state: Mutex::new(state),
            changed: Condvar::new(),
            output,
            writing: Mutex::default(),
            at_end,
        })
    }

    /// Relays until the client or the daemon is gone for good. May return while a thread still reads `input`, which ends
    /// with the process or its input.
    pub(crate) fn run<I>(self: &Arc<Self>, input: I, link: &dyn BridgeLink) -> BridgeEnd
    where
        I: AsFd + Send + 'static,
    {
        let up = self.clone();
        let spawned =
            thread::Builder::new().name("bridge".into()).spawn(move || up.copy_up(&input));
        if let Err(error) = spawned {
            return BridgeEnd::Failed(error);
        }
        loop {
            let Some(hub) = self.lock().hub.clone() else { return BridgeEnd::DaemonGone };
            if let Err(error) = self.copy_down(&hub) {
                return match error.kind() {
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                        BridgeEnd::Finished
                    }
                    _ => BridgeEnd::Failed(error),
                };
            }
            let withdrawn = {
                let mut state = self.lock();
                state.hub = None;
                if state.is_finished() {
                    return BridgeEnd::Finished;
                }
                state.relay.on_hub_lost()
            };
            let written = self.write_lines(&withdrawn);
            let reconnected = written.and_then(|()| self.reconnect(link, &hub));
            match reconnected {
                Ok(true) => {}
                Ok(false) if self.lock().is_finished() => return BridgeEnd::Finished,
                Ok(false) => return BridgeEnd::DaemonGone,
                Err(error) => return BridgeEnd::Failed(error),
            }
        }
    }

    /// Ends the bridge. With [`RunningTurns::Cancel`] the turns that the client waits for are canceled first.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        self.cancel_turns(&mut state);
        let until = Instant::now() + CANCEL_MAX;
        while self.at_end == RunningTurns::Cancel
            && state.hub.is_some()
            && state.relay.has_running_turns()
            && Instant::now() < until
        {
            state = self.wait(state, until.saturating_duration_since(Instant::now()));
        }
        state.is_stopped = true;
        self.changed.notify_all();
        if let Some(hub) = &state.hub {
            let _already_closed = hub.shutdown(Shutdown::Both);
        }
    }

    /// Waits until everything that the client has sent before it closed its input is with the hub.
    pub(crate) fn wait_until_sent(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut state = self.lock();
        while !state.input_ended && !state.is_stopped && Instant::now() < until {
            state = self.wait(state, until.saturating_duration_since(Instant::now()));
        }
    }

    /// Copies from the client to the hub.
    fn copy_up(&self, input: &impl AsFd) {
        let mut lines = LineSplitter::new(FRAME_BYTES_MAX);
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(count @ 1..) = read_ready(input.as_fd(), &mut buffer) {
            let chunk = BytesMut::from(&buffer[..count]).freeze();
            lines.push(chunk, &mut |line| match line {
                Ok(line) => self.on_client_line(line),
                // As the hub answers it.
                Err(too_long) => {
                    let fault = too_long.fault();
                    let answer = Frame::error_for(fault.request_id(), &fault).into_bytes();
                    let _reader_gone = self.write_lines(&[answer]);
                }
            });
        }
        lines.finish(&mut |line| line.into_iter().for_each(|it| self.on_client_line(it)));
        self.on_input_ended();
    }

    fn on_client_line(&self, line: Bytes) {
        let mut state = self.lock();
        while state.hub.is_none() && !state.is_stopped && state.failure.is_none() {
            state.is_wanted = true;
            self.changed.notify_all();
            state = self.wait(state, POLL_INTERVAL);
        }
        let hub = state.hub.clone();
        let mut output = state.relay.on_client_line(line);
        if hub.is_none()
            && let Some(why) = state.failure.take()
        {
            output.to_client.extend(state.relay.refuse_requests(&why));
        }
        drop(state);
        if let Some(hub) = hub {
            // If the daemon is gone, the other thread notices it and repeats the requests.
            let _hub_gone = write_all_ready(hub.as_fd(), &join_lines(&output.to_hub));
        }
        let _reader_gone = self.write_lines(&output.to_client);
    }

    fn on_input_ended(&self) {
        let mut state = self.lock();
        state.input_ended = true;
        self.changed.notify_all();
        self.cancel_turns(&mut state);
        let Some(hub) = state.hub.clone() else { return };
        drop(state);
        let _already_closed = hub.shutdown(Shutdown::Write);
        // Detects an exited client now, not when the next update is written.
        if wait_for_reader_exit(self.output.as_fd(), hub.as_fd()) {
            self.lock().is_stopped = true;
            let _already_closed = hub.shutdown(Shutdown::Both);
        }
    }

    fn cancel_turns(&self, state: &mut BridgeState) {
        if let (RunningTurns::Cancel, Some(hub)) = (self.at_end, &state.hub) {
            let lines = join_lines(&state.relay.cancel_turns());
            let _hub_gone = write_all_ready(hub.as_fd(), &lines);
        }
    }

    /// Copies from the hub to the client until the connection ends.
    fn copy_down(&self, hub: &BlockingSocket) -> io::Result<()> {
        let mut lines = LineSplitter::new(HUB_FRAME_BYTES_MAX);
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(count @ 1..) = read_ready(hub.as_fd(), &mut buffer) {
            let mut received = Vec::new();
            let chunk = BytesMut::from(&buffer[..count]).freeze();
            lines.push(chunk, &mut |line| received.extend(line.ok()));
            let relayed = {
                let mut state = self.lock();
                let lines = received
                    .into_iter()
                    .flat_map(|it| state.relay.on_hub_line(it))
                    .collect::<Vec<_>>();
                self.changed.notify_all();
                lines
            };
            self.write_lines(&relayed)?;
        }
        Ok(())
    }

    /// Waits for a connection to a daemon, and repeats on it what the client has opened and waits for. Returns false if
    /// the bridge ends instead.
    fn reconnect(&self, link: &dyn BridgeLink, lost: &BlockingSocket) -> io::Result<bool> {
        self.write_lines(link.report(false).as_slice())?;
        let mut must_start = link.must_restart(lost);
        let since = Instant::now();
        let hub = loop {
            {
                let state = self.lock();
                if state.is_finished() {
                    return Ok(false);
                }
                must_start |= state.is_wanted || state.relay.has_pending_requests();
            }
            match link.dial(must_start) {
                Ok(Some(hub)) => break hub,
                Ok(None) => {}
                Err(why) => self.write_lines(&self.fail(&why))?,
            }
            if link.gives_up_after().is_some_and(|it| it < since.elapsed() || must_start) {
                return Ok(false);
            }
            must_start = false;
            let state = self.lock();
            if !state.is_wanted && !state.is_stopped {
                drop(self.wait(state, POLL_INTERVAL));
            }
        };
        let mut state = self.lock();
        let output = state.relay.on_hub_connected();
        // Under the lock, so that nothing of the client comes before it.
        let _hub_gone = write_all_ready(hub.as_fd(), &join_lines(&output.to_hub));
        if state.input_ended {
            let _already_closed = hub.shutdown(Shutdown::Write);
        }
        (state.hub, state.is_wanted, state.failure) = (Some(Arc::new(hub)), false, None);
        self.changed.notify_all();
        drop(state);
        self.write_lines(link.report(true).as_slice())?;
        self.write_lines(&output.to_client)?;
        Ok(true)
    }

    /// No connection can be opened now: answers the pending requests. The next line of the client tries again.
    fn fail(&self, why: &str) -> Vec<Bytes> {
        let mut state = self.lock();
        let refusals = state.relay.refuse_requests(why);
        if std::mem::take(&mut state.is_wanted) {
            state.failure = Some(why.to_owned());
        }
        self.changed.notify_all();
        refusals
    }

    fn write_lines(&self, lines: &[Bytes]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        write_all_ready(self.output.as_fd(), &join_lines(lines))
    }

    fn lock(&self) -> MutexGuard<'_, BridgeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, BridgeState>,
        limit: Duration,
    ) -> MutexGuard<'a, BridgeState> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }
}

fn join_lines(lines: &[Bytes]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(lines.iter().map(|it| it.len() + 1).sum());
    for line in lines {
        joined.extend_from_slice(line);
        joined.push(b'\n');
    }
    joined
}
