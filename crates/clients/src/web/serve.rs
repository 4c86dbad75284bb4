//! Taking connections: each is a task, and speaks HTTP/1.1 or HTTP/2.

use super::body::timed;
use super::conn::Conn;
use super::door::Door;
use super::limits::{self, Capacity};
use super::origin;
use super::porter::{Arrival, Entry, Porter};
use super::refused::Refused;
use super::room::{Pass, Room};
use super::routes::Routes;
use crate::listen::{EXHAUSTED_PAUSE, is_exhausted};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{io, pin::pin};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Serves `routes` on all doors to whom the porter lets in, until `stop` is over. What is under way
/// then has a moment to end.
pub async fn serve(
    doors: Vec<Door>,
    porter: Porter,
    routes: impl Into<Routes>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let (stopping, told) = watch::channel(());
    let room = Room::new(Capacity::of_this_process());
    let front = Arc::new(Front {
        porter,
        routes: routes.into(),
        room: Arc::clone(&room),
        http: http(),
        stopping: told,
    });
    let mut open = JoinSet::new();
    for door in doors {
        let listener = TcpListener::from_std(door.listener)?;
        open.spawn(Arc::clone(&front).accept(listener, door.tls));
    }
    stop.await;
    open.shutdown().await;
    drop((front, stopping));
    // Whoever is not through by then is cut off with the runtime.
    let _ = timeout(limits::GOODBYE_WITHIN, room.emptied()).await;
    Ok(())
}

/// What all connections share.
struct Front {
    porter: Porter,
    routes: Routes,
    room: Arc<Room>,
    http: auto::Builder<TokioExecutor>,
    /// Closed when all of it ends.
    stopping: watch::Receiver<()>,
}

fn http() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::IDLE_WITHIN)
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
        .keep_alive_timeout(limits::PING_WITHIN);
    builder
}

impl Front {
    async fn accept(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let conn = Conn::new(stream, self.room.enter(peer.ip()));
                    tokio::spawn(Arc::clone(&self).attend(conn, peer, tls.clone()));
                }
                Err(error) if is_exhausted(&error) => {
                    tracing::warn!(%error, "no connection could be taken");
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
                // It left before we came.
                Err(_) => {}
            }
        }
    }

    /// One connection from its first byte to its last.
    async fn attend(self: Arc<Self>, conn: Conn, peer: SocketAddr, tls: Option<TlsAcceptor>) {
        // Nobody is there any more who could be answered.
        let Ok(local) = conn.local_ip() else { return };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let visit = Visit { pass: conn.pass(), arrival: Arrival { scheme, local }, peer };
        let Some(tls) = tls else { return self.speak(conn, visit).await };
        let shaken = tokio::select! {
            shaken = timeout(limits::HANDSHAKE_WITHIN, tls.accept(conn)) => shaken,
            () = visit.pass.evicted() => return,
        };
        // A client that leaves or speaks nonsense is its own concern.
        if let Ok(Ok(conn)) = shaken {
            self.speak(conn, visit).await;
        }
    }

    async fn speak<I>(self: Arc<Self>, io: I, visit: Visit)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|it| Arc::clone(&self).answer(visit.clone(), it));
        let mut http = pin!(self.http.serve_connection_with_upgrades(TokioIo::new(io), service));
        let mut stopping = self.stopping.clone();
        let pass = &visit.pass;
        tokio::select! {
            // A client that leaves or speaks nonsense is its own concern.
            _ = http.as_mut() => return,
            () = pass.evicted() => return,
            () = pass.unwelcome() => {}
            _ = stopping.changed() => {}
        }
        http.as_mut().graceful_shutdown();
        tokio::select! {
            _ = http => {}
            () = pass.evicted() => {}
            () = pass.still_unknown_after(limits::GOODBYE_WITHIN) => {}
        }
    }

    /// One request.
    async fn answer(
        self: Arc<Self>,
        visit: Visit,
        request: Request<Incoming>,
    ) -> Result<Response, Infallible> {
        let (mut head, body) = request.into_parts();
        let version = head.version;
        let is_chunked = head.headers.contains_key(header::TRANSFER_ENCODING);
        let verdict = self.porter.check(visit.arrival, &mut head);
        let entry = match verdict.entry {
            Ok(Entry::Known | Entry::Guest(_)) if !visit.pass.recognize() => Err(Refused::Full),
            entry => entry,
        };
        let mut response = match entry {
            Ok(Entry::Preflight) => {
                let mut response = StatusCode::NO_CONTENT.into_response();
                origin::permit(response.headers_mut());
                response
            }
            Ok(entry) => {
                if entry != Entry::Open {
                    head.extensions.insert(TokenShown);
                }
                let guest = if let Entry::Guest(guest) = &entry { Some(guest) } else { None };
                let routes = self.routes.of(guest);
                routes.call(Request::from_parts(head, timed(body))).await?
            }
            Err(why) => {
                let (peer, method) = (visit.peer, &head.method);
                if matches!(why, Refused::NoToken | Refused::WrongToken) {
                    tracing::warn!(%peer, %method, ?why, "a request without a valid token was refused");
                } else {
                    tracing::debug!(%peer, %method, ?why, "request refused");
                }
                visit.pass.dismiss();
                why.answer(version)
            }
        };
        let headers = response.headers_mut();
        if is_chunked {
            // Others may see its end elsewhere: nothing that follows is taken for a request.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        forbid_storing(headers);
        if let Some(page) = verdict.page {
            origin::reveal(headers, page);
        }
        Ok(response)
    }
}

/// In the extensions of a request that came with a token. Without it, a route is asked by a stranger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenShown;

/// No cache on the way may keep an answer, whatever else its route says about caches.
fn forbid_storing(headers: &mut HeaderMap) {
    let says_so = |it: &HeaderValue| it.to_str().is_ok_and(|it| it.contains("no-store"));
    if !headers.get(header::CACHE_CONTROL).is_some_and(says_so) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// One connection, as its requests know it.
#[derive(Clone)]
struct Visit {
    pass: Pass,
    arrival: Arrival,
    peer: SocketAddr,
}
