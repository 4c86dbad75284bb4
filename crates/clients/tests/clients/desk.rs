//! Where the daemon's loop would sit: the receiving end of the channel, with patience but bounds.

use bytes::Bytes;
use jackfield_clients::{Address, ClientEvent, ConnHandle, Keys, Listener, Stream, Token, open};
use jackfield_wire::Frame;
use std::future::Future;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};
use tempfile::TempDir;
use tokio::sync::mpsc;

pub(crate) const FRAME_BYTES_MAX: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Desk {
    events: mpsc::Receiver<(u32, ClientEvent)>,
    sender: mpsc::Sender<(u32, ClientEvent)>,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        Desk::with_room_for(64)
    }

    pub(crate) fn with_room_for(events: usize) -> Desk {
        let (sender, events) = mpsc::channel(events);
        Desk { events, sender }
    }

    /// A connection under `key`, already reported as open.
    pub(crate) async fn open(&mut self, stream: Stream, key: u32) -> ConnHandle {
        self.open_with(stream, key, FRAME_BYTES_MAX).await
    }

    pub(crate) async fn open_with(&mut self, stream: Stream, key: u32, most: usize) -> ConnHandle {
        let handle = open(stream, key, self.sender.clone(), most);
        let (opened, event) = self.next().await;
        assert!(matches!(event, ClientEvent::Opened), "{event:?}");
        assert_eq!(opened, key);
        handle
    }

    pub(crate) async fn next(&mut self) -> (u32, ClientEvent) {
        within(self.events.recv()).await.expect("this desk holds a sender")
    }

    /// What is there without waiting, after everything that could run has run.
    pub(crate) async fn ready(&mut self) -> Option<ClientEvent> {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        self.events.try_recv().ok().map(|(_, event)| event)
    }

    /// The texts of the next `count` frames; no other event may come between.
    pub(crate) async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < count {
            match self.next().await.1 {
                ClientEvent::Frames(frames) => {
                    assert!(!frames.is_empty());
                    texts.extend(frames.iter().map(|it| it.text().to_owned()));
                }
                other => panic!("{other:?} after {} frames", texts.len()),
            }
        }
        assert_eq!(texts.len(), count);
        texts
    }

    /// Everything until `Gone`, in short: frames as their text.
    pub(crate) async fn until_gone(&mut self) -> Vec<String> {
        let mut story = Vec::new();
        loop {
            match self.next().await.1 {
                ClientEvent::Frames(frames) => {
                    story.extend(frames.iter().map(|it| it.text().to_owned()));
                }
                ClientEvent::Gone => return story,
                other => story.push(format!("{other:?}")),
            }
        }
    }

    /// Reads `Wrote` until they and `wrote` so far make `total`.
    pub(crate) async fn until_wrote(&mut self, mut wrote: usize, total: usize) {
        while wrote < total {
            match self.next().await.1 {
                ClientEvent::Wrote(bytes) => {
                    assert!(0 < bytes);
                    wrote += bytes;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(wrote, total);
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Blocking work on a thread of its own, awaited with a bound.
pub(crate) async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    within(beside(work)).await
}

/// The same, to be awaited later: the work starts at once.
pub(crate) fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = T> {
    let (done, result) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let _ = done.send(work());
    });
    async { within(result).await.expect("the thread panicked") }
}

/// A frame with this id and a text of about this many bytes.
pub(crate) fn frame(id: usize, bytes: usize) -> Bytes {
    let params = format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes));
    Frame::request(&id.to_string(), "test/say", &params).bytes().clone()
}

pub(crate) fn lines(texts: &[Bytes]) -> Vec<u8> {
    texts.iter().flat_map(|it| [&it[..], b"\n"].concat()).collect()
}

/// A folder as the daemon makes it.
pub(crate) struct Home {
    pub(crate) dir: TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Home { dir }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    pub(crate) fn address(&self) -> Address {
        Address::Unix(self.path())
    }

    pub(crate) fn token(&self) -> Token {
        Token::create_or_read(&self.dir.path().join("token")).unwrap()
    }

    pub(crate) fn tcp(&self) -> Listener {
        Listener::bind(&"tcp://127.0.0.1:0".parse().unwrap(), Some(&Keys::from(&self.token())))
            .unwrap()
    }
}
