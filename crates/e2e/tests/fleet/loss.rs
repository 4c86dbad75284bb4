//! A host is lost: its sessions continue on another host, and clients keep their connections.

use super::{
    Member, agent,
    crowd::{BACK_WITHIN, BOUND, Crowd, ended_well, facts, sessions},
};
use jackfield_test_support::nats::Cluster;
use serde_json::json;
use std::time::Instant;

#[test]
#[ignore = "nightly: a killed host of many sessions is tested with every change"]
fn sessions_of_a_killed_host_answer_again_and_clients_stay_connected() {
    let cluster = Cluster::start(3);
    let mut hosts = ["one", "two"].map(|it| Member::start(&cluster, "host", it));
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let id = client.open(gateway.home.path());
    assert_eq!(client.prompt(&id, "remember 17"), "end_turn");
    let ps = client.result("_jackfield/sessions", &json!({}));
    let owner = ps["sessions"][0]["host"].as_str().expect("it has a host").to_owned();

    // During a turn.
    let request = client.send_prompt(&id, "hang");
    client.until("the turn", |it| it["params"]["is"] == "prompted");
    let lost = usize::from(owner == "two");
    let since = Instant::now();
    hosts[lost].kill_9();
    let answer = client.answer(request);
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "interrupted", "{answer}");
    assert_eq!(client.prompt(&id, "history"), "end_turn");
    let took = since.elapsed();
    assert!(client.text().contains("history: remember 17"), "{}", client.text());
    assert!(took < BACK_WITHIN, "{took:?}");
    let moved: Vec<_> = client.heard.iter().filter(|it| it["params"]["is"] == "moved").collect();
    assert_eq!(moved.len(), 1, "{moved:?}");
    let ends = client.heard.iter().filter(|it| it["params"]["is"] == "ended").count();
    assert_eq!(ends, 3, "one outcome for each turn");
    drop(client);
    gateway.stop();
    hosts[1 - lost].stop();
}

#[test]
#[expect(clippy::print_stderr, reason = "figures for manual runs")]
fn killed_host_loses_no_session_and_no_prompt_runs_twice() {
    let cluster = Cluster::start(3);
    let names = ["one", "two", "three"];
    let mut hosts = names.map(|it| Member::start(&cluster, "host", it));
    let mut gateways = ["in", "out"].map(|it| Member::start(&cluster, "gateway", it));
    let mut crowd = Crowd::open(&gateways, sessions(), &[]);
    let asked = crowd.say_all(|it| format!("before {it}"), false);
    assert!(crowd.answers(&asked, BOUND).iter().all(ended_well));
    let asked = crowd.say_all(|it| format!("during {it}\nslow 8 1000"), false);
    crowd.wait_until_heard("slow 1 ");

    let (killed, lost) = crowd.busiest(&names);
    let since = Instant::now();
    hosts[killed].kill_9();
    let again = crowd.say_all(|it| format!("after {it}"), true);
    let again = crowd.answers(&again, BOUND);
    assert!(again.iter().all(ended_well), "{again:?}");
    let slowest = again.iter().map(|(when, _)| *when - since).max().unwrap();
    let back = lost.iter().map(|it| again[*it].0 - since);
    let (soonest, latest) = (back.clone().min().unwrap(), back.max().unwrap());
    eprintln!(
        "{} of {} sessions were lost; the first was back after {soonest:?}, the last after \
         {latest:?}; the slowest of all sessions answered after {slowest:?}",
        lost.len(),
        crowd.talks.len()
    );
    assert!(slowest < BACK_WITHIN, "{slowest:?}");
    for (talk, (_, answer)) in crowd.answers(&asked, BOUND).iter().enumerate() {
        let code = answer["error"]["data"]["jackfield"]["code"].as_str();
        let expected = lost.contains(&talk).then_some("interrupted");
        assert_eq!(code, expected, "session {talk}: {answer}");
    }
    let mut expected: Vec<String> = (0..crowd.talks.len())
        .flat_map(|it| {
            [format!("before {it}"), format!("during {it}\nslow 8 1000"), format!("after {it}")]
        })
        .collect();
    expected.sort();
    assert_eq!(crowd.ran(), expected, "every prompt ran once");
    for (talk, transcript) in crowd.transcripts(&gateways).iter().enumerate() {
        let [prompted, ended, moved] =
            ["prompted", "ended", "moved"].map(|it| facts(transcript, it));
        assert_eq!((prompted, ended), (3, 3), "{transcript:?}");
        assert_eq!(moved, usize::from(lost.contains(&talk)), "{transcript:?}");
    }
    drop(crowd);
    gateways.iter_mut().for_each(Member::stop);
    hosts.iter_mut().filter(|it| it.daemon.is_some()).for_each(Member::stop);
}
