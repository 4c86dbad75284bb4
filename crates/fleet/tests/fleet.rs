//! Hosts on a real cluster: names, leases, questions, legs.

use bytes::Bytes;
use futures_util::StreamExt as _;
use jackfield_fleet::{
    Answer, Directory, Entry, HostName, Lease, LeaseError, LeaseEvent, Link, LinkError, Question,
    answer_leg, open_leg,
};
use jackfield_nats_access::NatsServers;
use jackfield_testkit::nats::Cluster;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    runtime::{self, Handle},
    sync::{mpsc, oneshot},
};

const SOON: Duration = Duration::from_secs(30);
/// Somebody who was not heard for so long is dead.
const LEASE: Duration = Duration::from_secs(10);

async fn link(cluster: &Cluster) -> Link {
    let mut link = Link::connect(&NatsServers::on_loopback(cluster.urls()), "fleet")
        .await
        .expect("the cluster is well");
    link.prepare(cluster.servers().len()).await.expect("the cluster is well");
    link
}

fn entry(name: &str, incarnation: &str) -> Entry {
    Entry {
        host: HostName { name: name.into(), incarnation: incarnation.into() },
        version: "0".into(),
        shared: Vec::new(),
        labels: BTreeMap::new(),
        agents: vec!["fake".into()],
        free: None,
        sessions: 0,
        live: 0,
        tenants: BTreeMap::new(),
        draining: false,
        gone: false,
    }
}

async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, work).await.unwrap_or_else(|_| panic!("no {what} in {SOON:?}"))
}

#[tokio::test]
async fn a_host_is_listed_while_it_lives_and_gone_when_its_lease_is_over() {
    let cluster = Cluster::start(3);
    let (events, mut heard) = mpsc::channel(8);
    let host = entry("one", "a");
    let lease = Lease::take(link(&cluster).await, host.clone(), events.clone()).await.unwrap();
    let directory = Directory::open(link(&cluster).await).await;
    let mut hosts = directory.hosts();
    soon("host", hosts.wait_for(|it| it.len() == 1)).await.unwrap();
    let knows = directory.knows();
    assert!(
        knows(&host.host) && !knows(&HostName { incarnation: "b".into(), ..host.host.clone() })
    );
    lease.update(|it| it.draining = true);
    soon("change", hosts.wait_for(|it| it[0].draining)).await.unwrap();

    // Nobody takes the name of the living.
    let rival = Lease::take(link(&cluster).await, entry("one", "b"), events).await;
    assert!(matches!(rival, Err(LeaseError::Taken { .. })), "{rival:?}");
    drop(lease);
    let since = Instant::now();
    soon("end", hosts.wait_for(|it| it.is_empty())).await.unwrap();
    assert!(LEASE < since.elapsed() + Duration::from_secs(4), "dead after {:?}", since.elapsed());
    assert!(!knows(&host.host));
    assert!(heard.try_recv().is_err(), "it was never cut off");

    // Who gives its name back is gone at once, and the name is free.
    let (events, _heard) = mpsc::channel(8);
    let lease = Lease::take(link(&cluster).await, entry("two", "a"), events.clone()).await.unwrap();
    soon("host", hosts.wait_for(|it| it.len() == 1)).await.unwrap();
    lease.give_back().await;
    let since = Instant::now();
    soon("end", hosts.wait_for(|it| it.is_empty())).await.unwrap();
    let again = Lease::take(link(&cluster).await, entry("two", "b"), events).await;
    assert!(again.is_ok() && since.elapsed() < LEASE, "{again:?} after {:?}", since.elapsed());
}

#[tokio::test]
async fn a_host_that_is_cut_off_knows_it_before_its_lease_is_over() {
    let mut cluster = Cluster::start(3);
    let (events, mut heard) = mpsc::channel(8);
    let link = link(&cluster).await;
    let _lease = Lease::take(link, entry("one", "a"), events).await.unwrap();
    let since = Instant::now();
    // Who leads the list is left with it, alone: it goes on answering for a while, and what it takes is
    // taken by nobody else.
    let leader = cluster.wait_for_leader_of("fleet-hosts");
    let others = [1, 2].map(|it| (leader + it) % 3);
    for it in others {
        cluster.kill_9(it);
    }
    assert_eq!(soon("word", heard.recv()).await, Some(LeaseEvent::CutOff));
    assert!(since.elapsed() < LEASE, "{:?}", since.elapsed());
    for it in others {
        cluster.restart(it);
    }
    cluster.wait_until_well();
    assert_eq!(soon("word", heard.recv()).await, Some(LeaseEvent::Back));
}

#[tokio::test]
async fn a_host_is_heard_again_when_all_servers_were_away_at_once() {
    let mut cluster = Cluster::start(3);
    let (events, mut heard) = mpsc::channel(8);
    let lease = Lease::take(link(&cluster).await, entry("one", "a"), events).await.unwrap();
    let directory = Directory::open(link(&cluster).await).await;
    let mut hosts = directory.hosts();
    // It has been said so often that a list that begins anew would be taken for an old one.
    for number in 1..=10 {
        lease.update(|it| it.sessions = number);
        soon("host", hosts.wait_for(|it| it.len() == 1 && it[0].sessions == number)).await.unwrap();
    }
    (0..3).for_each(|it| cluster.kill_9(it));
    assert_eq!(soon("word", heard.recv()).await, Some(LeaseEvent::CutOff));
    (0..3).for_each(|it| cluster.restart(it));
    cluster.wait_until_well();
    assert_eq!(soon("word", heard.recv()).await, Some(LeaseEvent::Back));
    lease.update(|it| it.sessions = 99);
    soon("list", hosts.wait_for(|it| it.len() == 1 && it[0].sessions == 99)).await.unwrap();
}

/// An election may take longer than a lease.
#[tokio::test]
async fn a_host_outlives_the_leader_of_the_list_of_hosts() {
    let mut cluster = Cluster::start(3);
    let (events, mut heard) = mpsc::channel(8);
    let lease = Lease::take(link(&cluster).await, entry("one", "a"), events).await.unwrap();
    let directory = Directory::open(link(&cluster).await).await;
    let mut hosts = directory.hosts();
    // The server that was read from may not have had it yet.
    soon("host", hosts.wait_for(|it| it.len() == 1)).await.unwrap();
    for number in 0..3 {
        let leader = cluster.wait_for_leader_of("fleet-hosts");
        cluster.kill_9(leader);
        // Said when there is a leader again, and heard by who was patient.
        lease.update(|it| it.sessions = number);
        let known = hosts.wait_for(|it| it.is_empty() || it[0].sessions == number);
        assert_eq!(soon("list", known).await.unwrap().len(), 1, "it was called dead");
        assert!(heard.try_recv().is_err(), "it was cut off");
        cluster.restart(leader);
        cluster.wait_until_well();
    }
}

/// Both ends of a leg, through two servers.
async fn leg(cluster: &Cluster) -> (UnixStream, UnixStream) {
    leg_to(cluster, &Handle::current()).await
}

/// One whose far side is elsewhere, and can be gone.
async fn leg_to(cluster: &Cluster, elsewhere: &Handle) -> (UnixStream, UnixStream) {
    let ours = Link::connect(&NatsServers::on_loopback(cluster.urls()[..1].to_vec()), "fleet")
        .await
        .unwrap();
    let servers = NatsServers::on_loopback(cluster.urls()[2..].to_vec());
    let theirs = async move { Link::connect(&servers, "fleet").await.unwrap() };
    let theirs = elsewhere.spawn(theirs).await.unwrap();
    let host = entry("one", "a").host;
    let mut questions = theirs.questions_to(&host).await.unwrap();
    let (gateway, inner) = UnixStream::pair().unwrap();
    let (far, far_inner) = UnixStream::pair().unwrap();
    let answering = async move {
        let asked = soon("question", questions.next()).await.unwrap();
        let Question::Leg(id) = &asked.question else { panic!("{asked:?}") };
        answer_leg(&theirs, id, far_inner).await.unwrap();
        asked.answer(&Answer::Done).await;
        // A host stays connected.
        std::future::pending::<()>().await;
    };
    elsewhere.spawn(answering);
    let tell = async |id: String| {
        // A server may not know yet that somebody listens elsewhere.
        let since = Instant::now();
        loop {
            match ours.ask(&host, &Question::Leg(id.clone()), SOON).await {
                Ok(_) => return Ok::<_, LinkError>(()),
                Err(error) => assert!(since.elapsed() < SOON, "{error}"),
            }
        }
    };
    open_leg(&ours, inner, tell).await.unwrap();
    (gateway, far)
}

#[tokio::test]
async fn a_leg_carries_both_ways_and_a_slow_reader_slows_the_writer() {
    let cluster = Cluster::start(3);
    let (mut near, mut far) = leg(&cluster).await;
    near.write_all(b"hello").await.unwrap();
    let mut hello = [0; 5];
    soon("word", far.read_exact(&mut hello)).await.unwrap();
    assert_eq!(&hello, b"hello");

    // Far more than may be on its way: the writer waits, and nothing is lost.
    let sent: Vec<u8> = (0..8_u32 << 20).map(|it| (it % 251) as u8).collect();
    let wanted = sent.clone();
    let (mut from, mut to) = far.into_split();
    let writing = tokio::spawn(async move { to.write_all(&sent).await.map(|()| to) });
    let stuck = tokio::time::timeout(Duration::from_secs(2), async {
        loop {
            if writing.is_finished() {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    assert!(stuck.await.is_err(), "all of it was taken, and nobody has read");
    let mut received = vec![0; wanted.len()];
    soon("bytes", near.read_exact(&mut received)).await.unwrap();
    assert!(received == wanted);
    let to = soon("end of writing", writing).await.unwrap().unwrap();

    // One end is closed: so is the other.
    drop(to);
    drop(near);
    soon("end", from.read(&mut [0; 1])).await.unwrap();
}

/// Longer than a leg bears that nobody is heard.
const LONG: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_leg_on_which_only_one_side_speaks_lives_on() {
    let cluster = Cluster::start(3);
    let (mut near, mut far) = leg(&cluster).await;
    let mut word = [0; 4];
    let begin = Instant::now();
    // Often enough that whoever listens never has reason to ask whether anybody is there.
    while begin.elapsed() < LONG {
        far.write_all(b"word").await.unwrap();
        soon("word", near.read_exact(&mut word)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Half of that.
const AT_ONCE: Duration = Duration::from_secs(6);

#[tokio::test]
async fn whoever_has_missed_something_ends_the_leg_for_both_sides() {
    let cluster = Cluster::start(3);
    let spy = async_nats::connect(cluster.urls()[1].clone()).await.unwrap();
    let mut to_host = spy.subscribe("fleet.leg.*.h").await.unwrap();
    spy.flush().await.unwrap();
    let (mut near, mut far) = leg(&cluster).await;
    near.write_all(b"hello").await.unwrap();
    soon("word", far.read_exact(&mut [0; 5])).await.unwrap();
    let subject = soon("message", to_host.next()).await.unwrap().subject;
    // As if seven bytes had been sent, two of which were lost.
    let ping: Bytes = [&[3][..], &7_u64.to_be_bytes()].concat().into();
    let far_ends = async {
        // A server may not know yet that somebody listens elsewhere.
        loop {
            spy.publish(subject.clone(), ping.clone()).await.unwrap();
            let mut byte = [0];
            let read = tokio::time::timeout(Duration::from_millis(100), far.read(&mut byte));
            if let Ok(read) = read.await {
                return read.unwrap();
            }
        }
    };
    assert_eq!(soon("end", far_ends).await, 0);
    let since = Instant::now();
    assert_eq!(soon("end", near.read(&mut [0; 1])).await.unwrap(), 0);
    assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_leg_whose_other_side_is_gone_without_a_word_ends_soon() {
    let cluster = Cluster::start(3);
    let (end, ended) = oneshot::channel::<()>();
    let elsewhere = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = elsewhere.handle().clone();
    let machine = std::thread::spawn(move || elsewhere.block_on(ended));
    let (mut near, mut far) = leg_to(&cluster, &handle).await;
    near.write_all(b"hello").await.unwrap();
    soon("word", far.read_exact(&mut [0; 5])).await.unwrap();
    drop(end);
    machine.join().unwrap().unwrap_err();
    let since = Instant::now();
    assert_eq!(soon("end", near.read(&mut [0; 1])).await.unwrap(), 0);
    assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
}
