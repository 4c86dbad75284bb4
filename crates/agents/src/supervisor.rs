//! Supervises one agent according to the reports of its guard: started, exited, swept.

use crate::event::{AgentExit, AgentProcessEvent};
use crate::guard::guard_report::GuardReport;
use crate::ledger::LedgerEntry;
use crate::os::ProcessIdentity;
use crate::output_tail::ProcessOutputTail;
use crate::stderr_reader::StderrReader;
use crate::stdin_writer::StdinWriter;
use crate::stdout_reader::StdoutReader;
use crate::stop::{GuardConnection, GuardRequest, StopUrgency};
use crate::sweep::{ProcessSweeper, SweepTarget};
use bytes::Bytes;
use jackfield_protocol::LineSplitter;
use std::collections::VecDeque;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// More than the longest report, which lists thousands of survivors.
const REPORT_BYTES_MAX: usize = 1 << 20;
/// An agent that has closed a pipe usually exits in the same moment. If not, it can no longer be
/// used: it is terminated after the first duration and killed after the second, so that waiting
/// clients get an answer within two seconds.
const DEAD_PIPE_WAIT: Duration = Duration::from_millis(200);
const DEAD_PIPE_GRACE: Duration = Duration::from_secs(1);
const POLL_INTERVAL_FIRST: Duration = Duration::from_millis(1);
const POLL_INTERVAL_MAX: Duration = Duration::from_millis(50);

pub(crate) struct AgentSupervisor<K> {
    pub(crate) key: K,
    pub(crate) events: mpsc::Sender<(K, AgentProcessEvent)>,
    pub(crate) guard_connection: Arc<GuardConnection>,
    pub(crate) stdin: StdinWriter,
    pub(crate) guard: Child,
    pub(crate) guard_process: Option<ProcessIdentity>,
    pub(crate) entry: LedgerEntry,
    pub(crate) mark: String,
    pub(crate) sweeper: Arc<ProcessSweeper>,
    pub(crate) tail: ProcessOutputTail,
    /// Whether the program is ended when it closes stdout. An agent is useless without it; a plain
    /// command may close it and go on.
    pub(crate) needs_stdout: bool,
}

impl<K: Clone + Send + Sync + 'static> AgentSupervisor<K> {
    pub(crate) async fn run(
        mut self,
        stdout_reader: StdoutReader<K>,
        stderr_reader: StderrReader<K>,
    ) {
        let mut reports = GuardReports::new(Arc::clone(&self.guard_connection));
        let started = self.receive_start(&mut reports).await;
        // Only now: a quick agent may already have written, but `Started` must be the first event.
        let mut output = OutputTasks::start(stdout_reader, stderr_reader);
        tokio::spawn(self.stdin.clone().run(self.key.clone(), self.events.clone()));
        let agent = started.as_ref().ok().copied();
        let exit = match started {
            Ok(_) => self.receive_exit(&mut reports, &mut output).await,
            Err(exit) => exit,
        };
        self.stdin.abandon();
        output.finish().await;
        let (stderr_tail, noise) = (self.tail.text(), self.tail.noise());
        self.send_event(AgentProcessEvent::Gone(AgentExit { stderr_tail, noise, ..exit })).await;

        let reported = match reports.next().await {
            Some(GuardReport::Swept { survivors }) => survivors,
            // The guard was killed, or it failed earlier.
            _ => Vec::new(),
        };
        self.wait_for_guard().await;
        // Regardless of the guard's report, a running process with the mark belongs to this agent.
        let known = agent.into_iter().collect();
        let target = SweepTarget { mark: self.mark.clone(), known, group: self.entry.group() };
        let mut survivors = self.sweeper.sweep(target).await;
        survivors.extend(reported);
        survivors.sort_unstable();
        survivors.dedup();
        if survivors.is_empty() {
            self.entry.close();
        }
        let _ = self.events.send((self.key, AgentProcessEvent::Swept { survivors })).await;
    }

    async fn receive_start(
        &mut self,
        reports: &mut GuardReports,
    ) -> Result<ProcessIdentity, AgentExit> {
        let process = match reports.next().await {
            Some(GuardReport::Started { process }) => process,
            Some(GuardReport::Failed { why, shortage }) => {
                return Err(exit_of_failed_start(why, shortage));
            }
            _ => {
                let why = "the guard ended before it could start the agent".to_owned();
                return Err(exit_of_failed_start(why, false));
            }
        };
        self.entry.set_processes(self.guard_process, Some(process));
        self.send_event(AgentProcessEvent::Started { pid: process.pid }).await;
        Ok(process)
    }

    async fn receive_exit(
        &mut self,
        reports: &mut GuardReports,
        output: &mut OutputTasks,
    ) -> AgentExit {
        let stdin = self.stdin.clone();
        let report = tokio::select! {
            biased;
            report = reports.next() => report,
            () = output.stdout_ended(), if self.needs_stdout => {
                self.end_after_closed_pipe(reports, "stdout").await
            }
            () = stdin.broken(), if self.needs_stdout => self.end_after_closed_pipe(reports, "stdin").await,
        };
        if let Some(GuardReport::Exited { code, signal }) = report {
            return AgentExit { code, signal, ..AgentExit::default() };
        }
        self.tail.push_note("the guard of this agent was killed, and the agent with it");
        AgentExit::default()
    }

    /// The agent has closed a pipe. Either it has exited and the report will follow, or it keeps
    /// running and can no longer be used, so it is ended.
    async fn end_after_closed_pipe(
        &mut self,
        reports: &mut GuardReports,
        pipe: &str,
    ) -> Option<GuardReport> {
        self.stdin.close();
        if let Ok(report) = timeout(DEAD_PIPE_WAIT, reports.next()).await {
            return report;
        }
        self.tail.push_note(&format!("the agent closed its {pipe} and kept running; it was ended"));
        self.guard_connection.send_request(GuardRequest::Stop(StopUrgency::Soon));
        if let Ok(report) = timeout(DEAD_PIPE_GRACE, reports.next()).await {
            return report;
        }
        self.guard_connection.send_request(GuardRequest::Stop(StopUrgency::Now));
        reports.next().await
    }

    /// Waits for the guard, which is about to exit because it has closed its socket.
    async fn wait_for_guard(&mut self) {
        let mut pause = POLL_INTERVAL_FIRST;
        while let Ok(None) = self.guard.try_wait() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(POLL_INTERVAL_MAX);
        }
    }

    /// Sends an event. A closed channel is ignored.
    async fn send_event(&self, event: AgentProcessEvent) {
        let _ = self.events.send((self.key.clone(), event)).await;
    }
}

fn exit_of_failed_start(why: String, shortage: bool) -> AgentExit {
    AgentExit { failed_to_start: Some(why), shortage, ..AgentExit::default() }
}

/// The two tasks that read the agent's output.
struct OutputTasks {
    stdout: JoinHandle<()>,
    stdout_done: bool,
    stderr: JoinHandle<()>,
    /// Notifies the tasks that the agent has exited: they read what is buffered and finish.
    ended: [oneshot::Sender<()>; 2],
}

impl OutputTasks {
    fn start<K: Clone + Send + Sync + 'static>(
        stdout_reader: StdoutReader<K>,
        stderr_reader: StderrReader<K>,
    ) -> OutputTasks {
        let (stdout_end, stdout_ended) = oneshot::channel();
        let (stderr_end, stderr_ended) = oneshot::channel();
        OutputTasks {
            stdout: tokio::spawn(stdout_reader.run(stdout_ended)),
            stdout_done: false,
            stderr: tokio::spawn(stderr_reader.run(stderr_ended)),
            ended: [stdout_end, stderr_end],
        }
    }

    async fn stdout_ended(&mut self) {
        let _ = (&mut self.stdout).await;
        self.stdout_done = true;
    }

    async fn finish(mut self) {
        // A task that has already ended needs no notification.
        let [stdout, stderr] = self.ended;
        let _ = (stdout.send(()), stderr.send(()));
        let _ = self.stderr.await;
        if !self.stdout_done {
            let _ = (&mut self.stdout).await;
        }
    }
}

/// Reads the guard's reports, one per line.
struct GuardReports {
    guard_connection: Arc<GuardConnection>,
    splitter: LineSplitter,
    received: VecDeque<GuardReport>,
}

impl GuardReports {
    fn new(guard_connection: Arc<GuardConnection>) -> GuardReports {
        GuardReports {
            guard_connection,
            splitter: LineSplitter::new(REPORT_BYTES_MAX),
            received: VecDeque::new(),
        }
    }

    /// The next report; `None` when the guard has exited. Safe to cancel.
    async fn next(&mut self) -> Option<GuardReport> {
        loop {
            if let Some(report) = self.received.pop_front() {
                return Some(report);
            }
            self.guard_connection.socket.readable().await.ok()?;
            let mut buffer = [0; 4096];
            match self.guard_connection.socket.try_read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.add_bytes(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        let received = &mut self.received;
        self.splitter.push(Bytes::copy_from_slice(bytes), &mut |line| {
            received.extend(line.ok().and_then(|line| serde_json::from_slice(&line).ok()));
        });
    }
}
