//! A host is cut off from the fleet and goes on running: it must not go on working.

use super::{
    HOSTS, Member,
    crowd::{BACK_WITHIN, BOUND, Crowd, ended_well, facts},
};
use jackfield_e2e::wait_for;
use jackfield_testkit::{nats::Cluster, netns::Network};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

const SESSIONS: usize = 12;

/// Where the lease is renewed once more after the trouble began, or the servers elect a leader first: two
/// leases, and five seconds.
const SLOWLY: Duration = Duration::from_secs(25);

#[test]
fn agents_of_a_host_that_is_cut_off_are_gone_before_others_have_their_sessions() {
    let Some(network) = Network::new(6) else { return };
    survives(&network, BACK_WITHIN, |_, node| {
        network.cut(node);
        vec![node]
    });
}

/// Who leads the list of hosts goes on taking what the host says, for a while, and nobody else hears of it.
#[test]
fn so_they_are_if_the_server_that_leads_is_cut_off_together_with_the_host() {
    let Some(network) = Network::new(6) else { return };
    survives(&network, SLOWLY, |cluster, node| {
        let leader = cluster.wait_for_leader_of(HOSTS);
        network.maroon(node);
        network.maroon(leader);
        vec![node, leader]
    });
}

/// What it says arrives, so that others think that it lives; it never hears so.
#[test]
fn so_they_are_if_the_host_is_heard_and_hears_nothing() {
    let Some(network) = Network::new(6) else { return };
    survives(&network, SLOWLY, |_, node| {
        network.deafen(node);
        vec![node]
    });
}

/// The busiest of three hosts gets into trouble in the middle of turns, and its sessions answer elsewhere
/// in time. The trouble says which nodes are to be healed.
#[expect(clippy::print_stderr, reason = "figures, for whoever runs it by hand")]
fn survives(
    network: &Network,
    within: Duration,
    trouble: impl FnOnce(&Cluster, usize) -> Vec<usize>,
) {
    let cluster = Cluster::start_in(network, &[0, 1, 2]);
    let names = ["one", "two", "three"];
    let on = |number| Member::start_on(network, 3 + number, &cluster, names[number]);
    let mut hosts = [0, 1, 2].map(on);
    let mut gateways = ["in", "out"].map(|it| Member::start(&cluster, "gateway", it));
    let witness = gateways[0].home.path().join("witness");
    // Agents that do not end because they are told to.
    let flags = ["--witness", witness.to_str().unwrap(), "--ignore-term", "--ignore-eof"];
    let mut crowd = Crowd::open(&gateways, SESSIONS, &flags);
    let asked = crowd.say_all(|it| format!("before {it}"), false);
    assert!(crowd.answers(&asked, BOUND).iter().all(ended_well));
    let asked = crowd.say_all(|it| format!("during {it}\nslow 100 100"), false);
    crowd.wait_until_heard("slow 1 ");
    let (cut, lost) = crowd.busiest(&names);

    let since = Instant::now();
    let troubled = trouble(&cluster, 3 + cut);
    let again = crowd.say_all(|it| format!("after {it}"), true);
    let again = crowd.answers(&again, BOUND);
    assert!(again.iter().all(ended_well), "{again:?}");
    let latest = lost.iter().map(|it| again[*it].0 - since).max().unwrap();
    assert!(latest < within, "{latest:?}");
    for (talk, (_, answer)) in crowd.answers(&asked, BOUND).iter().enumerate() {
        let code = answer["error"]["data"]["jackfield"]["code"].as_str();
        assert_eq!(code, lost.contains(&talk).then_some("interrupted"), "{answer}");
    }
    let gaps = gaps(&witness);
    assert_eq!(gaps.len(), lost.len(), "each has had two agents: {gaps:?}");
    let [least, most] = [gaps.iter().min(), gaps.iter().max()].map(|it| it.unwrap() / 1000);
    eprintln!(
        "{} sessions of {SESSIONS} were cut off; the last answered after {latest:?}; the next agent \
         had a session {least} to {most} ms after the one before was gone",
        lost.len()
    );

    for node in troubled {
        network.heal(node);
    }
    let healed = Instant::now();
    serves_again(&gateways[0], names[cut]);
    eprintln!("the host serves again {:?} after it is reached", healed.elapsed());
    let asked = crowd.say_all(|it| format!("healed {it}"), false);
    assert!(crowd.answers(&asked, BOUND).iter().all(ended_well));
    for (talk, transcript) in crowd.transcripts(&gateways).iter().enumerate() {
        let names = ["prompted", "ended", "moved"];
        let moved = usize::from(lost.contains(&talk));
        assert_eq!(names.map(|it| facts(transcript, it)), [4, 4, moved], "{transcript:?}");
    }
    drop(crowd);
    gateways.iter_mut().for_each(Member::stop);
    hosts.iter_mut().for_each(Member::stop);
}

/// Whether a host takes new sessions: it is tried until it does.
fn serves_again(gateway: &Member, host: &str) {
    let dir = gateway.home.path();
    let mut client = gateway.client(&gateway.home.fake_agent(&[]));
    let meta = json!({ "jackfield": { "labels": [format!("host={host}")] } });
    let wish = json!({ "cwd": dir, "mcpServers": [], "_meta": meta });
    let id = wait_for(&format!("a session on host `{host}`"), BOUND, || {
        let answer = client.ask("session/new", &wish);
        answer["result"]["sessionId"].as_str().map(str::to_owned)
    });
    assert_eq!(client.prompt(&id, "hello"), "end_turn");
}

/// For each session that a second agent got: the microseconds for which nobody had it. Panics if two
/// agents were alive that had the same one.
fn gaps(witness: &Path) -> Vec<i64> {
    let text = fs::read_to_string(witness).expect("agents write it");
    let mut last_alive: BTreeMap<&str, i64> = BTreeMap::new();
    let mut had: BTreeMap<&str, Vec<(i64, &str)>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.last().and_then(|it| it.parse().ok()).expect("a time");
        last_alive.insert(words[0], at);
        if let ["has", session] = words[1..words.len() - 1] {
            had.entry(session).or_default().push((at, words[0]));
        }
    }
    let mut gaps = Vec::new();
    for (session, mut agents) in had {
        agents.sort_unstable();
        for pair in agents.windows(2) {
            let gap = pair[1].0 - last_alive[pair[0].1];
            assert!(0 < gap, "two agents had {session} at the same time: {pair:?}, {gap} us");
            gaps.push(gap);
        }
    }
    gaps
}
