//! Many sessions in the journal, as real agents leave them: the daemon starts quickly and stays small. For many at
//! work it takes the files it may have.

use jackfield_e2e::{Home, procs};
use jackfield_journal::{AppendRequest, DurabilityLevel, Journal};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::{
    os::unix::net::UnixStream,
    sync::Arc,
    time::{Duration, Instant},
};

#[test]
fn sleeping_sessions_are_all_listed_and_cost_little_memory() {
    list_sleeping_sessions(1_000, 20);
}

#[test]
#[ignore = "nightly: ten thousand sessions take long to write"]
fn ten_thousand_sleeping_sessions_are_all_listed_and_cost_sixty_megabytes_at_most() {
    let took = list_sleeping_sessions(10_000, 60);
    assert!(took < Duration::from_secs(1), "up after {took:?}");
}

/// Returns how long it took the daemon to start and answer.
fn list_sleeping_sessions(sessions: usize, megabytes_max: u64) -> Duration {
    let home = Home::new();
    fill(&home, sessions);
    let begin = Instant::now();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    let took = begin.elapsed();
    let started = procs::allocated(daemon.pid()) >> 20;
    let mut listed = 0;
    let mut cursor = json!(null);
    loop {
        let page = client.result("session/list", &json!({ "cursor": cursor }));
        listed += page["sessions"].as_array().unwrap().len();
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    assert_eq!(listed, sessions);
    let after = procs::allocated(daemon.pid()) >> 20;
    assert!(started.max(after) < megabytes_max, "{started} MB, {after} MB after listing");
    drop(client);
    daemon.stop();
    took
}

#[test]
fn the_daemon_may_open_as_many_files_as_there_are_and_its_agents_as_many_as_before() {
    let limit = getrlimit(Resource::Nofile);
    // For this process and what it starts: each test has one of its own.
    setrlimit(Resource::Nofile, Rlimit { current: Some(300), ..limit }).unwrap();
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    client.open(home.path());
    let of = |pid: u32| {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits.lines().find_map(|it| it.strip_prefix("Max open files")).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    let most = limit.maximum.map_or("unlimited".to_owned(), |it| it.to_string());
    assert_eq!(of(daemon.pid()), most);
    let is_agent = |pid: &u32| procs::words(*pid)[0].ends_with("fake-agent");
    let agents: Vec<u32> = home.alive(&[daemon.pid()]).into_iter().filter(is_agent).collect();
    assert_eq!(agents.len(), 1);
    assert_eq!(of(agents[0]), "300");
    drop(client);
    daemon.stop();
}

/// Each session has a title, a hint and a directory of its own.
fn summary_of(model: &serde_json::Value, number: usize) -> bytes::Bytes {
    let mut summary = model.clone();
    summary["title"] = json!(format!("make the parser of file {number} understand comments"));
    summary["hint"] = json!(format!("the parser of file {number} does not know comments"));
    summary["cwd"] = json!(format!("/home/user/projects/number-{number}"));
    summary.to_string().into()
}

/// Makes one session with the real daemon and copies its log under other names.
fn fill(home: &Home, sessions: usize) {
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let id = client.open(home.path());
    for text in ["burst 20 200", "tool then plan", "title a session like any other"] {
        client.prompt(&id, text);
    }
    drop(client);
    daemon.stop();
    let journal =
        Journal::open(&home.path().join("state/journal.db"), DurabilityLevel::Process).unwrap();
    let model = journal.list_streams().unwrap().into_iter().find(|it| *it.name == *id).unwrap();
    let events = journal.read_events(&id, 0, usize::MAX, usize::MAX).unwrap();
    let lines: Vec<&[u8]> = events.iter().map(|it| it.line.as_ref()).collect();
    let body: bytes::Bytes = lines.join(&b'\n').into();
    let count = u32::try_from(lines.len()).unwrap();
    // The fake agent offers little; a real one sends its models, modes, options and commands.
    let mut summary: serde_json::Value = serde_json::from_slice(&model.summary).unwrap();
    summary["setup"]["configOptions"] = json!("x".repeat(6 * 1024));
    let names: Vec<Arc<str>> = (1..sessions).map(|it| format!("s-copy{it:08}").into()).collect();
    for names in names.chunks(500) {
        let batch: Vec<AppendRequest> = names
            .iter()
            .enumerate()
            .map(|(number, name)| AppendRequest {
                stream: name.clone(),
                epoch: journal.claim_stream(name).unwrap().epoch,
                first: 1,
                count,
                body: body.clone(),
                summary: Some(summary_of(&summary, number)),
            })
            .collect();
        assert!(journal.append_batch(&batch).iter().all(Result::is_ok));
    }
    assert!(UnixStream::connect(home.socket()).is_err(), "the first daemon is gone");
}
