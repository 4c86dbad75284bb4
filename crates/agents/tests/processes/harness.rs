//! One agent under test, and everything it needs.

use crate::proc;
use bytes::Bytes;
use jackfield_agents::{
    AgentExit, AgentHandle, AgentProcessEvent, GracePeriods, GuardCommand, LaunchCommand,
    ProcessLedger, ProcessLimits, StdoutFormat, StopUrgency, spawn_agent_with_limits,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Nothing here takes so long, unless it is broken or the machine is very busy.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

pub(crate) struct AgentHarness {
    pub(crate) dir: TempDir,
    pub(crate) guard: GuardCommand,
    pub(crate) ledger: ProcessLedger,
    pub(crate) limits: ProcessLimits,
    pub(crate) launch: LaunchCommand,
    pub(crate) events_max: usize,
}

pub(crate) struct RunningAgent {
    pub(crate) handle: AgentHandle,
    pub(crate) events: mpsc::Receiver<(u8, AgentProcessEvent)>,
    pub(crate) mark: String,
    /// Frames and noise passed over by the waits below.
    pub(crate) frames: Vec<String>,
    pub(crate) noise: u64,
}

/// Examples are built next to the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "build the examples first: cargo build -p jackfield-agents --examples");
    path
}

pub(crate) fn new_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanos = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    format!("test-{}-{nanos}-{count}", std::process::id())
}

impl AgentHarness {
    pub(crate) fn new() -> AgentHarness {
        let dir = tempfile::tempdir().unwrap();
        let guard = GuardCommand { program: example("guard"), args: Vec::new() };
        let ledger = ProcessLedger::open(&dir.path().join("ledger")).unwrap();
        let env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
        let launch = LaunchCommand {
            argv: Vec::new(),
            cwd: "/".into(),
            env,
            stdout_format: StdoutFormat::Frames,
        };
        AgentHarness {
            dir,
            guard,
            ledger,
            limits: ProcessLimits::default(),
            launch,
            events_max: 64,
        }
    }

    pub(crate) fn with_graces(mut self, graces: GracePeriods) -> AgentHarness {
        self.guard.args = graces.to_args();
        self
    }

    pub(crate) fn ledger_files(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("ledger")).unwrap().count()
    }

    pub(crate) fn spawn(&self, argv: &[&str]) -> RunningAgent {
        let (sender, events) = mpsc::channel(self.events_max);
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        let launch = LaunchCommand { argv, ..self.launch.clone() };
        let mark = new_mark();
        let handle = spawn_agent_with_limits(
            self.limits,
            &self.guard,
            &launch,
            &mark,
            &self.ledger,
            sender,
            7,
        )
        .unwrap();
        RunningAgent { handle, events, mark, frames: Vec::new(), noise: 0 }
    }

    pub(crate) fn spawn_script(&self, script: &str) -> RunningAgent {
        self.spawn(&["/bin/sh", "-c", script])
    }
}

impl RunningAgent {
    pub(crate) async fn next(&mut self) -> AgentProcessEvent {
        let heard = tokio::time::timeout(BOUND, self.events.recv()).await;
        let (key, event) = heard.expect("nothing was heard").expect("the events ended");
        assert_eq!(key, 7);
        event
    }

    pub(crate) async fn started(&mut self) -> u32 {
        match self.next().await {
            AgentProcessEvent::Started { pid } => pid,
            other => panic!("expected Started, heard {other:?}"),
        }
    }

    /// Frames arrive in batches of any size.
    pub(crate) async fn frame(&mut self) -> String {
        while self.frames.is_empty() {
            match self.next().await {
                AgentProcessEvent::Frames(frames) => {
                    assert!(!frames.is_empty());
                    self.frames.extend(frames.iter().map(|frame| frame.text().to_owned()));
                }
                AgentProcessEvent::Noise(noise) => self.noise += noise.lines,
                AgentProcessEvent::Wrote { .. } | AgentProcessEvent::Oversized(_) => {}
                other => panic!("expected a frame, heard {other:?}"),
            }
        }
        self.frames.remove(0)
    }

    pub(crate) async fn gone(&mut self) -> AgentExit {
        loop {
            match self.next().await {
                AgentProcessEvent::Frames(frames) => {
                    self.frames.extend(frames.iter().map(|frame| frame.text().to_owned()));
                }
                AgentProcessEvent::Noise(noise) => self.noise += noise.lines,
                AgentProcessEvent::Gone(exit) => return exit,
                AgentProcessEvent::Wrote { .. }
                | AgentProcessEvent::Started { .. }
                | AgentProcessEvent::Lines(_)
                | AgentProcessEvent::Oversized(_)
                | AgentProcessEvent::Output(_)
                | AgentProcessEvent::Stderr(_) => {}
                other @ AgentProcessEvent::Swept { .. } => panic!("expected Gone, heard {other:?}"),
            }
        }
    }

    /// After `Gone`: nobody is left, nothing more is heard.
    pub(crate) async fn swept(mut self) {
        match self.next().await {
            AgentProcessEvent::Swept { survivors } => assert_eq!(survivors, proc::NO_PIDS),
            other => panic!("expected Swept, heard {other:?}"),
        }
        assert_eq!(proc::pids_with_mark(&self.mark), proc::NO_PIDS);
        let RunningAgent { handle, mut events, .. } = self;
        drop(handle);
        let rest = tokio::time::timeout(BOUND, events.recv()).await.expect("a task did not end");
        assert!(rest.is_none(), "heard after the end: {rest:?}");
    }

    pub(crate) async fn end(mut self, stop: StopUrgency) -> AgentExit {
        self.handle.stop(stop);
        let exit = self.gone().await;
        self.swept().await;
        exit
    }

    pub(crate) fn send_frame(&mut self, text: &str) {
        self.handle.send(Bytes::copy_from_slice(text.as_bytes())).unwrap();
        self.handle.flush();
    }
}

/// A notification that names a number.
pub(crate) fn note(number: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"note","params":{{"number":{number}}}}}"#)
}
