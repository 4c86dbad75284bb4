//! Tests of many hosts on one cell: the owner of a stream, and the adoption of a dead owner's
//! streams.

use jackfield_journal::{AdoptError, AppendError, AppendRequest, CellAddress, CellConfig, Journal};
use jackfield_nats_access::NatsServers;
use jackfield_test_support::nats::Cluster;

fn connect_host(cluster: &Cluster, owner: &str) -> Journal {
    let cell = CellConfig { name: "owners".into(), shards: 2, replicas: cluster.servers().len() };
    let (servers, owner) = (NatsServers::on_loopback(cluster.urls()), Some(owner.to_owned()));
    Journal::connect(CellAddress { servers, cell, owner }).expect("the cluster works")
}

fn append_event(journal: &Journal, epoch: u64, first: u64) -> Result<u64, AppendError> {
    let (stream, body, summary) = ("s".into(), "{}".into(), Some("summary".into()));
    journal
        .append_batch(&[AppendRequest { stream, epoch, first, count: 1, body, summary }])
        .remove(0)
}

fn list_owned(journal: &Journal, owner: &str) -> Vec<String> {
    let ownership = journal.stream_ownership().expect("a NATS journal has owners");
    let names = ownership.list_owned_by(owner).expect("the cluster works");
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn stream_is_adopted_only_from_a_dead_owner_or_after_a_release() {
    let cluster = Cluster::start(3);
    let (one, two) = (connect_host(&cluster, "one/1"), connect_host(&cluster, "two/1"));
    let ownership = two.stream_ownership().unwrap();
    assert!(matches!(ownership.adopt_stream("s", |_| false), Err(AdoptError::Missing { .. })));

    let epoch = one.claim_stream("s").unwrap().epoch;
    append_event(&one, epoch, 1).unwrap();
    assert_eq!(ownership.last_writer("s").unwrap().owner(), Some("one/1"));
    assert_eq!(list_owned(&two, "one/1"), ["s"]);
    let Err(AdoptError::Owned { owner, .. }) = ownership.adopt_stream("s", |it| it == "one/1")
    else {
        panic!("the stream was adopted from a live owner")
    };
    assert_eq!(owner, "one/1");
    append_event(&one, epoch, 2).unwrap();

    // The owner is considered dead; it detects that with its next append.
    let adopted = ownership.adopt_stream("s", |_| false).unwrap();
    assert_eq!((adopted.claim.head, adopted.from.as_deref()), (2, Some("one/1")));
    assert_eq!(&adopted.summary[..], b"summary");
    assert!(matches!(append_event(&one, epoch, 3), Err(AppendError::Fenced { .. })));
    append_event(&two, adopted.claim.epoch, 3).unwrap();
    assert_eq!(
        (list_owned(&one, "two/1"), list_owned(&one, "two")),
        (vec!["s".into()], vec!["s".into()])
    );
    assert_eq!(list_owned(&two, "one/1"), [""; 0], "the list of the old owner is empty");

    // Any host may adopt a released stream, and the host that released it is fenced.
    ownership.release_stream("s", adopted.claim.epoch).unwrap();
    let last = ownership.last_writer("s").unwrap();
    assert_eq!((last.owner(), last.name.as_deref()), (None, Some("two/1")));
    assert_eq!(list_owned(&one, "two/1"), [""; 0]);
    let late = append_event(&two, adopted.claim.epoch, 4);
    assert!(matches!(late, Err(AppendError::Fenced { .. })), "{late:?}");
    let readopted = one.stream_ownership().unwrap().adopt_stream("s", |_| true).unwrap();
    assert_eq!((readopted.claim.head, readopted.from), (3, None));

    // A late release of an old epoch has no effect.
    ownership.release_stream("s", adopted.claim.epoch).unwrap();
    append_event(&one, readopted.claim.epoch, 4).unwrap();
    assert_eq!(one.read_events("s", 0, 100, 10_000).unwrap().len(), 4);

    // A deleted stream is on no list, and its writer stays fenced.
    assert_eq!(list_owned(&two, "one/1"), ["s"]);
    one.delete_stream("s").unwrap();
    assert_eq!(list_owned(&two, "one/1"), [""; 0]);
    assert!(matches!(
        append_event(&one, readopted.claim.epoch, 5),
        Err(AppendError::Fenced { .. })
    ));
    assert!(matches!(ownership.last_writer("s"), Err(AdoptError::Missing { .. })));
}

#[test]
fn previous_owner_is_reported_until_the_new_owner_has_appended() {
    let cluster = Cluster::start(1);
    let [one, two, three] = ["one/1", "two/1", "three/1"].map(|it| connect_host(&cluster, it));
    let adopt = |by: &Journal| by.stream_ownership().unwrap().adopt_stream("s", |_| false).unwrap();
    append_event(&one, one.claim_stream("s").unwrap().epoch, 1).unwrap();

    // The second host may have failed before it could append.
    assert_eq!(adopt(&two).from.as_deref(), Some("one/1"));
    assert_eq!(adopt(&two).from.as_deref(), Some("one/1"));
    let adopted = adopt(&three);
    assert_eq!(adopted.from.as_deref(), Some("one/1"));
    for dead in ["one/1", "two/1"] {
        assert_eq!(list_owned(&one, dead), [""; 0]);
    }
    append_event(&three, adopted.claim.epoch, 2).unwrap();
    assert_eq!(adopt(&two).from.as_deref(), Some("three/1"));
    assert_eq!(adopt(&three).from, None, "the stream returns to its last owner");
}

#[test]
fn pages_list_every_stream_once_most_recently_written_first() {
    let cluster = Cluster::start(1);
    let journal = connect_host(&cluster, "one/1");
    let names: Vec<String> = (0..25).map(|it| format!("p-{it:02}")).collect();
    let write = |name: &str, round: u64| {
        let epoch = journal.claim_stream(name).unwrap().epoch;
        let (stream, first) = (name.into(), round + 1);
        let summary = Some(format!("{name} {round}").into());
        let append = AppendRequest { stream, epoch, first, count: 1, body: "{}".into(), summary };
        journal.append_batch(&[append]).remove(0).unwrap();
    };
    for round in 0..4 {
        for name in &names {
            write(name, round);
        }
    }
    journal.delete_stream("p-07").unwrap();
    let ownership = journal.stream_ownership().unwrap();
    let end = ownership.list_page(None, 7).unwrap().end;
    assert!(ownership.list_since(end).unwrap().is_empty());
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = ownership.list_page(before, 7).unwrap();
        assert!(page.streams.len() <= 7);
        for (name, summary) in page.streams {
            assert_eq!(summary, format!("{name} 3"));
            listed.push(name.to_string());
        }
        before = page.before;
        if before.is_none() {
            break;
        }
    }
    let wanted: Vec<String> = names.into_iter().rev().filter(|it| it != "p-07").collect();
    assert_eq!(listed, wanted);
    write("p-03", 4);
    let since: Vec<_> = ownership.list_since(end).unwrap().into_iter().collect();
    assert_eq!(since, [("p-03".into(), "p-03 4".into())], "it was written after the first page");
}
