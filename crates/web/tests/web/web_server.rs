//! A web server with a hub that the test plays line by line.

use crate::support::within;
use jackfield_transport::EndpointAddress;
use jackfield_web::acp::acp_routes;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, UnixListener};

pub(crate) struct TestServer {
    pub(crate) at: SocketAddr,
    hub: UnixListener,
    _folder: TempDir,
}

impl TestServer {
    pub(crate) async fn open() -> TestServer {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let hub = UnixListener::bind(&socket).unwrap();
        let routes = acp_routes(&EndpointAddress::Unix(socket).into());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        TestServer { at, hub, _folder: folder }
    }

    /// The next connection that the server makes to the hub.
    pub(crate) async fn accept_dialed(&self) -> TestHub {
        let (stream, _) = within(self.hub.accept()).await.unwrap();
        let (read, write) = stream.into_split();
        TestHub { lines: BufReader::new(read).lines(), write }
    }
}

/// The hub's end of one connection.
pub(crate) struct TestHub {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl TestHub {
    /// The next line of the server; `None` when it has closed.
    pub(crate) async fn next_line(&mut self) -> Option<String> {
        // A reset connection counts as closed.
        within(self.lines.next_line()).await.unwrap_or(None)
    }

    /// Expects the server to close, without a timeout, for tests with paused time.
    pub(crate) async fn expect_close(&mut self) {
        let heard = self.lines.next_line().await.unwrap_or(None);
        assert_eq!(heard, None);
    }

    pub(crate) async fn next_json(&mut self) -> Value {
        serde_json::from_str(&self.next_line().await.expect("the server sends a line")).unwrap()
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        within(self.write.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }
}
