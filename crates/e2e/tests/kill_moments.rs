//! SIGKILL for the daemon at its worst moments: in the middle of an ask, on each step of the cancel
//! ladder, with a prompt in the queue. Each has exactly one outcome afterwards, and the next prompt
//! works.

use jackfield_e2e::{Client, Daemon, Home, wait_for};
use serde_json::{Value, json};
use std::time::Duration;

/// A session whose daemon is killed.
struct Scene {
    home: Home,
    agent: Vec<String>,
    session: String,
    daemon: Option<Daemon>,
    client: Client,
}

impl Scene {
    fn new(flags: &[&str]) -> Scene {
        let home = Home::new();
        let state = home.path().join("agent").to_string_lossy().into_owned();
        let agent = home.fake_agent(&[&["--state", &state], flags].concat());
        let daemon = Some(home.serve(&[]));
        let mut client = home.dial();
        let naming = json!({ "agent": { "name": "fake", "argv": agent } });
        client.notify("_jackfield/connect", &naming);
        client.hello_aware();
        let session = client.open(home.path());
        Scene { home, agent, session, daemon, client }
    }

    /// Kills the daemon, starts another, and attaches to the session there.
    fn kill(&mut self) {
        self.daemon.take().unwrap().kill_9();
        let bound = Duration::from_secs(10);
        let home = &self.home;
        wait_for("the agent's tree to be gone", bound, || home.alive(&[]).is_empty().then_some(()));
        self.daemon = Some(self.home.serve(&[]));
        self.client = self.home.dial();
        let naming = json!({ "agent": { "name": "fake", "argv": self.agent } });
        self.client.notify("_jackfield/connect", &naming);
        self.client.hello_aware();
        self.client.result("_jackfield/attach", &json!({ "sessionId": self.session, "after": 0 }));
    }

    /// The facts of this kind that were heard from this daemon.
    fn facts(&self, is: &str) -> Vec<&Value> {
        let params = self.client.heard.iter().filter_map(|it| it.get("params"));
        params.filter(|it| it["is"] == is).collect()
    }

    fn until_fact(&mut self, is: &str, which: impl Fn(&Value) -> bool) {
        self.client.until(is, |it| it["params"]["is"] == is && which(&it["params"]));
    }

    /// The turn was interrupted, once; nothing is asked; the agent goes on with what it knew.
    fn check(mut self, prompts_before: usize) {
        let ends = self.facts("ended");
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!((&ends[0]["turn"], &ends[0]["how"]), (&json!(1), &json!("interrupted")));
        assert_eq!(self.client.result("_jackfield/asks", &json!({}))["asks"], json!([]));
        let asked = |it: &Value| it["method"] == "session/request_permission";
        assert!(!self.client.heard.iter().any(asked), "a ghost of an ask");
        assert_eq!(self.client.prompt(&self.session, "count"), "end_turn");
        let count = format!("count {}", prompts_before + 1);
        assert!(self.client.text().contains(&count), "{}", self.client.text());
        // What the kill left open stays as it was settled.
        assert_eq!(self.facts("ended").len(), 2);
        self.daemon.take().unwrap().stop();
    }
}

#[test]
fn an_ask_whose_daemon_is_killed_is_void_and_nobody_is_asked_again() {
    let mut scene = Scene::new(&[]);
    scene.client.send_prompt(&scene.session, "ask 2 then hang");
    scene.until_fact("asked", |it| it["ask"] == 2);
    scene.kill();
    let answered: Vec<Value> = scene.facts("answered").into_iter().cloned().collect();
    assert_eq!(answered.len(), 2, "{answered:?}");
    for (ask, it) in (1..).zip(&answered) {
        assert_eq!(it["ask"], json!(ask));
        assert_eq!(it["answer"]["void"], "the daemon was restarted");
    }
    scene.check(1);
}

#[test]
fn a_cancel_ladder_whose_daemon_is_killed_on_any_rung_ends_in_one_outcome() {
    for step in [1, 2] {
        let mut scene = Scene::new(&["--cancel", "ignore", "--cancel-request-ignored"]);
        scene.client.send_prompt(&scene.session, "slow 2 1 then hang");
        scene.client.until("the turn", |it| it["method"] == "session/update");
        scene.client.notify("session/cancel", &json!({ "sessionId": scene.session }));
        scene.until_fact("cancelled", |it| it["step"] == step);
        scene.kill();
        assert_eq!(scene.facts("cancelled").len(), step, "the ladder is not climbed any further");
        scene.check(1);
    }
}

#[test]
fn a_queued_prompt_whose_daemon_is_killed_does_not_run_by_itself() {
    let mut scene = Scene::new(&[]);
    scene.client.send_prompt(&scene.session, "slow 2 1 then hang");
    scene.client.until("the turn", |it| it["method"] == "session/update");
    scene.client.send_prompt(&scene.session, "the one that waits");
    wait_for("the queue", Duration::from_secs(20), || {
        let rows = scene.client.result("_jackfield/sessions", &json!({}));
        (rows["sessions"][0]["queued"] == 1).then_some(())
    });
    scene.kill();
    assert_eq!(scene.facts("prompted").len(), 1, "it ran");
    scene.client.result("session/close", &json!({ "sessionId": scene.session }));
    let [queued, withdrawn] = ["queued", "withdrawn"].map(|it| scene.facts(it).len());
    assert_eq!(queued, withdrawn, "what waited has its outcome");
    scene.check(1);
}
