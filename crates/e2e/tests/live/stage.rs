//! One rig with its model server, its daemon and a client.

use super::{rig::Rig, turn::Turn};
use jackfield_e2e::{Cli, Client, Daemon, Home, procs, wait_for};
use jackfield_test_support::fake_model::FakeModel;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long a turn may take; a provider's error that takes longer is for the nightly run.
pub(super) const TURN_MAX: Duration = Duration::from_secs(20);

/// How long a process may outlive what it was started for.
pub(super) const GONE_MAX: Duration = Duration::from_secs(5);

pub(super) struct Stage {
    pub(super) rig: &'static Rig,
    pub(super) cli: Cli,
    pub(super) project: PathBuf,
    pub(super) client: Client,
    /// What the agent said of itself.
    pub(super) hello: Value,
    pub(super) session: String,
    pub(super) model: FakeModel,
    daemon: Option<Daemon>,
    pub(super) home: Home,
}

/// What the client says when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Allow,
    Refuse,
}

impl Stage {
    pub(super) fn new(rig: &'static Rig) -> Stage {
        Stage::with_config(rig, "", "")
    }

    /// With a configuration and a policy of the user, in which `{model}` is the address of the model server.
    pub(super) fn with_config(rig: &'static Rig, config: &str, policy: &str) -> Stage {
        let (home, model) = (Home::new(), FakeModel::start());
        let folder = home.path().join("config");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), config).unwrap();
        let address = model.url().split('/').nth(2).unwrap().to_owned();
        fs::write(folder.join("policy.toml"), policy.replace("{model}", &address)).unwrap();
        let project = home.path().join("project");
        fs::create_dir_all(&project).unwrap();
        let cli = rig.cli(&home.path().join("own"), &model.url());
        let daemon = home.serve(&[]);
        let (mut client, hello) = connect(rig, &cli, &project, &home);
        let session = client.open(&project);
        let daemon = Some(daemon);
        let mut stage = Stage { rig, cli, project, client, hello, session, model, daemon, home };
        stage.set_mode(rig.mode_that_acts);
        stage
    }

    pub(super) fn set_mode(&mut self, mode: Option<&str>) {
        if let Some(mode) = mode {
            let params = json!({ "sessionId": self.session, "modeId": mode });
            self.client.result("session/set_mode", &params);
        }
    }

    /// Goes on in a new session.
    pub(super) fn open_another(&mut self) {
        self.session = self.client.open(&self.project);
        self.set_mode(self.rig.mode_that_acts);
    }

    /// One whole turn; whatever is asked gets the same answer.
    pub(super) fn turn(&mut self, text: &str, reply: Reply) -> Turn {
        let turn = self.begin(text);
        self.finish(turn, reply)
    }

    pub(super) fn begin(&mut self, text: &str) -> Turn {
        let from = self.client.heard.len();
        Turn::new(self.client.send_prompt(&self.session, text), from)
    }

    /// Plays the turn to its end, which must come.
    pub(super) fn finish(&mut self, mut turn: Turn, reply: Reply) -> Turn {
        let ended = self.play(&mut turn, reply, TURN_MAX);
        assert!(ended, "no end of the turn: {}", self.story(&turn));
        turn
    }

    /// Plays the turn for so long; whether it ended.
    pub(super) fn play(&mut self, turn: &mut Turn, reply: Reply, bound: Duration) -> bool {
        let begin = Instant::now();
        while turn.answer.is_none() {
            let left = bound.saturating_sub(begin.elapsed());
            if !self.step(turn, reply, left) {
                return false;
            }
        }
        true
    }

    pub(super) fn cancel(&mut self) {
        self.client.notify("session/cancel", &json!({ "sessionId": self.session }));
    }

    /// Hears one more message and reacts; false if none came.
    pub(super) fn step(&mut self, turn: &mut Turn, reply: Reply, bound: Duration) -> bool {
        let Some(message) = self.client.next(bound) else { return false };
        if message["method"] == "session/request_permission" {
            turn.asks += 1;
            let outcome = choice(&message, reply);
            self.client.respond(&message, &json!({ "outcome": outcome }));
        } else if turn.is_answer(&message) {
            turn.answer = Some(message);
        } else {
            turn.hear(&message);
        }
        true
    }

    /// Everything heard since the turn began, for whoever has to find out why.
    pub(super) fn story(&self, turn: &Turn) -> String {
        let heard = self.client.heard[turn.from..].iter();
        heard.flat_map(|it| ["\n  ".to_owned(), it.to_string()]).collect()
    }

    /// SIGKILL for the daemon; within a bound nothing of it is alive.
    pub(super) fn kill_daemon(&mut self) -> bool {
        self.daemon.take().expect("it is killed once").kill_9();
        while self.client.next(Duration::from_secs(1)).is_some() {}
        self.comes_true(GONE_MAX, |it| it.home.alive(&[]).is_empty())
    }

    /// A new daemon after a kill, and the session in it as a client finds it.
    pub(super) fn restart(&mut self) {
        self.daemon = Some(self.home.serve(&[]));
        let (mut client, _) = connect(self.rig, &self.cli, &self.project, &self.home);
        let load = json!({ "sessionId": self.session, "cwd": self.project, "mcpServers": [] });
        client.result("session/load", &load);
        self.client = client;
    }

    /// Processes other than the daemon.
    pub(super) fn others(&self) -> Vec<u32> {
        let daemon: Vec<u32> = self.daemon.iter().map(Daemon::pid).collect();
        self.home.alive(&daemon)
    }

    /// Whether a condition comes true in time.
    pub(super) fn comes_true(&self, bound: Duration, is: impl Fn(&Stage) -> bool) -> bool {
        let begin = Instant::now();
        let mut last = false;
        wait_for("a condition or its bound", bound * 2, || {
            last = is(self);
            (last || bound <= begin.elapsed()).then_some(())
        });
        last
    }

    /// The daemon ends, and with it everything; only the dummy key was ever used.
    pub(super) fn end(self) {
        let Stage { rig, client, model, daemon, home, .. } = self;
        drop(client);
        if let Some(daemon) = daemon {
            daemon.stop();
        }
        let log = model.log();
        assert!(log.iter().all(|it| it["testKey"] != json!(false)), "only the dummy key: {log:?}");
        if !rig.every_merge {
            // What some of them leave behind is a cell of the table.
            home.alive(&[]).into_iter().for_each(procs::kill_9);
            wait_for("all to be gone", GONE_MAX, || home.alive(&[]).is_empty().then_some(()));
        }
    }
}

fn connect(rig: &Rig, cli: &Cli, project: &Path, home: &Home) -> (Client, Value) {
    let mut client = home.dial();
    let agent = json!({ "name": rig.agent, "argv": rig.argv(cli) });
    let params = json!({ "agent": agent, "cwd": project, "env": cli.env });
    client.notify("_jackfield/connect", &params);
    let hello = client.hello_aware();
    (client, hello)
}

/// The option that means this reply, where there is one.
fn choice(ask: &Value, reply: Reply) -> Value {
    let kinds = match reply {
        Reply::Allow => ["allow_once", "allow_always"],
        Reply::Refuse => ["reject_once", "reject_always"],
    };
    let options = ask["params"]["options"].as_array().unwrap();
    let of_kind = |kind: &&str| options.iter().find(|it| it["kind"] == **kind);
    match kinds.iter().find_map(of_kind) {
        Some(option) => json!({ "outcome": "selected", "optionId": option["optionId"] }),
        None => json!({ "outcome": "cancelled" }),
    }
}
