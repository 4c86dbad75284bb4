//! The HTTP connection to a host, which later requests of the same process connection use again.

use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::target_host::HostPort;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// The destination of a request, and whether it is reached over TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamRoute {
    pub(crate) target: HostPort,
    pub(crate) is_secure: bool,
}

/// An open connection. It closes when this is dropped.
pub(crate) struct UpstreamConnection {
    pub(crate) route: UpstreamRoute,
    sender: http1::SendRequest<Incoming>,
    /// The task that moves the bytes.
    _driver: JoinSet<()>,
}

/// Why a request has no response.
pub(crate) enum SendFailure {
    /// The host had closed the connection before the request was sent.
    Unsent(Box<Request<Incoming>>),
    Failed(hyper::Error),
}

impl UpstreamConnection {
    pub(crate) async fn start(
        route: UpstreamRoute,
        stream: TcpStream,
        tls: Option<&Arc<ClientConfig>>,
    ) -> io::Result<UpstreamConnection> {
        match tls {
            None => UpstreamConnection::start_http(route, stream).await,
            Some(tls) => {
                let name = route.target.host.to_string();
                let name = ServerName::try_from(name).map_err(io::Error::other)?;
                let connector = TlsConnector::from(Arc::clone(tls));
                let stream = connector.connect(name, stream).await?;
                UpstreamConnection::start_http(route, stream).await
            }
        }
    }

    async fn start_http<I>(route: UpstreamRoute, io: I) -> io::Result<UpstreamConnection>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = http1::Builder::new();
        builder
            .max_buf_size(HEAD_BYTES_MAX)
            .max_header_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX);
        let (sender, connection) =
            builder.handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The error is also the result of the request.
            let _ = connection.await;
        });
        Ok(UpstreamConnection { route, sender, _driver: driver })
    }

    /// Whether another request can be sent.
    pub(crate) async fn is_reusable(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    pub(crate) async fn send_request(
        &mut self,
        request: Request<Incoming>,
    ) -> Result<Response<Incoming>, SendFailure> {
        self.sender.try_send_request(request).await.map_err(|mut error| {
            match error.take_message() {
                Some(request) => SendFailure::Unsent(Box::new(request)),
                None => SendFailure::Failed(error.into_error()),
            }
        })
    }
}
