//! The thread that serves the network proxies of sandboxed agents, one Unix socket for each process.

use jackfield_events::ConnectionRefused;
use jackfield_hub::AgentId;
use jackfield_network_proxy::{
    HostQuestion, ProxyConfig, ProxyReport, ProxyVerdict, RefusalReason, serve_proxy,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinSet},
};

/// Reports that wait to be logged; more are counted.
const REPORTS_MAX: usize = 256;
/// Questions of one proxy that wait for the daemon.
const QUESTIONS_MAX: usize = 16;
/// Different refusals of one process that its sessions log.
const LOGGED_REFUSALS_MAX: usize = 64;

/// What the proxy of an agent sends to the main loop.
#[derive(Debug)]
pub(crate) enum ProxyMessage {
    Question(HostQuestion),
    /// No connection to this host waits for an answer any more.
    Withdrawn {
        host: String,
        port: u16,
    },
    Refused(ConnectionRefused),
}

/// The proxies by agent. The thread is started with the first one.
pub(super) struct ProxyThread {
    messages: mpsc::Sender<(AgentId, ProxyMessage)>,
    runtime: Option<Handle>,
    running: BTreeMap<AgentId, AbortHandle>,
}

impl ProxyThread {
    pub(super) fn new(messages: mpsc::Sender<(AgentId, ProxyMessage)>) -> ProxyThread {
        ProxyThread { messages, runtime: None, running: BTreeMap::new() }
    }

    pub(super) fn start(
        &mut self,
        agent: AgentId,
        socket: &Path,
        config: ProxyConfig,
    ) -> io::Result<()> {
        let runtime = self.runtime()?;
        let listener = UnixListener::bind(socket)?;
        fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (to_daemon, to_log) = (self.messages.clone(), self.messages.clone());
        let serve = async move {
            let Ok(listener) = tokio::net::UnixListener::from_std(listener) else { return };
            let (questions, mut asked) = mpsc::channel(QUESTIONS_MAX);
            let ask = async move {
                let mut waiting = JoinSet::new();
                while let Some(question) = asked.recv().await {
                    waiting.spawn(ask_daemon(agent, question, to_daemon.clone()));
                    while waiting.try_join_next().is_some() {}
                }
            };
            let (reports, mut received) = mpsc::channel(REPORTS_MAX);
            let log = async move {
                let mut logged = LoggedRefusals::default();
                while let Some(report) = received.recv().await {
                    write_log(agent, &report);
                    if let Some(refused) = logged.add(&report) {
                        // The log of the daemon has it, too.
                        let _dropped = to_log.try_send((agent, ProxyMessage::Refused(refused)));
                    }
                }
            };
            tokio::join!(serve_proxy(listener, config, questions, reports), ask, log);
        };
        self.running.insert(agent, runtime.spawn(serve).abort_handle());
        Ok(())
    }

    pub(super) fn stop(&mut self, agent: AgentId, socket: &Path) {
        if let Some(proxy) = self.running.remove(&agent) {
            proxy.abort();
            let _gone = fs::remove_file(socket);
        }
    }

    fn runtime(&mut self) -> io::Result<Handle> {
        if let Some(handle) = &self.runtime {
            return Ok(handle.clone());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let run = move || runtime.block_on(std::future::pending::<()>());
        std::thread::Builder::new().name("network-proxy".to_owned()).spawn(run)?;
        self.runtime = Some(handle.clone());
        Ok(handle)
    }
}

/// Passes a question on, and withdraws it if no connection waits for the answer any more. A question that cannot be
/// passed on is dropped, which refuses the connection.
async fn ask_daemon(
    agent: AgentId,
    question: HostQuestion,
    to_daemon: mpsc::Sender<(AgentId, ProxyMessage)>,
) {
    let HostQuestion { host, port, mut reply } = question;
    let (answer, answered) = oneshot::channel();
    let asked = HostQuestion { host: host.clone(), port, reply: answer };
    if to_daemon.try_send((agent, ProxyMessage::Question(asked))).is_err() {
        return;
    }
    tokio::select! {
        answer = answered => {
            if let Ok(answer) = answer {
                // The connections may have ended meanwhile.
                let _ended = reply.send(answer);
            }
        }
        () = reply.closed() => {
            // At the end of the daemon no question is open.
            let _stopped = to_daemon.send((agent, ProxyMessage::Withdrawn { host, port })).await;
        }
    }
}

/// The refusals of one process that its sessions have logged.
#[derive(Default)]
struct LoggedRefusals {
    seen: BTreeSet<(String, Option<u16>, String)>,
}

impl LoggedRefusals {
    /// The refusal in a report, if it is new and the sessions have not logged too many.
    fn add(&mut self, report: &ProxyReport) -> Option<ConnectionRefused> {
        let ProxyVerdict::Refused(reason) = &report.verdict else { return None };
        let key = (report.host.clone(), report.port, reason.to_string());
        if LOGGED_REFUSALS_MAX <= self.seen.len() || !self.seen.insert(key) {
            return None;
        }
        Some(describe_refusal(report, reason))
    }
}

fn describe_refusal(report: &ProxyReport, reason: &RefusalReason) -> ConnectionRefused {
    ConnectionRefused {
        host: report.host.as_str().into(),
        port: report.port,
        why: reason.to_string().into(),
        way_out: reason.way_out().into(),
    }
}

fn write_log(agent: AgentId, report: &ProxyReport) {
    let ProxyReport { host, port, verdict, dropped_before } = report;
    match verdict {
        ProxyVerdict::Allowed(reason) => {
            tracing::debug!(%agent, host, port, %reason, dropped_before, "sandbox: connection allowed");
        }
        ProxyVerdict::Refused(reason) => {
            tracing::info!(%agent, host, port, %reason, dropped_before, "sandbox: connection refused");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(host: &str) -> ProxyReport {
        let verdict = ProxyVerdict::Refused(RefusalReason::UserRefused);
        ProxyReport { host: host.to_owned(), port: Some(443), verdict, dropped_before: 0 }
    }

    #[test]
    fn each_refusal_is_logged_once_and_their_number_is_limited() {
        let mut logged = LoggedRefusals::default();
        let first = logged.add(&refusal("a.example")).unwrap();
        assert_eq!((&*first.host, first.port), ("a.example", Some(443)));
        assert_eq!(&*first.why, "the user refused it");
        assert_eq!(logged.add(&refusal("a.example")), None);
        let added =
            (0..1_000).filter(|it| logged.add(&refusal(&format!("{it}.example"))).is_some());
        assert_eq!(added.count(), LOGGED_REFUSALS_MAX - 1);
    }
}
