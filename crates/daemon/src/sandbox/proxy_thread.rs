//! The thread that serves the network proxies of sandboxed agents, one Unix socket for each process.

use jackfield_hub::AgentId;
use jackfield_network_proxy::{
    HostQuestion, HostRules, ProxyConfig, ProxyReport, ProxyVerdict, serve_proxy,
};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
};
use tokio::{runtime::Handle, sync::mpsc, task::AbortHandle};

/// Reports that wait to be logged; more are counted.
const REPORTS_MAX: usize = 256;
/// Questions of one proxy that wait for the daemon.
const QUESTIONS_MAX: usize = 16;

/// The proxies by agent. The thread is started with the first one.
pub(super) struct ProxyThread {
    questions: mpsc::Sender<(AgentId, HostQuestion)>,
    runtime: Option<Handle>,
    running: BTreeMap<AgentId, AbortHandle>,
}

impl ProxyThread {
    pub(super) fn new(questions: mpsc::Sender<(AgentId, HostQuestion)>) -> ProxyThread {
        ProxyThread { questions, runtime: None, running: BTreeMap::new() }
    }

    pub(super) fn start(
        &mut self,
        agent: AgentId,
        socket: &Path,
        rules: HostRules,
    ) -> io::Result<()> {
        let runtime = self.runtime()?;
        let listener = UnixListener::bind(socket)?;
        fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let to_daemon = self.questions.clone();
        let serve = async move {
            let Ok(listener) = tokio::net::UnixListener::from_std(listener) else { return };
            let (questions, mut asked) = mpsc::channel(QUESTIONS_MAX);
            let ask = async move {
                while let Some(question) = asked.recv().await {
                    // A question that cannot be passed on is dropped, which refuses the connection.
                    let _dropped = to_daemon.try_send((agent, question));
                }
            };
            let (reports, mut received) = mpsc::channel(REPORTS_MAX);
            let log = async move {
                while let Some(report) = received.recv().await {
                    log_report(agent, &report);
                }
            };
            let config = ProxyConfig::new(rules);
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

fn log_report(agent: AgentId, report: &ProxyReport) {
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
