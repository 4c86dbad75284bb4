//! The requests of one connection of the process.

use crate::forwarded_headers::remove_hop_by_hop;
use crate::header_injection::CredentialInjection;
use crate::host_access::{AccessGrant, HostAccess};
use crate::request_failure::{ProxyBody, RequestFailure};
use crate::request_target::{TargetError, plain_target, tunnel_target};
use crate::target_host::HostPort;
use crate::upstream::{SendFailure, UpstreamConnection, UpstreamRoute};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What all connections of a proxy share.
pub(crate) struct ProxyState {
    pub(crate) access: HostAccess,
    pub(crate) injection: Option<CredentialInjection>,
    pub(crate) connect_timeout: Duration,
}

/// One connection of the process. Its requests are handled one after the other.
pub(crate) struct ClientConnection {
    proxy: Arc<ProxyState>,
    /// The connection of the last request that was not a tunnel.
    upstream: Mutex<Option<UpstreamConnection>>,
    tunnel: Mutex<Option<AcceptedTunnel>>,
}

/// A tunnel that begins after its response was sent.
struct AcceptedTunnel {
    upgrade: OnUpgrade,
    upstream: TcpStream,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientConnection {
    pub(crate) fn new(proxy: Arc<ProxyState>) -> ClientConnection {
        ClientConnection { proxy, upstream: Mutex::new(None), tunnel: Mutex::new(None) }
    }

    pub(crate) async fn handle_request(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, Infallible> {
        let response = if request.method() == Method::CONNECT {
            self.accept_tunnel(request).await
        } else {
            self.forward_request(request).await
        };
        Ok(response.unwrap_or_else(RequestFailure::into_response))
    }

    /// Connects first, so that a failure is a response and not a closed tunnel.
    async fn accept_tunnel(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, RequestFailure> {
        let target = self.report_invalid(tunnel_target(&request))?;
        let access = &self.proxy.access;
        let grant = access.authorize(&target).await?;
        let upstream = self.within_time_limit(&target, access.connect(&grant)).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        *lock(&self.tunnel) = Some(AcceptedTunnel { upgrade, upstream });
        Ok(Response::new(Either::Right(Full::default())))
    }

    /// Moves bytes between the process and the host if the last request was an accepted `CONNECT`.
    pub(crate) async fn run_tunnel(&self) {
        let Some(AcceptedTunnel { upgrade, mut upstream }) = lock(&self.tunnel).take() else {
            return;
        };
        if let Ok(client) = upgrade.await {
            // An error means that one side has gone, which ends the tunnel like a regular end.
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut upstream).await;
        }
    }

    async fn forward_request(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, RequestFailure> {
        let requested = self.report_invalid(plain_target(&request))?;
        let route = self.choose_route(requested);
        let request = self.upstream_request(request, &route)?;
        let access = &self.proxy.access;
        let grant = access.authorize(&route.target).await?;
        let mut upstream = match self.reuse_upstream(&route).await {
            Some(upstream) => {
                access.report_allowed(&grant);
                upstream
            }
            None => self.open_upstream(&route, &grant).await?,
        };
        let response = upstream.send_request(request).await;
        let response = match response {
            // The host closed an idle connection.
            Err(SendFailure::Unsent(request)) => {
                upstream = self.open_upstream(&route, &grant).await?;
                upstream.send_request(*request).await
            }
            response => response,
        };
        let response = response.map_err(|failure| RequestFailure::Unreachable {
            target: route.target.clone(),
            error: match failure {
                SendFailure::Unsent(_) => "the host closed the connection".to_owned(),
                SendFailure::Failed(error) => describe_error(&error),
            },
        })?;
        *lock(&self.upstream) = Some(upstream);
        client_response(response, &route)
    }

    fn report_invalid(
        &self,
        target: Result<HostPort, TargetError>,
    ) -> Result<HostPort, RequestFailure> {
        if let Err(TargetError::InvalidHost { text, error }) = &target {
            self.proxy.access.reports.report_invalid_host(text, *error);
        }
        Ok(target?)
    }

    fn choose_route(&self, requested: HostPort) -> UpstreamRoute {
        let injection = self.proxy.injection.as_ref();
        match injection.and_then(|it| it.secure_target(&requested)) {
            Some(target) => UpstreamRoute { target: target.clone(), is_secure: true },
            None => UpstreamRoute { target: requested, is_secure: false },
        }
    }

    /// The request in the form that a host expects: the path only, and the host in its header.
    fn upstream_request(
        &self,
        mut request: Request<Incoming>,
        route: &UpstreamRoute,
    ) -> Result<Request<Incoming>, RequestFailure> {
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        *request.version_mut() = Version::HTTP_11;
        let host = HeaderValue::from_str(&host_header(route))
            .map_err(|_| RequestFailure::Malformed("the host is no header value"))?;
        let headers = request.headers_mut();
        remove_hop_by_hop(headers);
        // The proxy has answered the expectation itself by then.
        headers.remove(header::EXPECT);
        headers.insert(header::HOST, host);
        if let Some(injection) = self.proxy.injection.as_ref().filter(|_| route.is_secure) {
            injection.add_headers(&route.target, headers);
        }
        Ok(request)
    }

    async fn reuse_upstream(&self, route: &UpstreamRoute) -> Option<UpstreamConnection> {
        let idle = lock(&self.upstream).take();
        let mut upstream = idle.filter(|it| it.route == *route)?;
        upstream.is_reusable().await.then_some(upstream)
    }

    async fn open_upstream(
        &self,
        route: &UpstreamRoute,
        grant: &AccessGrant,
    ) -> Result<UpstreamConnection, RequestFailure> {
        let tls = self.proxy.injection.as_ref().filter(|_| route.is_secure).map(|it| &it.tls);
        let opening = async {
            let stream = self.proxy.access.connect(grant).await?;
            UpstreamConnection::start(route.clone(), stream, tls).await.map_err(|error| {
                RequestFailure::Unreachable {
                    target: route.target.clone(),
                    error: describe_error(&error),
                }
            })
        };
        self.within_time_limit(&route.target, opening).await
    }

    async fn within_time_limit<T>(
        &self,
        target: &HostPort,
        operation: impl Future<Output = Result<T, RequestFailure>>,
    ) -> Result<T, RequestFailure> {
        match timeout(self.proxy.connect_timeout, operation).await {
            Ok(result) => result,
            Err(_) => Err(RequestFailure::TimedOut { target: target.clone() }),
        }
    }
}

fn host_header(route: &UpstreamRoute) -> String {
    let HostPort { host, port } = &route.target;
    let default_port = if route.is_secure { 443 } else { 80 };
    if *port == default_port { host.to_string() } else { format!("{host}:{port}") }
}

fn client_response(
    response: Response<Incoming>,
    route: &UpstreamRoute,
) -> Result<Response<ProxyBody>, RequestFailure> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(RequestFailure::Unreachable {
            target: route.target.clone(),
            error: "the host switched to another protocol without being asked".to_owned(),
        });
    }
    let mut response = response.map(Either::<Incoming, Full<Bytes>>::Left);
    *response.version_mut() = Version::HTTP_11;
    remove_hop_by_hop(response.headers_mut());
    Ok(response)
}

/// The message of an error with its causes.
fn describe_error(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
