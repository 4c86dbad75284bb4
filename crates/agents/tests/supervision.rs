//! An agent under its guard on every system: frames, exits, and nothing that is left behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use jackfield_agents::{
    AgentHandle, AgentProcessEvent, GracePeriods, GuardCommand, LaunchCommand, ProcessLedger,
    ProcessLimits, ProcessPin, Signal, StdoutFormat, StopUrgency, spawn_agent_with_limits,
};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;

const BOUND: Duration = Duration::from_secs(20);

struct SupervisedAgent {
    handle: AgentHandle,
    events: mpsc::Receiver<(u8, AgentProcessEvent)>,
    ledger: TempDir,
    ids: Vec<u32>,
}

impl SupervisedAgent {
    /// Starts a shell with this script under a guard.
    fn start(script: &str) -> SupervisedAgent {
        let test = std::env::current_exe().unwrap();
        let program = test.parent().and_then(Path::parent).unwrap().join("examples/guard");
        let graces = GracePeriods {
            eof: Duration::from_millis(200),
            term: Duration::from_millis(200),
            left: Duration::from_millis(200),
            ..GracePeriods::default()
        };
        let guard = GuardCommand { program, args: graces.to_args() };
        let ledger = tempfile::tempdir().unwrap();
        // `frame N` sends a response with this id.
        let script =
            format!("frame() {{ echo \"{{\\\"id\\\":$1,\\\"result\\\":0}}\"; }}\n{script}");
        let launch = LaunchCommand {
            argv: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
            cwd: "/".into(),
            env: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
            stdout_format: StdoutFormat::Frames,
        };
        let (sender, events) = mpsc::channel(64);
        let mark = format!("supervision-{}", std::process::id());
        let processes = ProcessLedger::open(ledger.path()).unwrap();
        let limits = ProcessLimits::default();
        let handle =
            spawn_agent_with_limits(limits, &guard, &launch, &mark, &processes, sender, 7).unwrap();
        SupervisedAgent { handle, events, ledger, ids: Vec::new() }
    }

    async fn next(&mut self) -> AgentProcessEvent {
        tokio::time::timeout(BOUND, self.events.recv()).await.unwrap().unwrap().1
    }

    /// The id of the next frame.
    async fn next_id(&mut self) -> u32 {
        while self.ids.is_empty() {
            if let AgentProcessEvent::Frames(frames) = self.next().await {
                let ids = frames.iter().map(|it| {
                    let frame: serde_json::Value = serde_json::from_str(it.text()).unwrap();
                    u32::try_from(frame["id"].as_u64().unwrap()).unwrap()
                });
                self.ids.extend(ids);
            }
        }
        self.ids.remove(0)
    }

    /// Waits for the exit of the agent and then of its tree, of which nothing is left.
    async fn wait_for_end(mut self) -> (Option<i32>, Option<i32>) {
        let exit = loop {
            if let AgentProcessEvent::Gone(exit) = self.next().await {
                break exit;
            }
        };
        let AgentProcessEvent::Swept { survivors } = self.next().await else { panic!("not swept") };
        assert!(survivors.is_empty(), "{survivors:?}");
        assert_eq!(std::fs::read_dir(self.ledger.path()).unwrap().count(), 0);
        (exit.code, exit.signal)
    }
}

#[tokio::test]
async fn frame_is_answered_and_the_exit_code_is_reported() {
    let mut agent = SupervisedAgent::start("read -r line; echo \"$line\"; exit 7");
    agent.handle.send(Bytes::from_static(b"{\"id\":5,\"result\":0}")).unwrap();
    agent.handle.flush();
    assert_eq!(agent.next_id().await, 5);
    assert_eq!(agent.wait_for_end().await, (Some(7), None));
}

#[tokio::test]
async fn stop_ends_a_descendant_in_another_process_group() {
    let mut agent = SupervisedAgent::start(
        "set -m; sh -c 'sleep 60 & echo $!; wait' | while read -r it; do frame $it; done & cat",
    );
    let pin = ProcessPin::open(agent.next_id().await).unwrap();
    assert!(!pin.has_exited());
    agent.handle.stop(StopUrgency::Polite);
    agent.wait_for_end().await;
    assert!(pin.wait_for_exit(BOUND));
}

#[tokio::test]
async fn exit_of_the_agent_ends_the_orphans_that_it_leaves() {
    let mut agent = SupervisedAgent::start("sleep 60 & frame $!; read -r line; exit 0");
    let pin = ProcessPin::open(agent.next_id().await).unwrap();
    agent.handle.send(Bytes::from_static(b"{\"id\":1,\"result\":0}")).unwrap();
    agent.handle.flush();
    assert_eq!(agent.wait_for_end().await, (Some(0), None));
    assert!(pin.wait_for_exit(BOUND));
}

#[tokio::test]
async fn agent_ends_soon_after_its_guard_was_killed() {
    let mut agent = SupervisedAgent::start("frame $PPID; frame $$; exec sleep 60");
    let guard = ProcessPin::open(agent.next_id().await).unwrap();
    let pin = ProcessPin::open(agent.next_id().await).unwrap();
    assert!(guard.signal(Signal::KILL));
    agent.wait_for_end().await;
    assert!(pin.wait_for_exit(BOUND));
}
