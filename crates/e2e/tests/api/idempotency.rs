//! Posts with an `Idempotency-Key`: clients that vanish, and a daemon that is killed, make no second run.

use super::{again, body, events, serve, text, until};
use jackfield_e2e::{
    Home, Web,
    http::{Events, Reply},
    wait_for,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

const POSTS: usize = 60;
const CLIENTS: usize = 6;
/// Sessions that exist before, to which two of three posts go.
const SESSIONS: usize = 4;

/// One request, as its client repeats it.
#[derive(Debug, Clone)]
struct Post {
    path: &'static str,
    key: String,
    body: Value,
    opens: bool,
}

impl Post {
    fn new(number: usize, sessions: &[String]) -> Post {
        let path = if number.is_multiple_of(2) { "/api/runs" } else { "/api/chat" };
        let opens = number.is_multiple_of(3);
        let mut body = json!({ "message": format!("wait 20\n{}", words(number)) });
        if opens {
            body["agentId"] = json!("fake");
        } else {
            body["sessionId"] = json!(sessions[number % SESSIONS]);
        }
        Post { path, key: format!("key-{number}"), body, opens }
    }

    fn header(&self) -> String {
        format!("Idempotency-Key: \"{}\"", self.key)
    }

    /// Sends it, and closes the connection at one of five moments, without telling anybody.
    fn send_and_vanish(&self, web: &Web, moment: usize) -> Option<()> {
        let body = self.body.to_string();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.path,
            web.address,
            web.token,
            self.header(),
            body.len()
        );
        let mut stream = TcpStream::connect(web.address).ok()?;
        stream.set_read_timeout(Some(super::BOUND)).ok()?;
        let request = format!("{head}{body}");
        let sent = if moment == 0 { request.len() - 3 } else { request.len() };
        stream.write_all(&request.as_bytes()[..sent]).ok()?;
        let read = match moment {
            0 | 1 => 0,
            2 => 1,
            3 => 400,
            _ => usize::MAX,
        };
        let mut buffer = [0; 256];
        let mut total = 0;
        while total < read {
            match stream.read(&mut buffer).ok()? {
                0 => break,
                count => total += count,
            }
        }
        Some(())
    }

    /// Sends it until it is answered for good; returns its run and session, and whether it was made before.
    fn repeat(&self, web: &Web) -> (String, String, bool) {
        if self.path == "/api/runs" {
            let reply = web.ask("POST", self.path, &[&self.header()], Some(&self.body));
            assert_eq!(reply.status, 202, "{}: {}", self.key, reply.text());
            let made = reply.json();
            return (name(&made["runId"]), name(&made["sessionId"]), is_repeat(&reply));
        }
        let mut chat: Events = web.stream("POST", self.path, &[&self.header()], Some(&self.body));
        let told = chat.rest();
        super::assert_whole(&told);
        let start = told[0].json();
        (name(&start["runId"]), name(&start["sessionId"]), true)
    }
}

fn words(number: usize) -> String {
    format!("this is post {number} of all.")
}

fn name(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn is_repeat(reply: &Reply) -> bool {
    reply.headers.iter().any(|it| it.0 == "idempotency-replayed" && it.1 == "true")
}

/// How often an agent was given each post: its prompts stand in files.
fn prompts_seen(state: &Path) -> BTreeMap<usize, usize> {
    let files = fs::read_dir(state).unwrap().map(|it| it.unwrap().path());
    let lines: Vec<Value> = files
        .filter_map(|it| fs::read_to_string(it).ok())
        .flat_map(|it| {
            it.lines().filter_map(|it| serde_json::from_str(it).ok()).collect::<Vec<_>>()
        })
        .collect();
    let asked: Vec<&str> = lines.iter().filter_map(|it: &Value| it["user"].as_str()).collect();
    (0..POSTS)
        // A digest of a lost conversation tells old prompts again: only what is asked stands last.
        .map(|number| (number, asked.iter().filter(|it| it.ends_with(&words(number))).count()))
        .collect()
}

#[test]
fn posts_run_once_although_clients_vanish_and_the_daemon_is_killed() {
    let home = Home::new();
    let state = home.path().join("agents-state");
    fs::create_dir(&state).unwrap();
    let (daemon, web) = serve(&home, &["--state", state.to_str().unwrap()]);
    let sessions: Vec<String> =
        (0..SESSIONS).map(|_| super::make(&web, &body("hello")).1).collect();
    let posts: Vec<Post> = (0..POSTS).map(|it| Post::new(it, &sessions)).collect();
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (posts, done, web) = (&posts, &done, &web);
        for client in 0..CLIENTS {
            scope.spawn(move || {
                for (number, post) in posts.iter().enumerate().skip(client).step_by(CLIENTS) {
                    let _cut_off = post.send_and_vanish(web, (number + client) % 5);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        wait_for("half of the posts", super::BOUND, || {
            (POSTS / 2 <= done.load(Ordering::SeqCst)).then_some(())
        });
        daemon.kill_9();
    });

    let (daemon, web) = again(&home);
    let learned: Vec<_> = posts.iter().map(|it| it.repeat(&web)).collect();
    let twice: Vec<_> = posts.iter().map(|it| it.repeat(&web)).collect();
    for (number, (first, second)) in learned.iter().zip(&twice).enumerate() {
        assert_eq!((&first.0, &first.1), (&second.0, &second.1), "post {number}");
        assert!(second.2, "post {number} was made before");
        wait_for("a run to end", super::BOUND, || {
            let status = super::status(&web, &first.0);
            ["succeeded", "failed"].contains(&status.as_str()?).then_some(())
        });
    }
    let runs: BTreeSet<&String> = learned.iter().map(|it| &it.0).collect();
    assert_eq!(runs.len(), POSTS, "each key has a run of its own");
    for (number, count) in prompts_seen(&state) {
        let status = super::status(&web, &learned[number].0);
        // A prompt that the daemon wrote down and had not handed over when it was killed has failed.
        let least = usize::from(status == "succeeded");
        assert!((least..=1).contains(&count), "post {number} ran {count} times and has {status}");
    }
    let opened = posts.iter().filter(|it| it.opens).count();
    let listed = web.get("/api/sessions?limit=1000").good();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), SESSIONS + opened);
    let made_before: BTreeSet<bool> = learned.iter().step_by(2).map(|it| it.2).collect();
    assert_eq!(made_before.len(), 2, "some were made before the end, and some only now");
    daemon.stop();
}

#[test]
fn a_repeated_post_is_answered_with_the_first_run_while_it_opens_runs_and_is_over() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &["--delay", "new", "700"]);
    let key = "Idempotency-Key: one";
    let post = |path: &str, body: &Value| web.ask("POST", path, &[key], Some(body));
    let work = body("slow 3 200");
    thread::scope(|scope| {
        let first = scope.spawn(|| post("/api/runs", &work));
        let second = scope.spawn(|| post("/api/runs", &work));
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        assert_eq!(first.good(), second.good());
        assert_ne!(is_repeat(&first), is_repeat(&second), "one of them made it");
    });
    let run = name(&post("/api/runs", &work).good()["runId"]);
    // The same body may go to the other route: its reader gets the whole run.
    let heard = web.stream("POST", "/api/chat", &[key], Some(&work)).rest();
    assert_eq!(heard, events(&web, &run));
    assert_eq!(text(&heard), "slow 1 slow 2 slow 3 ");
    until(&web, &run, "succeeded");
    assert_eq!(post("/api/runs", &work).good()["runId"], run);
    assert_eq!(web.get("/api/runs").good()["runs"].as_array().unwrap().len(), 1);
    daemon.stop();
}

#[test]
fn a_key_is_for_one_request_and_of_a_bounded_length() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let post = |key: &str, path: &str, body: &Value| {
        web.ask("POST", path, &[&format!("Idempotency-Key: {key}")], Some(body))
    };
    let session = name(&post("one", "/api/runs", &body("hello")).good()["sessionId"]);
    let path = format!("/api/sessions/{session}/prompt");
    let prompt = json!({ "message": "count" });
    for (path, other) in
        [("/api/runs", &body("another")), ("/api/chat", &body("another")), (&path, &prompt)]
    {
        let refused = post("\"one\"", path, other);
        assert_eq!(refused.status, 422, "{}", refused.text());
        let error = refused.json()["error"].clone();
        assert_eq!(error["code"], "IDEMPOTENCY_KEY_REUSED");
        assert!(error["message"].as_str().unwrap().contains("use a new key"), "{error}");
    }
    let second = post("two", &path, &prompt);
    assert!(!is_repeat(&second));
    let run = name(&second.good()["runId"]);
    assert_eq!(post("two", &path, &prompt).good()["runId"], run);
    assert_eq!(text(&events(&web, &run)), "count 2");
    for key in ["", "\"open", &"x".repeat(256)] {
        let refused = post(key, "/api/runs", &body("hello"));
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains("1 to 255"), "{}", refused.text());
    }
    let two = ["Idempotency-Key: a", "Idempotency-Key: b"];
    assert_eq!(web.ask("POST", "/api/runs", &two, Some(&body("hello"))).status, 400);
    post(&"x".repeat(255), "/api/runs", &body("hello")).good();
    daemon.stop();
}

#[test]
fn an_error_before_the_prompt_is_not_kept() {
    let home = Home::new();
    let (daemon, web) =
        serve(&home, &["--state", "state-of-agents", "--die-at", "new", "--die-once"]);
    let key = "Idempotency-Key: one";
    let post = || web.ask("POST", "/api/runs", &[key], Some(&body("hello")));
    let failed = post();
    assert_eq!(failed.status, 502, "{}", failed.text());
    let made = post();
    assert!(!is_repeat(&made));
    until(&web, &name(&made.good()["runId"]), "succeeded");
    daemon.stop();
}
