//! A host on the loopback interface whose connections a test serves byte by byte.

use crate::test_proxy::{TestPeer, within_time_limit};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct TestHost {
    listener: TcpListener,
    pub(crate) port: u16,
}

impl TestHost {
    pub(crate) async fn bind() -> TestHost {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        TestHost { listener, port }
    }

    pub(crate) async fn accept_stream(&self) -> TcpStream {
        within_time_limit(self.listener.accept()).await.unwrap().0
    }

    pub(crate) async fn accept(&self) -> TestPeer<TcpStream> {
        TestPeer::new(self.accept_stream().await)
    }

    /// Whether no connection was made. All connections that were made are visible by now: the loopback interface
    /// completes them before the other end continues.
    pub(crate) async fn has_no_connection(&self) -> bool {
        tokio::select! {
            biased;
            _ = self.listener.accept() => false,
            () = tokio::task::yield_now() => true,
        }
    }
}
