//! Receives the events of connections in place of the daemon's loop, with timeouts.

use bytes::Bytes;
use jackfield_protocol::Frame;
use jackfield_transport::{
    BearerToken, ClientAuthenticator, ClientEvent, ClientHandle, ClientListener, ClientStream,
    EndpointAddress, open_connection,
};
use std::future::Future;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};
use tempfile::TempDir;
use tokio::sync::mpsc;

pub(crate) const FRAME_BYTES_MAX: usize = 16 << 20;
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct EventCollector {
    events: mpsc::Receiver<(u32, ClientEvent)>,
    sender: mpsc::Sender<(u32, ClientEvent)>,
}

impl EventCollector {
    pub(crate) fn new() -> EventCollector {
        EventCollector::with_room_for(64)
    }

    pub(crate) fn with_room_for(events: usize) -> EventCollector {
        let (sender, events) = mpsc::channel(events);
        EventCollector { events, sender }
    }

    /// A connection under `key`, already reported as open.
    pub(crate) async fn open(&mut self, stream: ClientStream, key: u32) -> ClientHandle {
        self.open_with(stream, key, FRAME_BYTES_MAX).await
    }

    pub(crate) async fn open_with(
        &mut self,
        stream: ClientStream,
        key: u32,
        most: usize,
    ) -> ClientHandle {
        let handle = open_connection(stream, key, self.sender.clone(), most);
        let (opened, event) = self.next().await;
        assert!(matches!(event, ClientEvent::Opened), "{event:?}");
        assert_eq!(opened, key);
        handle
    }

    pub(crate) async fn next(&mut self) -> (u32, ClientEvent) {
        within(self.events.recv()).await.expect("the collector has a sender")
    }

    /// The next event without waiting, after all ready tasks have run.
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

    /// All events until `Gone` as short texts; frames as their text.
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

    /// Reads `Wrote` events until the sum with `wrote` is `total`.
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
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("it takes too long")
}

/// Runs blocking work on a thread and waits for it with a timeout.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    within(start_blocking(work)).await
}

/// Starts blocking work on a thread at once, to be awaited later.
pub(crate) fn start_blocking<T: Send + 'static>(
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

/// A private folder for a socket, as the daemon creates it.
pub(crate) struct SocketFolder {
    pub(crate) dir: TempDir,
}

impl SocketFolder {
    pub(crate) fn new() -> SocketFolder {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        SocketFolder { dir }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    pub(crate) fn address(&self) -> EndpointAddress {
        EndpointAddress::Unix(self.path())
    }

    pub(crate) fn token(&self) -> BearerToken {
        BearerToken::create_or_read(&self.dir.path().join("token")).unwrap()
    }

    pub(crate) fn tcp(&self) -> ClientListener {
        ClientListener::bind(
            &"tcp://127.0.0.1:0".parse().unwrap(),
            Some(&ClientAuthenticator::from(&self.token())),
        )
        .unwrap()
    }
}
