//! Many hosts on one cell: whose a stream is, and what becomes of it when its owner is gone.

use jackfield_journal::{Address, AdoptError, Append, AppendError, Cell, Journal};
use jackfield_nats_access::NatsServers;
use jackfield_testkit::nats::Cluster;

fn host(cluster: &Cluster, owner: &str) -> Journal {
    let cell = Cell { name: "owners".into(), shards: 2, replicas: cluster.servers().len() };
    let (servers, owner) = (NatsServers::on_loopback(cluster.urls()), Some(owner.to_owned()));
    Journal::connect(Address { servers, cell, owner }).expect("the cluster is well")
}

fn append(journal: &Journal, epoch: u64, first: u64) -> Result<u64, AppendError> {
    let (stream, body, summary) = ("s".into(), "{}".into(), Some("summary".into()));
    journal.append(&[Append { stream, epoch, first, count: 1, body, summary }]).remove(0)
}

fn owned(journal: &Journal, owner: &str) -> Vec<String> {
    let owners = journal.owners().expect("it is shared");
    let names = owners.owned_by(owner).expect("the cluster is well");
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_stream_is_adopted_only_from_the_dead_or_from_nobody() {
    let cluster = Cluster::start(3);
    let (one, two) = (host(&cluster, "one/1"), host(&cluster, "two/1"));
    let owners = two.owners().unwrap();
    assert!(matches!(owners.adopt("s", |_| false), Err(AdoptError::Missing { .. })));

    let epoch = one.claim("s").unwrap().epoch;
    append(&one, epoch, 1).unwrap();
    assert_eq!(owners.last_writer("s").unwrap().owner(), Some("one/1"));
    assert_eq!(owned(&two, "one/1"), ["s"]);
    let Err(AdoptError::Owned { owner, .. }) = owners.adopt("s", |it| it == "one/1") else {
        panic!("it was taken from the living")
    };
    assert_eq!(owner, "one/1");
    append(&one, epoch, 2).unwrap();

    // It is dead, as far as anybody knows; it finds out by writing.
    let adopted = owners.adopt("s", |_| false).unwrap();
    assert_eq!((adopted.claim.head, adopted.from.as_deref()), (2, Some("one/1")));
    assert_eq!(&adopted.summary[..], b"summary");
    assert!(matches!(append(&one, epoch, 3), Err(AppendError::Fenced { .. })));
    append(&two, adopted.claim.epoch, 3).unwrap();
    assert_eq!((owned(&one, "two/1"), owned(&one, "two")), (vec!["s".into()], vec!["s".into()]));
    assert_eq!(owned(&two, "one/1"), [""; 0], "nobody looks there any more");

    // What was let go is everybody's, and the one that let go is fenced as well.
    owners.release("s", adopted.claim.epoch).unwrap();
    let last = owners.last_writer("s").unwrap();
    assert_eq!((last.owner(), last.name.as_deref()), (None, Some("two/1")));
    assert_eq!(owned(&one, "two/1"), [""; 0]);
    let late = append(&two, adopted.claim.epoch, 4);
    assert!(matches!(late, Err(AppendError::Fenced { .. })), "{late:?}");
    let back = one.owners().unwrap().adopt("s", |_| true).unwrap();
    assert_eq!((back.claim.head, back.from), (3, None));

    // A release that comes late, of an epoch that is over, takes nothing away.
    owners.release("s", adopted.claim.epoch).unwrap();
    append(&one, back.claim.epoch, 4).unwrap();
    assert_eq!(one.read("s", 0, 100, 10_000).unwrap().len(), 4);

    // What is deleted is on no list, and its writer stays fenced.
    assert_eq!(owned(&two, "one/1"), ["s"]);
    one.delete("s").unwrap();
    assert_eq!(owned(&two, "one/1"), [""; 0]);
    assert!(matches!(append(&one, back.claim.epoch, 5), Err(AppendError::Fenced { .. })));
    assert!(matches!(owners.last_writer("s"), Err(AdoptError::Missing { .. })));
}

#[test]
fn whom_a_stream_was_taken_from_is_told_until_somebody_has_written() {
    let cluster = Cluster::start(1);
    let [one, two, three] = ["one/1", "two/1", "three/1"].map(|it| host(&cluster, it));
    let adopt = |by: &Journal| by.owners().unwrap().adopt("s", |_| false).unwrap();
    append(&one, one.claim("s").unwrap().epoch, 1).unwrap();

    // The second host may have failed, or ended, before it could say anything.
    assert_eq!(adopt(&two).from.as_deref(), Some("one/1"));
    assert_eq!(adopt(&two).from.as_deref(), Some("one/1"));
    let adopted = adopt(&three);
    assert_eq!(adopted.from.as_deref(), Some("one/1"));
    for dead in ["one/1", "two/1"] {
        assert_eq!(owned(&one, dead), [""; 0]);
    }
    append(&three, adopted.claim.epoch, 2).unwrap();
    assert_eq!(adopt(&two).from.as_deref(), Some("three/1"));
    assert_eq!(adopt(&three).from, None, "it comes back to where it was");
}

#[test]
fn pages_have_what_was_written_last_first_and_every_stream_once() {
    let cluster = Cluster::start(1);
    let journal = host(&cluster, "one/1");
    let names: Vec<String> = (0..25).map(|it| format!("p-{it:02}")).collect();
    let write = |name: &str, round: u64| {
        let epoch = journal.claim(name).unwrap().epoch;
        let (stream, first) = (name.into(), round + 1);
        let summary = Some(format!("{name} {round}").into());
        let append = Append { stream, epoch, first, count: 1, body: "{}".into(), summary };
        journal.append(&[append]).remove(0).unwrap();
    };
    for round in 0..4 {
        for name in &names {
            write(name, round);
        }
    }
    journal.delete("p-07").unwrap();
    let owners = journal.owners().unwrap();
    let end = owners.page(None, 7).unwrap().end;
    assert!(owners.since(end).unwrap().is_empty());
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = owners.page(before, 7).unwrap();
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
    let since: Vec<_> = owners.since(end).unwrap().into_iter().collect();
    assert_eq!(since, [("p-03".into(), "p-03 4".into())], "it was written after the first page");
}
