//! Tests of the web server with real sockets and routes like the real ones.

mod access;
mod devices;
mod timeouts;
mod tls;

use super::{RequestGuard, Router, TokenPresented, WebListener, serve_http};
use crate::login::DeviceLogins;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, WebSocket};
use axum::extract::{State, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use hyper::body::{Body as HttpBody, Frame};
use jackfield_transport::{BearerToken, ClientAuthenticator, EndpointAddress, TlsCertificate};
use std::convert::Infallible;
use std::mem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A test that takes longer hangs; longer than every timeout.
const TEST_TIMEOUT: Duration = Duration::from_mins(3);

/// A web server on a port of its own, in a task of the test's runtime.
struct TestServer {
    _dir: tempfile::TempDir,
    at: SocketAddr,
    token: String,
    logins: Arc<DeviceLogins>,
    hub: watch::Sender<()>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl TestServer {
    fn new() -> TestServer {
        TestServer::open("http://127.0.0.1:0", None)
    }

    fn open(address: &str, certificate: Option<&TlsCertificate>) -> TestServer {
        let dir = tempfile::tempdir().unwrap();
        let token = BearerToken::create_or_read(&dir.path().join("token")).unwrap();
        let listener = WebListener::bind(&address.parse().unwrap(), certificate).unwrap();
        let (EndpointAddress::Http(at) | EndpointAddress::Https(at)) = *listener.address() else {
            panic!()
        };
        let secret = token.reveal().to_owned();
        let origins = vec!["https://console.example.org".parse().unwrap()];
        let authenticator = ClientAuthenticator::from(&token);
        let file = dir.path().join("devices.json");
        let logins = DeviceLogins::new(&file, authenticator.clone(), Arc::new(|_| None));
        let logins = Arc::new(logins);
        let guard =
            RequestGuard { authenticator, logins: logins.clone(), hosts: Vec::new(), origins };
        let (hub, is_over) = watch::channel(());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            serve_http(vec![listener], guard, routes(is_over), stopped).await.unwrap();
        });
        TestServer { _dir: dir, at, token: secret, logins, hub, stop, task }
    }

    async fn dial(&self) -> TestPeer<TcpStream> {
        TestPeer { stream: TcpStream::connect(self.at).await.unwrap(), received: Vec::new() }
    }

    /// The head of a request with a valid token.
    fn head(&self, line: &str) -> String {
        format!("{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n", self.at, self.token)
    }

    /// Stops the server. The hub ends first, as in a daemon.
    async fn finish(self) {
        drop((self.hub, self.stop));
        timeout(TEST_TIMEOUT, self.task).await.expect("it ends").unwrap();
    }
}

/// The client side of a connection, which may send any bytes.
struct TestPeer<S> {
    stream: S,
    received: Vec<u8>,
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> TestPeer<S> {
    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads to the end and returns everything received.
    async fn read_to_end(self) -> String {
        String::from_utf8_lossy(&self.bytes().await).into_owned()
    }

    async fn bytes(mut self) -> Vec<u8> {
        let all = self.stream.read_to_end(&mut self.received);
        // A reset connection counts as the end, too.
        let _ = timeout(TEST_TIMEOUT, all).await.expect("it ends");
        self.received
    }

    /// Reads until this text was received.
    async fn read_until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.received).contains(text) {
            let read = timeout(TEST_TIMEOUT, self.stream.read_buf(&mut self.received)).await;
            let received = String::from_utf8_lossy(&self.received);
            assert_ne!(
                read.expect("no data was received").unwrap(),
                0,
                "`{text}` was never received: {received}"
            );
        }
    }
}

fn status(received: &str) -> &str {
    received.strip_prefix("HTTP/1.1 ").and_then(|it| it.get(..3)).unwrap_or("none")
}

/// Closed when the hub ends.
type Hub = watch::Receiver<()>;

fn routes(hub: Hub) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/cached", get(async || [("cache-control", "public, max-age=60")]))
        .route("/seen", get(async |it: HeaderMap| format!("{it:?}")))
        .route("/count", post(async |body: Bytes| body.len().to_string()))
        .route("/events", get(events))
        .route("/ws", get(socket))
        .with_state(hub)
}

async fn readyz(token: Option<Extension<TokenPresented>>) -> &'static str {
    if token.is_some() { "authenticated" } else { "unauthenticated" }
}

async fn events(State(mut hub): State<Hub>) -> Response {
    let ended = Box::pin(async move {
        let _ = hub.changed().await;
    });
    Response::new(Body::new(OneEventBody { is_sent: false, ended }))
}

/// A body with one event, which then stays open.
struct OneEventBody {
    is_sent: bool,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl HttpBody for OneEventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !mem::replace(&mut self.is_sent, true) {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"data: hello\n\n")))));
        }
        self.ended.as_mut().poll(cx).map(|()| None)
    }
}

async fn socket(State(hub): State<Hub>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.protocols(["acp"]).on_upgrade(|it| echo(it, hub))
}

async fn echo(mut socket: WebSocket, mut hub: Hub) {
    loop {
        let message = tokio::select! {
            message = socket.recv() => message,
            _ = hub.changed() => break,
        };
        let Some(Ok(message)) = message else { return };
        if let Message::Text(text) = message {
            let _ = socket.send(Message::Text(text)).await;
        }
    }
    let _ = socket.send(Message::Close(None)).await;
}
