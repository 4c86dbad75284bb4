//! Accepts connections. Each has a task and uses HTTP/1.1 or HTTP/2.

use super::body::{end_with_device, with_time_limit};
use super::connection_limiter::{ConnectionHandle, ConnectionLimiter};
use super::limited_stream::LimitedStream;
use super::limits::{self, ConnectionLimits};
use super::origin;
use super::request_guard::{RequestAccess, RequestArrival, RequestGuard};
use super::request_refusal::RequestRefusal;
use super::response_headers;
use super::tenant_routes::TenantRoutes;
use super::web_listener::WebListener;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use jackfield_transport::{EXHAUSTED_PAUSE, is_exhausted};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::{io, pin::pin};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Serves `routes` on all listeners to requests that the guard accepts, until `stop` completes.
/// Requests in progress then have a short time to finish.
pub async fn serve_http(
    listeners: Vec<WebListener>,
    guard: RequestGuard,
    routes: impl Into<TenantRoutes>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let (stop_sender, stopping) = watch::channel(());
    let limiter = ConnectionLimiter::new(ConnectionLimits::of_this_process());
    let server = Arc::new(HttpServerState {
        guard,
        routes: routes.into(),
        limiter: Arc::clone(&limiter),
        http: http_builder(),
        stopping,
    });
    let mut open = JoinSet::new();
    for WebListener { listener, tls, .. } in listeners {
        let listener = TcpListener::from_std(listener)?;
        open.spawn(Arc::clone(&server).accept(listener, tls));
    }
    stop.await;
    open.shutdown().await;
    drop((server, stop_sender));
    // Connections that are still open then end with the runtime.
    let _ = timeout(limits::SHUTDOWN_GRACE, limiter.wait_until_empty()).await;
    Ok(())
}

/// The state that all connections share.
struct HttpServerState {
    guard: RequestGuard,
    routes: TenantRoutes,
    limiter: Arc<ConnectionLimiter>,
    http: auto::Builder<TokioExecutor>,
    /// Closed when the server stops.
    stopping: watch::Receiver<()>,
}

fn http_builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::IDLE_TIMEOUT)
        .max_buf_size(limits::HEAD_BYTES_MAX)
        .max_headers(limits::HEADERS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::RESETS_MAX)
        .max_local_error_reset_streams(limits::FAULTS_MAX)
        .max_header_list_size(u32::try_from(limits::HEAD_BYTES_MAX).expect("it is small"))
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONN_WINDOW_BYTES)
        .max_send_buf_size(limits::SEND_BYTES_MAX)
        .keep_alive_interval(limits::PING_AFTER)
        .keep_alive_timeout(limits::PING_TIMEOUT);
    builder
}

impl HttpServerState {
    async fn accept(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let stream = LimitedStream::new(stream, self.limiter.register(peer.ip()));
                    tokio::spawn(Arc::clone(&self).handle_connection(stream, peer, tls.clone()));
                }
                Err(error) if is_exhausted(&error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
                // The client disconnected before it was accepted.
                Err(_) => {}
            }
        }
    }

    /// Handles one connection from its first byte to its last.
    async fn handle_connection(
        self: Arc<Self>,
        stream: LimitedStream,
        peer: SocketAddr,
        tls: Option<TlsAcceptor>,
    ) {
        // The client has already disconnected.
        let Ok(local) = stream.local_ip() else { return };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let context = ConnectionContext {
            handle: stream.handle(),
            arrival: RequestArrival { scheme, local },
            peer,
        };
        let Some(tls) = tls else { return self.serve_connection(stream, context).await };
        let handshake = tokio::select! {
            handshake = timeout(limits::HANDSHAKE_TIMEOUT, tls.accept(stream)) => handshake,
            () = context.handle.evicted() => return,
        };
        // A client that disconnects or fails the handshake needs no further handling.
        if let Ok(Ok(stream)) = handshake {
            self.serve_connection(stream, context).await;
        }
    }

    async fn serve_connection<I>(self: Arc<Self>, io: I, context: ConnectionContext)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|it| Arc::clone(&self).handle_request(context.clone(), it));
        let mut http = pin!(self.http.serve_connection_with_upgrades(TokioIo::new(io), service));
        let mut stopping = self.stopping.clone();
        let handle = &context.handle;
        tokio::select! {
            // A client that disconnects or violates the protocol needs no further handling.
            _ = http.as_mut() => return,
            () = handle.evicted() => return,
            () = handle.authentication_expired() => {}
            _ = stopping.changed() => {}
        }
        http.as_mut().graceful_shutdown();
        tokio::select! {
            _ = http => {}
            () = handle.evicted() => {}
            () = handle.unauthenticated_after(limits::SHUTDOWN_GRACE) => {}
        }
    }

    /// Handles one request.
    async fn handle_request(
        self: Arc<Self>,
        context: ConnectionContext,
        request: Request<Incoming>,
    ) -> Result<Response, Infallible> {
        let (mut head, body) = request.into_parts();
        let version = head.version;
        let is_chunked = head.headers.contains_key(header::TRANSFER_ENCODING);
        let decision = self.guard.check_request(context.arrival, &mut head);
        let access = match decision.access {
            Ok(RequestAccess::Operator | RequestAccess::Tenant(_))
                if !context.handle.mark_authenticated() =>
            {
                Err(RequestRefusal::Full)
            }
            access => access,
        };
        let mut response = match access {
            Ok(RequestAccess::Preflight) => {
                let mut response = StatusCode::NO_CONTENT.into_response();
                origin::add_preflight_headers(response.headers_mut());
                response
            }
            Ok(access) => {
                if access != RequestAccess::Public {
                    head.extensions.insert(TokenPresented);
                }
                head.extensions.insert(PeerAddress(context.peer.ip()));
                if let Some(device) = &decision.device {
                    head.extensions.insert(device.clone());
                }
                let tenant =
                    if let RequestAccess::Tenant(tenant) = &access { Some(tenant) } else { None };
                let routes = self.routes.routes_of(tenant);
                let request = Request::from_parts(head, with_time_limit(body));
                let response = routes.call(request).await?;
                match decision.device {
                    Some(device) => response.map(|it| end_with_device(it, device)),
                    None => response,
                }
            }
            Err(why) => {
                let (peer, method) = (context.peer, &head.method);
                if why.is_unauthenticated() {
                    tracing::warn!(%peer, %method, ?why, "refused a request without a valid token");
                } else {
                    tracing::debug!(%peer, %method, ?why, "refused a request");
                }
                context.handle.close_if_unauthenticated();
                why.into_response(version)
            }
        };
        response_headers::restrict_use(&mut response);
        let headers = response.headers_mut();
        if is_chunked {
            // A proxy may determine its end differently, so nothing that follows is a request.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(origin) = decision.origin {
            origin::add_cors_headers(headers, origin);
        }
        Ok(response)
    }
}

/// An extension of every request: the address of the client, or of the proxy before us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// An extension of requests with a valid token or cookie. A route that finds none serves an unauthenticated
/// client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenPresented;

/// The connection of a request.
#[derive(Clone)]
struct ConnectionContext {
    handle: ConnectionHandle,
    arrival: RequestArrival,
    peer: SocketAddr,
}
