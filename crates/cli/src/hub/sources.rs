//! What a command waits for: frames of the hub, typed lines, Ctrl-C. Each source has a thread and
//! all of them end in one queue, so that a command waits in one place.

use super::BlockingSocket;
use bytes::{Bytes, BytesMut};
use jackfield_protocol::{FRAME_BYTES_MAX, Frame, LineSplitter, LineTooLong};
use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Instant,
};
use tokio::signal::unix::{SignalKind, signal};

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Happening {
    Frame(Frame),
    /// The hub is gone.
    HubGone,
    /// There is something beside the queue: see [`Sources::take_interrupt`], [`Sources::take_typed`].
    Woken,
}

/// What was typed.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A line, without its end, and when it was read.
    Line(String, Instant),
    /// A line that nobody could send on.
    TooLong,
    /// Nothing more will be.
    End,
}

/// Frames that wait to be looked at. When it is full, the hub's outbox fills instead.
const QUEUE_MAX: usize = 256;
/// Typed lines that wait to be looked at. When it is full, the rest waits in its pipe.
const TYPED_MAX: usize = 16;
/// The hub sends no longer lines than it accepts, and it accepts 16 MiB and a little.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;

/// The one queue, and how to add to it.
#[derive(Debug)]
pub(crate) struct Sources {
    queue: SyncSender<Happening>,
    pub(crate) happenings: Receiver<Happening>,
    /// Beside the queue: who has no use for more of it can still hear the hub.
    typed: Option<Receiver<Typed>>,
    /// Beside the queue: a flood of frames must not hide Ctrl-C.
    interrupts: Arc<AtomicUsize>,
}

impl Sources {
    pub(crate) fn new() -> Sources {
        let (queue, happenings) = sync_channel(QUEUE_MAX);
        Sources { queue, happenings, typed: None, interrupts: Arc::default() }
    }

    /// Whether there was a Ctrl-C or a SIGTERM since the last time; each counts once.
    pub(crate) fn take_interrupt(&self) -> bool {
        let one_less = |count: usize| count.checked_sub(1);
        self.interrupts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }

    /// What was typed since the last time, one line at a time.
    pub(crate) fn take_typed(&self) -> Option<Typed> {
        self.typed.as_ref()?.try_recv().ok()
    }

    /// Frames of the hub.
    pub(crate) fn listen(&self, socket: Arc<BlockingSocket>) -> io::Result<()> {
        let queue = self.queue.clone();
        thread::Builder::new().name("hub reader".into()).spawn(move || {
            read_lines(&*socket, LINE_BYTES_MAX, &mut |line| match line.map(Frame::parse) {
                Ok(Ok(frame)) => queue.send(Happening::Frame(frame)).is_ok(),
                // A line that is no frame: nothing in it is for us.
                Ok(Err(_)) | Err(_) => true,
            });
            let _nobody_waits = queue.send(Happening::HubGone);
        })?;
        Ok(())
    }

    /// Lines from stdin, from now on.
    pub(crate) fn listen_to_typing(&mut self) -> io::Result<()> {
        if self.typed.is_some() {
            return Ok(());
        }
        let (lines, typed) = sync_channel(TYPED_MAX);
        let queue = self.queue.clone();
        thread::Builder::new().name("typing".into()).spawn(move || {
            let tell = |what: Typed| {
                let wanted = lines.send(what).is_ok();
                // A full queue wakes the command as well.
                let _woken = queue.try_send(Happening::Woken);
                wanted
            };
            read_lines(io::stdin(), FRAME_BYTES_MAX, &mut |line| {
                let text = |it: Bytes| {
                    Typed::Line(String::from_utf8_lossy(&it).into_owned(), Instant::now())
                };
                tell(line.map_or(Typed::TooLong, text))
            });
            tell(Typed::End);
        })?;
        self.typed = Some(typed);
        Ok(())
    }

    /// Ctrl-C and SIGTERM no longer end the process: they are told. Returns when that is so.
    pub(crate) fn listen_to_signals(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (queue, count) = (self.queue.clone(), self.interrupts.clone());
        let (mut interrupts, mut ends) = {
            let _entered = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(async move {
                loop {
                    let open = tokio::select! {
                        it = interrupts.recv() => it.is_some(),
                        it = ends.recv() => it.is_some(),
                    };
                    count.fetch_add(1, Ordering::SeqCst);
                    // A full queue wakes the command as well.
                    let sent = queue.try_send(Happening::Woken);
                    if !open || matches!(sent, Err(TrySendError::Disconnected(_))) {
                        return;
                    }
                }
            });
        })?;
        Ok(())
    }
}

/// Hands each line to `on_line` until the stream ends or it returns false.
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
