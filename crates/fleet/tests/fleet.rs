//! Tests of hosts on a real cluster: names, leases, requests and host connections.

use bytes::Bytes;
use futures_util::StreamExt as _;
use jackfield_fleet::{
    FleetConnection, FleetConnectionError, HostDirectory, HostEntry, HostInstance, HostLease,
    HostRequest, HostResponse, LeaseError, LeaseEvent, accept_host_connection,
    open_host_connection,
};
use jackfield_nats_access::NatsServers;
use jackfield_test_support::nats::Cluster;
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

const TIMEOUT: Duration = Duration::from_secs(30);
/// A host whose lease was not renewed for this long is dead.
const LEASE: Duration = Duration::from_secs(10);

async fn connect(cluster: &Cluster) -> FleetConnection {
    let mut link = FleetConnection::connect(&NatsServers::on_loopback(cluster.urls()), "fleet")
        .await
        .expect("the cluster works");
    link.create_streams(cluster.servers().len()).await.expect("the cluster works");
    link
}

fn new_entry(name: &str, incarnation: &str) -> HostEntry {
    HostEntry {
        host: HostInstance { name: name.into(), incarnation: incarnation.into() },
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

async fn within_timeout<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or_else(|_| panic!("no {what} in {TIMEOUT:?}"))
}

#[tokio::test]
async fn host_is_listed_until_its_lease_expires_or_is_released() {
    let cluster = Cluster::start(3);
    let (events, mut events_rx) = mpsc::channel(8);
    let host = new_entry("one", "a");
    let lease =
        HostLease::acquire(connect(&cluster).await, host.clone(), events.clone()).await.unwrap();
    let directory = HostDirectory::open(connect(&cluster).await).await;
    let mut hosts = directory.hosts();
    within_timeout("host", hosts.wait_for(|it| it.len() == 1)).await.unwrap();
    let is_alive = directory.liveness_check();
    assert!(
        is_alive(&host.host)
            && !is_alive(&HostInstance { incarnation: "b".into(), ..host.host.clone() })
    );
    lease.update_entry(|it| it.draining = true);
    within_timeout("change", hosts.wait_for(|it| it[0].draining)).await.unwrap();

    // The name of a live host cannot be acquired.
    let second = HostLease::acquire(connect(&cluster).await, new_entry("one", "b"), events).await;
    assert!(matches!(second, Err(LeaseError::NameInUse { .. })), "{second:?}");
    drop(lease);
    let since = Instant::now();
    within_timeout("end", hosts.wait_for(|it| it.is_empty())).await.unwrap();
    assert!(LEASE < since.elapsed() + Duration::from_secs(4), "dead after {:?}", since.elapsed());
    assert!(!is_alive(&host.host));
    assert!(events_rx.try_recv().is_err(), "the lease was never lost");

    // A host that releases its lease is removed at once, and its name is free.
    let (events, _events_rx) = mpsc::channel(8);
    let lease = HostLease::acquire(connect(&cluster).await, new_entry("two", "a"), events.clone())
        .await
        .unwrap();
    within_timeout("host", hosts.wait_for(|it| it.len() == 1)).await.unwrap();
    lease.release().await;
    let since = Instant::now();
    within_timeout("end", hosts.wait_for(|it| it.is_empty())).await.unwrap();
    let again = HostLease::acquire(connect(&cluster).await, new_entry("two", "b"), events).await;
    assert!(again.is_ok() && since.elapsed() < LEASE, "{again:?} after {:?}", since.elapsed());
}

#[tokio::test]
async fn disconnected_host_detects_it_before_its_lease_expires() {
    let mut cluster = Cluster::start(3);
    let (events, mut events_rx) = mpsc::channel(8);
    let link = connect(&cluster).await;
    let _lease = HostLease::acquire(link, new_entry("one", "a"), events).await.unwrap();
    let since = Instant::now();
    // Only the leader of the list is left. It answers for a while, but cannot replicate new
    // entries.
    let leader = cluster.wait_for_leader_of("fleet-hosts");
    let others = [1, 2].map(|it| (leader + it) % 3);
    for it in others {
        cluster.kill_9(it);
    }
    assert_eq!(within_timeout("word", events_rx.recv()).await, Some(LeaseEvent::Lost));
    assert!(since.elapsed() < LEASE, "{:?}", since.elapsed());
    for it in others {
        cluster.restart(it);
    }
    cluster.wait_until_well();
    assert_eq!(within_timeout("word", events_rx.recv()).await, Some(LeaseEvent::Regained));
}

#[tokio::test]
async fn host_is_listed_again_after_all_servers_were_down_at_once() {
    let mut cluster = Cluster::start(3);
    let (events, mut events_rx) = mpsc::channel(8);
    let lease =
        HostLease::acquire(connect(&cluster).await, new_entry("one", "a"), events).await.unwrap();
    let directory = HostDirectory::open(connect(&cluster).await).await;
    let mut hosts = directory.hosts();
    // So many entries that a new list would be mistaken for an outdated one.
    for number in 1..=10 {
        lease.update_entry(|it| it.sessions = number);
        within_timeout("host", hosts.wait_for(|it| it.len() == 1 && it[0].sessions == number))
            .await
            .unwrap();
    }
    (0..3).for_each(|it| cluster.kill_9(it));
    assert_eq!(within_timeout("word", events_rx.recv()).await, Some(LeaseEvent::Lost));
    (0..3).for_each(|it| cluster.restart(it));
    cluster.wait_until_well();
    assert_eq!(within_timeout("word", events_rx.recv()).await, Some(LeaseEvent::Regained));
    lease.update_entry(|it| it.sessions = 99);
    within_timeout("list", hosts.wait_for(|it| it.len() == 1 && it[0].sessions == 99))
        .await
        .unwrap();
}

/// An election may take longer than a lease.
#[tokio::test]
async fn host_survives_the_loss_of_the_leader_of_the_host_list() {
    let mut cluster = Cluster::start(3);
    let (events, mut events_rx) = mpsc::channel(8);
    let lease =
        HostLease::acquire(connect(&cluster).await, new_entry("one", "a"), events).await.unwrap();
    let directory = HostDirectory::open(connect(&cluster).await).await;
    let mut hosts = directory.hosts();
    // The replica that was read may not have had the entry yet.
    within_timeout("host", hosts.wait_for(|it| it.len() == 1)).await.unwrap();
    for number in 0..3 {
        let leader = cluster.wait_for_leader_of("fleet-hosts");
        cluster.kill_9(leader);
        // The update succeeds once there is a leader again.
        lease.update_entry(|it| it.sessions = number);
        let known = hosts.wait_for(|it| it.is_empty() || it[0].sessions == number);
        assert_eq!(
            within_timeout("list", known).await.unwrap().len(),
            1,
            "the host was considered dead"
        );
        assert!(events_rx.try_recv().is_err(), "the lease was lost");
        cluster.restart(leader);
        cluster.wait_until_well();
    }
}

/// Opens a host connection through two servers. Returns both ends.
async fn open_connection(cluster: &Cluster) -> (UnixStream, UnixStream) {
    open_connection_with(cluster, &Handle::current()).await
}

/// Opens a host connection whose host end runs on another runtime, which can be stopped.
async fn open_connection_with(cluster: &Cluster, elsewhere: &Handle) -> (UnixStream, UnixStream) {
    let gateway_connection =
        FleetConnection::connect(&NatsServers::on_loopback(cluster.urls()[..1].to_vec()), "fleet")
            .await
            .unwrap();
    let servers = NatsServers::on_loopback(cluster.urls()[2..].to_vec());
    let host_connection = async move { FleetConnection::connect(&servers, "fleet").await.unwrap() };
    let host_connection = elsewhere.spawn(host_connection).await.unwrap();
    let host = new_entry("one", "a").host;
    let mut requests = host_connection.listen_for_requests(&host).await.unwrap();
    let (gateway, inner) = UnixStream::pair().unwrap();
    let (far, far_inner) = UnixStream::pair().unwrap();
    let answering = async move {
        let asked = within_timeout("question", requests.next_request()).await.unwrap();
        let HostRequest::OpenConnection(id) = &asked.request else { panic!("{asked:?}") };
        accept_host_connection(&host_connection, id, far_inner).await.unwrap();
        asked.respond(&HostResponse::Done).await;
        // Keeps the connection of the host open.
        std::future::pending::<()>().await;
    };
    elsewhere.spawn(answering);
    let announce = async |id: String| {
        // A server may not know the subscription on another server yet.
        let since = Instant::now();
        loop {
            match gateway_connection
                .send_request(&host, &HostRequest::OpenConnection(id.clone()), TIMEOUT)
                .await
            {
                Ok(_) => return Ok::<_, FleetConnectionError>(()),
                Err(error) => assert!(since.elapsed() < TIMEOUT, "{error}"),
            }
        }
    };
    open_host_connection(&gateway_connection, inner, announce).await.unwrap();
    (gateway, far)
}

#[tokio::test]
async fn host_connection_relays_both_directions_with_flow_control() {
    let cluster = Cluster::start(3);
    let (mut near, mut far) = open_connection(&cluster).await;
    near.write_all(b"hello").await.unwrap();
    let mut hello = [0; 5];
    within_timeout("word", far.read_exact(&mut hello)).await.unwrap();
    assert_eq!(&hello, b"hello");

    // Far more than the window: the writer waits, and nothing is lost.
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
    assert!(stuck.await.is_err(), "all bytes were accepted although none was read");
    let mut received = vec![0; wanted.len()];
    within_timeout("bytes", near.read_exact(&mut received)).await.unwrap();
    assert!(received == wanted);
    let to = within_timeout("end of writing", writing).await.unwrap().unwrap();

    // Closing one end closes the other.
    drop(to);
    drop(near);
    within_timeout("end", from.read(&mut [0; 1])).await.unwrap();
}

/// Longer than a host connection tolerates silence.
const LONG: Duration = Duration::from_secs(15);

#[tokio::test]
async fn host_connection_stays_open_while_only_one_side_sends() {
    let cluster = Cluster::start(3);
    let (mut near, mut far) = open_connection(&cluster).await;
    let mut word = [0; 4];
    let begin = Instant::now();
    // Often enough that the receiving side never has to ping.
    while begin.elapsed() < LONG {
        far.write_all(b"word").await.unwrap();
        within_timeout("word", near.read_exact(&mut word)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Half of the tolerated silence.
const PROMPT_END: Duration = Duration::from_secs(6);

#[tokio::test]
async fn lost_message_ends_the_host_connection_on_both_sides() {
    let cluster = Cluster::start(3);
    let spy = async_nats::connect(cluster.urls()[1].clone()).await.unwrap();
    let mut to_host = spy.subscribe("fleet.relay.*.h").await.unwrap();
    spy.flush().await.unwrap();
    let (mut near, mut far) = open_connection(&cluster).await;
    near.write_all(b"hello").await.unwrap();
    within_timeout("word", far.read_exact(&mut [0; 5])).await.unwrap();
    let subject = within_timeout("message", to_host.next()).await.unwrap().subject;
    // A ping as if seven bytes had been sent, two of which were lost.
    let ping: Bytes = [&[3][..], &7_u64.to_be_bytes()].concat().into();
    let far_ends = async {
        // A server may not know the subscription on another server yet.
        loop {
            spy.publish(subject.clone(), ping.clone()).await.unwrap();
            let mut byte = [0];
            let read = tokio::time::timeout(Duration::from_millis(100), far.read(&mut byte));
            if let Ok(read) = read.await {
                return read.unwrap();
            }
        }
    };
    assert_eq!(within_timeout("end", far_ends).await, 0);
    let since = Instant::now();
    assert_eq!(within_timeout("end", near.read(&mut [0; 1])).await.unwrap(), 0);
    assert!(since.elapsed() < PROMPT_END, "{:?}", since.elapsed());
}

#[tokio::test]
async fn host_connection_ends_soon_after_the_other_side_disappears() {
    let cluster = Cluster::start(3);
    let (end, ended) = oneshot::channel::<()>();
    let elsewhere = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = elsewhere.handle().clone();
    let machine = std::thread::spawn(move || elsewhere.block_on(ended));
    let (mut near, mut far) = open_connection_with(&cluster, &handle).await;
    near.write_all(b"hello").await.unwrap();
    within_timeout("word", far.read_exact(&mut [0; 5])).await.unwrap();
    drop(end);
    machine.join().unwrap().unwrap_err();
    let since = Instant::now();
    assert_eq!(within_timeout("end", near.read(&mut [0; 1])).await.unwrap(), 0);
    assert!(since.elapsed() < PROMPT_END, "{:?}", since.elapsed());
}
