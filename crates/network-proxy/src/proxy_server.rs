//! Accepts the connections of the process.

use crate::client_connection::{ClientConnection, ProxyState};
use crate::counted_stream::CountedStream;
use crate::header_injection::CredentialInjection;
use crate::host_access::HostAccess;
use crate::host_questions::{HostQuestion, HostQuestions};
use crate::host_resolver::{HostResolver, SystemResolver};
use crate::host_rules::HostRules;
use crate::limits::{ACCEPT_PAUSE, HEAD_BYTES_MAX, HEADERS_MAX, ProxyLimits};
use crate::proxy_report::{ProxyReport, ReportSender};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What one proxy allows and how.
pub struct ProxyConfig {
    pub rules: HostRules,
    pub injection: Option<CredentialInjection>,
    pub resolver: Arc<dyn HostResolver>,
    pub limits: ProxyLimits,
}

impl ProxyConfig {
    /// A proxy with these rules, the resolver of this machine and the usual limits.
    pub fn new(rules: HostRules) -> ProxyConfig {
        ProxyConfig {
            rules,
            injection: None,
            resolver: Arc::new(SystemResolver),
            limits: ProxyLimits::default(),
        }
    }
}

/// Serves the proxy until the future is dropped, which closes all its connections. If `questions` is closed,
/// hosts that no rule names are refused.
pub async fn serve_proxy(
    listener: UnixListener,
    config: ProxyConfig,
    questions: mpsc::Sender<HostQuestion>,
    reports: mpsc::Sender<ProxyReport>,
) {
    let ProxyConfig { rules, injection, resolver, limits } = config;
    let questions = HostQuestions::new(questions, limits.question_timeout);
    let reports = ReportSender::new(reports);
    let proxy = Arc::new(ProxyState {
        access: HostAccess { rules, questions, reports, resolver },
        injection,
        connect_timeout: limits.connect_timeout,
    });
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < limits.connections_max => match accepted {
                Ok((stream, _)) => {
                    open.spawn(serve_connection(Arc::clone(&proxy), stream, limits));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

async fn serve_connection(proxy: Arc<ProxyState>, stream: UnixStream, limits: ProxyLimits) {
    let (stream, activity) = CountedStream::new(stream);
    tokio::select! {
        () = serve_requests(proxy, stream, limits) => {}
        () = activity.wait_until_idle(limits.idle_timeout) => {}
    }
}

async fn serve_requests(proxy: Arc<ProxyState>, stream: CountedStream, limits: ProxyLimits) {
    let client = ClientConnection::new(proxy);
    let http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service_fn(|it| client.handle_request(it)))
        .with_upgrades();
    // A process that disconnects or violates the protocol needs no further handling.
    if http.await.is_ok() {
        client.run_tunnel().await;
    }
}
