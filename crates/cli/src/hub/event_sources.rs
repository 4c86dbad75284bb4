//! The sources of events of a command: messages of the hub, lines of stdin, signals. Each source has a thread; all of them
//! feed one queue, so that a command waits in one place.

use super::BlockingSocket;
use bytes::{Bytes, BytesMut};
use jackfield_hub_client::HubMessage;
use jackfield_protocol::{FRAME_BYTES_MAX, HUB_FRAME_BYTES_MAX, LineSplitter, LineTooLong};
use rustix::{
    event::{PollFd, PollFlags},
    fs::FileType,
};
use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Instant,
};
use tokio::signal::unix::{SignalKind, signal};

/// An entry of the queue.
#[derive(Debug)]
pub(crate) enum SourceEvent {
    Message(HubMessage),
    /// The hub closed the connection.
    Closed,
    /// Wakes the command: see [`EventSources::take_interrupt`] and [`EventSources::take_typed`].
    Wakeup,
}

/// Input from stdin.
#[derive(Debug)]
pub(crate) enum TypedInput {
    /// A line without its line break, and the time when it was read.
    Line(String, Instant),
    /// A line that is longer than a frame may be.
    TooLong,
    /// Stdin is closed.
    End,
}

/// Messages that the command has not handled yet. When the queue is full, the hub's outbox fills instead.
const QUEUE_MAX: usize = 256;
/// Lines that the command has not handled yet. When the queue is full, the rest stays in the pipe.
const TYPED_MAX: usize = 16;
const CHUNK_BYTES: usize = 64 * 1024;

/// The queue and what feeds it.
#[derive(Debug)]
pub(crate) struct EventSources {
    queue: SyncSender<SourceEvent>,
    pub(crate) events: Receiver<SourceEvent>,
    /// Not in the queue, so that a command that does not read stdin still receives frames.
    typed: Option<Receiver<TypedInput>>,
    /// Not in the queue, so that many frames cannot delay Ctrl-C.
    interrupts: Arc<AtomicUsize>,
    /// The reader of stdout has closed it.
    stdout_closed: Arc<AtomicBool>,
}

impl EventSources {
    pub(crate) fn new() -> EventSources {
        let (queue, events) = sync_channel(QUEUE_MAX);
        EventSources {
            queue,
            events,
            typed: None,
            interrupts: Arc::default(),
            stdout_closed: Arc::default(),
        }
    }

    /// Whether the reader of stdout has closed it; true once.
    pub(crate) fn take_stdout_closed(&self) -> bool {
        self.stdout_closed.swap(false, Ordering::SeqCst)
    }

    /// Whether SIGINT or SIGTERM has arrived; each signal is returned once.
    pub(crate) fn take_interrupt(&self) -> bool {
        let decrement = |count: usize| count.checked_sub(1);
        self.interrupts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement).is_ok()
    }

    /// The next input from stdin, if any.
    pub(crate) fn take_typed(&self) -> Option<TypedInput> {
        self.typed.as_ref()?.try_recv().ok()
    }

    /// Starts to read messages of the hub.
    pub(crate) fn read_messages(&self, socket: Arc<BlockingSocket>) -> io::Result<()> {
        let queue = self.queue.clone();
        thread::Builder::new().name("hub reader".into()).spawn(move || {
            // Lines that are not frames are ignored.
            read_lines(&*socket, HUB_FRAME_BYTES_MAX, &mut |line| {
                let message = line.ok().and_then(HubMessage::parse);
                message.is_none_or(|it| queue.send(SourceEvent::Message(it)).is_ok())
            });
            let _receiver_gone = queue.send(SourceEvent::Closed);
        })?;
        Ok(())
    }

    /// Starts to read lines from stdin.
    pub(crate) fn read_stdin(&mut self) -> io::Result<()> {
        if self.typed.is_some() {
            return Ok(());
        }
        let (lines, typed) = sync_channel(TYPED_MAX);
        let queue = self.queue.clone();
        thread::Builder::new().name("stdin reader".into()).spawn(move || {
            let deliver = |input: TypedInput| {
                let wanted = lines.send(input).is_ok();
                // If the queue is full, the command is awake.
                let _woken = queue.try_send(SourceEvent::Wakeup);
                wanted
            };
            read_lines(io::stdin(), FRAME_BYTES_MAX, &mut |line| {
                let text = |it: Bytes| {
                    TypedInput::Line(String::from_utf8_lossy(&it).into_owned(), Instant::now())
                };
                deliver(line.map_or(TypedInput::TooLong, text))
            });
            deliver(TypedInput::End);
        })?;
        self.typed = Some(typed);
        Ok(())
    }

    /// Starts to watch whether the reader of stdout closes it, if stdout is a pipe or a socket.
    pub(crate) fn watch_stdout(&self) -> io::Result<()> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(io::stdout())?.st_mode);
        if !matches!(kind, FileType::Fifo | FileType::Socket) {
            return Ok(());
        }
        let (queue, closed) = (self.queue.clone(), self.stdout_closed.clone());
        thread::Builder::new().name("stdout watcher".into()).spawn(move || {
            let stdout = io::stdout();
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            // Returns only when the other end is closed.
            while rustix::event::poll(&mut watched, None).is_err() {}
            closed.store(true, Ordering::SeqCst);
            // If the queue is full, the command is awake.
            let _woken = queue.try_send(SourceEvent::Wakeup);
        })?;
        Ok(())
    }

    /// Counts SIGINT and SIGTERM instead of letting them end the process. The handlers are in place when it returns.
    pub(crate) fn watch_signals(&self) -> io::Result<()> {
        let (queue, count) = (self.queue.clone(), self.interrupts.clone());
        on_termination_signals(move || {
            count.fetch_add(1, Ordering::SeqCst);
            // If the queue is full, the command is awake.
            let sent = queue.try_send(SourceEvent::Wakeup);
            !matches!(sent, Err(TrySendError::Disconnected(_)))
        })
    }
}

/// Calls `on_signal` for SIGINT and SIGTERM instead of letting them end the process, until it returns false. The handlers
/// are in place when it returns.
pub(crate) fn on_termination_signals(
    mut on_signal: impl FnMut() -> bool + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupts, mut terminations) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async move {
            loop {
                let is_open = tokio::select! {
                    it = interrupts.recv() => it.is_some(),
                    it = terminations.recv() => it.is_some(),
                };
                if !on_signal() || !is_open {
                    return;
                }
            }
        });
    })?;
    Ok(())
}

/// Passes each line to `on_line` until the stream ends or `on_line` returns false.
fn read_lines(
    mut stream: impl Read,
    bytes_max: usize,
    on_line: &mut dyn FnMut(Result<Bytes, LineTooLong>) -> bool,
) {
    let mut lines = LineSplitter::new(bytes_max);
    let mut wanted = true;
    let mut chunk = vec![0; CHUNK_BYTES];
    while wanted {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => lines.push(BytesMut::from(&chunk[..count]).freeze(), &mut |line| {
                if wanted {
                    wanted = on_line(line);
                }
            }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    lines.finish(&mut |line| {
        if wanted {
            on_line(line);
        }
    });
}
