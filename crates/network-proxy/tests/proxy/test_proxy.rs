//! A proxy in this process, and connections to it.

use jackfield_network_proxy::{
    HostQuestion, HostResolver, HostRule, HostRules, ProxyConfig, ProxyReport, ResolvedAddresses,
    serve_proxy,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Only a broken program takes this long.
const TIME_LIMIT: Duration = Duration::from_secs(30);

pub(crate) async fn within_time_limit<T>(operation: impl Future<Output = T>) -> T {
    timeout(TIME_LIMIT, operation).await.expect("the operation takes less than its time limit")
}

/// A resolver that knows a few names and counts its queries.
#[derive(Default)]
pub(crate) struct TestResolver {
    /// The answers to the queries for a name, in order. The last one is repeated.
    answers: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
    queries: Mutex<Vec<String>>,
}

impl TestResolver {
    pub(crate) fn add_answer(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|it| it.parse().unwrap()).collect();
        self.answers.lock().unwrap().entry(name.to_owned()).or_default().push(addresses);
    }

    pub(crate) fn take_queries(&self) -> Vec<String> {
        std::mem::take(&mut self.queries.lock().unwrap())
    }
}

impl HostResolver for TestResolver {
    fn resolve_name(&self, name: &str) -> ResolvedAddresses {
        self.queries.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.get_mut(name) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => Vec::new(),
        };
        Box::pin(async move { Ok(answer) })
    }
}

pub(crate) struct TestProxy {
    dir: TempDir,
    pub(crate) resolver: Arc<TestResolver>,
    pub(crate) questions: mpsc::Receiver<HostQuestion>,
    pub(crate) reports: mpsc::Receiver<ProxyReport>,
    _server: JoinSet<()>,
}

impl TestProxy {
    /// A proxy that allows these hosts, also with private addresses. `*.test` is this machine.
    pub(crate) fn start(allowed: &[&str]) -> TestProxy {
        TestProxy::start_with(rules(allowed, true), |_| {})
    }

    pub(crate) fn start_with(rules: HostRules, change: impl FnOnce(&mut ProxyConfig)) -> TestProxy {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("proxy")).unwrap();
        let resolver = Arc::new(TestResolver::default());
        for name in ["a.test", "b.test"] {
            resolver.add_answer(name, &["127.0.0.1"]);
        }
        let (question_sender, questions) = mpsc::channel(32);
        let (report_sender, reports) = mpsc::channel(2048);
        let mut config =
            ProxyConfig { resolver: Arc::clone(&resolver) as _, ..ProxyConfig::new(rules) };
        change(&mut config);
        let mut server = JoinSet::new();
        server.spawn(serve_proxy(listener, config, question_sender, report_sender));
        TestProxy { dir, resolver, questions, reports, _server: server }
    }

    pub(crate) async fn dial(&self) -> TestPeer<UnixStream> {
        let stream = UnixStream::connect(self.dir.path().join("proxy")).await.unwrap();
        TestPeer::new(stream)
    }

    /// Sends one request on a connection of its own, and returns everything that is received.
    pub(crate) async fn exchange(&self, request: &str) -> String {
        let mut peer = self.dial().await;
        peer.send(request).await;
        peer.read_to_end().await
    }

    /// The reports until now, as text.
    pub(crate) fn take_reports(&mut self) -> Vec<String> {
        let mut reports = Vec::new();
        while let Ok(ProxyReport { host, port, verdict, .. }) = self.reports.try_recv() {
            reports.push(match (port, verdict) {
                (Some(port), verdict) => format!("{host}:{port} {verdict:?}"),
                (None, verdict) => format!("{host} {verdict:?}"),
            });
        }
        reports
    }
}

pub(crate) fn rules(allowed: &[&str], private: bool) -> HostRules {
    let rule = |it: &&str| HostRule { pattern: it.parse().unwrap(), private };
    HostRules { allowed: allowed.iter().map(rule).collect(), refused: Vec::new() }
}

/// One end of a connection, with time limits.
pub(crate) struct TestPeer<S> {
    stream: S,
    received: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TestPeer<S> {
    pub(crate) fn new(stream: S) -> TestPeer<S> {
        TestPeer { stream, received: Vec::new() }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        within_time_limit(self.stream.write_all(text.as_bytes())).await.unwrap();
        within_time_limit(self.stream.flush()).await.unwrap();
    }

    /// Sends what the other end may refuse to read.
    pub(crate) async fn try_send(&mut self, text: &str) {
        let _ = within_time_limit(self.stream.write_all(text.as_bytes())).await;
    }

    pub(crate) async fn finish_sending(&mut self) {
        within_time_limit(self.stream.shutdown()).await.unwrap();
    }

    /// Returns everything that has not been returned yet, up to and including `end`.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.received).into_owned();
            if let Some(start) = text.find(end) {
                self.received.drain(..start + end.len());
                return text[..start + end.len()].to_owned();
            }
            let read = within_time_limit(self.stream.read_buf(&mut self.received)).await;
            assert_ne!(read.unwrap(), 0, "`{end}` is missing after `{text}`");
        }
    }

    pub(crate) async fn read_to_end(&mut self) -> String {
        // A connection may be reset after its last byte.
        let _ = within_time_limit(self.stream.read_to_end(&mut self.received)).await;
        String::from_utf8_lossy(&std::mem::take(&mut self.received)).into_owned()
    }
}
