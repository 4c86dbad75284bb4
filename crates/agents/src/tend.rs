//! One agent's life, as its guard tells it: started, ended, swept.

use crate::event::{AgentEvent, Exit};
use crate::guard::fact::Fact;
use crate::ledger::Entry;
use crate::os::Process;
use crate::outbox::Outbox;
use crate::pump::Pump;
use crate::stderr::{self, Tail};
use crate::stop::{Control, Order, Stop};
use crate::sweep::{Sweeper, Target};
use bytes::Bytes;
use jackfield_wire::LineSplitter;
use std::collections::VecDeque;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// More than the longest fact: thousands of survivors.
const FACT_BYTES_MAX: usize = 1 << 20;
/// An agent that has closed a pipe usually ends in the same moment. If not, it serves nobody: it is
/// asked to end after the first figure and killed after the second, so that whoever waits for it
/// knows within two seconds.
const DEAD_PIPE_WAIT: Duration = Duration::from_millis(200);
const DEAD_PIPE_GRACE: Duration = Duration::from_secs(1);
const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(1);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(50);

pub(crate) struct Tend<K> {
    pub(crate) key: K,
    pub(crate) events: mpsc::Sender<(K, AgentEvent)>,
    pub(crate) control: Arc<Control>,
    pub(crate) outbox: Outbox,
    pub(crate) guard: Child,
    pub(crate) guard_process: Option<Process>,
    pub(crate) entry: Entry,
    pub(crate) mark: String,
    pub(crate) sweeper: Arc<Sweeper>,
    pub(crate) tail: Tail,
    /// Without stdout it can no longer serve anybody; a mere command may close it and go on.
    pub(crate) needs_stdout: bool,
}

impl<K: Clone + Send + Sync + 'static> Tend<K> {
    pub(crate) async fn run(mut self, pump: Pump<K>, stderr: Receiver) {
        let mut facts = Facts::new(Arc::clone(&self.control));
        let started = self.hear_start(&mut facts).await;
        // Not before: a quick agent may have spoken already, but `Started` is the first event.
        let mut output = Output::start(pump, stderr, self.tail.clone());
        tokio::spawn(self.outbox.clone().run(self.key.clone(), self.events.clone()));
        let agent = started.as_ref().ok().copied();
        let exit = match started {
            Ok(_) => self.hear_end(&mut facts, &mut output).await,
            Err(exit) => exit,
        };
        self.outbox.abandon();
        output.finish().await;
        let (stderr_tail, noise) = (self.tail.text(), self.tail.noise());
        self.tell(AgentEvent::Gone(Exit { stderr_tail, noise, ..exit })).await;

        let below = match facts.next().await {
            Some(Fact::Swept { survivors }) => survivors,
            // The guard was killed, or it never came so far.
            _ => Vec::new(),
        };
        self.bury_guard().await;
        // Whatever the guard says: what carries the mark and runs was started by this agent.
        let known = agent.into_iter().collect();
        let target = Target { mark: self.mark.clone(), known, group: self.entry.group() };
        let mut survivors = self.sweeper.sweep(target).await;
        survivors.extend(below);
        survivors.sort_unstable();
        survivors.dedup();
        if survivors.is_empty() {
            self.entry.close();
        }
        let _ = self.events.send((self.key, AgentEvent::Swept { survivors })).await;
    }

    async fn hear_start(&mut self, facts: &mut Facts) -> Result<Process, Exit> {
        let process = match facts.next().await {
            Some(Fact::Started { process }) => process,
            Some(Fact::Failed { why, shortage }) => return Err(failed(why, shortage)),
            _ => {
                let why = "the guard ended before it could start the agent".to_owned();
                return Err(failed(why, false));
            }
        };
        self.entry.note(self.guard_process, Some(process));
        self.tell(AgentEvent::Started { pid: process.pid }).await;
        Ok(process)
    }

    async fn hear_end(&mut self, facts: &mut Facts, output: &mut Output) -> Exit {
        let outbox = self.outbox.clone();
        let fact = tokio::select! {
            biased;
            fact = facts.next() => fact,
            () = output.stdout_ended(), if self.needs_stdout => {
                self.end_mute(facts, "stdout").await
            }
            () = outbox.broken(), if self.needs_stdout => self.end_mute(facts, "stdin").await,
        };
        if let Some(Fact::Exited { code, signal }) = fact {
            return Exit { code, signal, ..Exit::default() };
        }
        self.tail.push_note("the guard of this agent was lost, and the agent with it");
        Exit::default()
    }

    /// It ended, and the news is on its way; or it lives on and will never hear or answer again.
    async fn end_mute(&mut self, facts: &mut Facts, pipe: &str) -> Option<Fact> {
        self.outbox.close();
        if let Ok(fact) = timeout(DEAD_PIPE_WAIT, facts.next()).await {
            return fact;
        }
        self.tail.push_note(&format!("the agent closed its {pipe} and lived on, so it was ended"));
        self.control.order(Order::Stop(Stop::Soon));
        if let Ok(fact) = timeout(DEAD_PIPE_GRACE, facts.next()).await {
            return fact;
        }
        self.control.order(Order::Stop(Stop::Now));
        facts.next().await
    }

    /// The guard closed its socket, so it is about to end: no zombie may stay.
    async fn bury_guard(&mut self) {
        let mut pause = LOOK_AGAIN_FIRST;
        while let Ok(None) = self.guard.try_wait() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_AGAIN_MAX);
        }
    }

    /// If nobody takes the events any more, there is nobody to tell.
    async fn tell(&self, event: AgentEvent) {
        let _ = self.events.send((self.key.clone(), event)).await;
    }
}

fn failed(why: String, shortage: bool) -> Exit {
    Exit { failed_to_start: Some(why), shortage, ..Exit::default() }
}

/// The two tasks that read what the agent says.
struct Output {
    stdout: JoinHandle<()>,
    stdout_done: bool,
    stderr: JoinHandle<()>,
    /// Tells them that the agent ended: take what is there, wait for nothing.
    ended: [oneshot::Sender<()>; 2],
}

impl Output {
    fn start<K: Clone + Send + Sync + 'static>(
        pump: Pump<K>,
        stderr: Receiver,
        tail: Tail,
    ) -> Output {
        let (stdout_end, stdout_ended) = oneshot::channel();
        let (stderr_end, stderr_ended) = oneshot::channel();
        Output {
            stdout: tokio::spawn(pump.run(stdout_ended)),
            stdout_done: false,
            stderr: tokio::spawn(stderr::read(stderr, tail, stderr_ended)),
            ended: [stdout_end, stderr_end],
        }
    }

    async fn stdout_ended(&mut self) {
        let _ = (&mut self.stdout).await;
        self.stdout_done = true;
    }

    async fn finish(mut self) {
        // A task that has ended already needs no telling.
        let [stdout, stderr] = self.ended;
        let _ = (stdout.send(()), stderr.send(()));
        let _ = self.stderr.await;
        if !self.stdout_done {
            let _ = (&mut self.stdout).await;
        }
    }
}

/// The guard's facts, line by line.
struct Facts {
    control: Arc<Control>,
    splitter: LineSplitter,
    heard: VecDeque<Fact>,
}

impl Facts {
    fn new(control: Arc<Control>) -> Facts {
        Facts { control, splitter: LineSplitter::new(FACT_BYTES_MAX), heard: VecDeque::new() }
    }

    /// `None` when the guard is gone. Safe to cancel.
    async fn next(&mut self) -> Option<Fact> {
        loop {
            if let Some(fact) = self.heard.pop_front() {
                return Some(fact);
            }
            self.control.socket.readable().await.ok()?;
            let mut buffer = [0; 4096];
            match self.control.socket.try_read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.hear(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let heard = &mut self.heard;
        self.splitter.push(Bytes::copy_from_slice(bytes), &mut |line| {
            heard.extend(line.ok().and_then(|line| serde_json::from_slice(&line).ok()));
        });
    }
}
