//! The web front with a hub behind it that the test plays itself, line by line.

use crate::desk::{Home, within};
use jackfield_clients::web::acp;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, UnixListener};

pub(crate) struct Front {
    pub(crate) at: SocketAddr,
    hub: UnixListener,
    _home: Home,
}

impl Front {
    pub(crate) async fn open() -> Front {
        let home = Home::new();
        let hub = UnixListener::bind(home.path()).unwrap();
        let routes = acp(&home.address().into());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Front { at, hub, _home: home }
    }

    /// The next connection that the front makes to the hub.
    pub(crate) async fn dialled(&self) -> Hub {
        let (stream, _) = within(self.hub.accept()).await.unwrap();
        let (read, write) = stream.into_split();
        Hub { lines: BufReader::new(read).lines(), write }
    }
}

/// The hub's end of one connection.
pub(crate) struct Hub {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl Hub {
    /// The next line the front says; `None` when it hung up.
    pub(crate) async fn hears(&mut self) -> Option<String> {
        // Cut off in mid-sentence counts as hung up.
        within(self.lines.next_line()).await.unwrap_or(None)
    }

    /// The same without a bound: for those who let the clock run ahead.
    pub(crate) async fn is_hung_up_on(&mut self) {
        let heard = self.lines.next_line().await.unwrap_or(None);
        assert_eq!(heard, None);
    }

    pub(crate) async fn hears_json(&mut self) -> Value {
        serde_json::from_str(&self.hears().await.expect("the front speaks")).unwrap()
    }

    pub(crate) async fn says(&mut self, line: &str) {
        within(self.write.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }
}
