//! A cluster that loses servers and has them back.

use jackfield_testkit::nats::{Cluster, Server};
use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

/// An election takes some four to nine seconds.
const BOUND: Duration = Duration::from_secs(40);

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < BOUND, "waited {BOUND:?} in vain for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// What it says to a client that comes.
fn greeting(server: &Server) -> String {
    let stream = TcpStream::connect(server.url().trim_start_matches("nats://")).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_server_alone_has_a_journal_and_takes_eight_megabytes() {
    let cluster = Cluster::start(1);
    assert_eq!(cluster.urls().len(), 1);
    assert_eq!(cluster.meta_leader(), Some(0));
    let greeting = greeting(&cluster.servers()[0]);
    assert!(greeting.contains(r#""jetstream":true"#), "{greeting}");
    assert!(greeting.contains(r#""max_payload":8388608"#), "{greeting}");
    assert!(!greeting.contains("auth_required"), "{greeting}");
}

#[test]
fn a_cluster_of_three_loses_its_leader_and_has_another() {
    let mut cluster = Cluster::start(3);
    let urls = cluster.urls();
    assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), 3);
    let first = cluster.meta_leader().expect("it has started");
    let name = cluster.servers()[first].name();
    assert_eq!(cluster.number_of(name), Some(first));
    cluster.kill_9(first);
    assert!(!cluster.servers()[first].is_running());
    wait_until("another leader", || cluster.meta_leader().is_some());
    assert_ne!(cluster.meta_leader(), Some(first));
    cluster.restart(first);
    cluster.wait_until_well();
    assert_eq!(cluster.urls(), urls, "it is where it was");
    assert_eq!(cluster.servers().iter().filter(|it| it.is_healthy()).count(), 3);
}

#[test]
fn most_of_a_cluster_must_be_there() {
    let mut cluster = Cluster::start(3);
    let leader = cluster.meta_leader().expect("it has started");
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    for number in others {
        cluster.kill_9(number);
    }
    assert_eq!(cluster.meta_leader(), None, "one of three decides nothing, whatever it believes");
    cluster.restart(others[0]);
    cluster.wait_until_well();
    assert_eq!(cluster.servers().iter().filter(|it| it.is_running()).count(), 2);
}

#[test]
fn a_server_that_is_told_to_end_says_good_bye() {
    let mut cluster = Cluster::start(1);
    let (before, url) = (cluster.servers()[0].pid(), cluster.urls());
    cluster.stop(0);
    assert_eq!(cluster.servers()[0].pid(), None);
    assert!(cluster.servers()[0].said().contains("Server Exiting"));
    assert_eq!(cluster.meta_leader(), None);
    cluster.restart(0);
    assert_ne!(cluster.servers()[0].pid(), before);
    assert_eq!(cluster.urls(), url);
    cluster.wait_until_well();
}

#[test]
fn a_lame_duck_sends_its_clients_away_and_ends() {
    let mut cluster = Cluster::start(1);
    let mut stream = TcpStream::connect(cluster.urls()[0].trim_start_matches("nats://")).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    // A client that knows news when it hears them; others are told nothing.
    stream.write_all(b"CONNECT {\"protocol\":1,\"verbose\":false}\r\nPING\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|it| it == "PONG"), "it is connected");
    cluster.lame_duck(0);
    assert!(lines.any(|it| it.contains(r#""ldm":true"#)), "it is told to look elsewhere");
    cluster.wait_until_gone(0);
    assert!(lines.all(|it| it.starts_with("INFO ") || it.starts_with("-ERR ")), "and that is all");
    assert!(!cluster.servers()[0].is_running());
}
