//! The relay copies every byte in both directions and reports how it ended.

use crate::harness::{run_blocking, start_blocking, within};
use jackfield_transport::{RelayEnd, relay_bytes};
use rustix::fs::OFlags;
use std::fs::File;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// A running relay: the client's pipes, the daemon's socket, and its result.
struct RelayRig<F> {
    say: File,
    hear: File,
    daemon: UnixStream,
    ended: F,
}

fn rig() -> RelayRig<impl Future<Output = RelayEnd>> {
    let ((input, say), (hear, output)) =
        (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
    rig_with(input, say, hear, output)
}

fn rig_with(
    input: OwnedFd,
    say: OwnedFd,
    hear: OwnedFd,
    output: OwnedFd,
) -> RelayRig<impl Future<Output = RelayEnd>> {
    let (socket, daemon) = UnixStream::pair().unwrap();
    let ended = start_blocking(move || relay_bytes(input, output, socket.into()));
    RelayRig { say: say.into(), hear: hear.into(), daemon, ended }
}

/// A daemon that echoes everything and closes at the end of its input.
fn echo(daemon: UnixStream) -> impl Future<Output = u64> {
    start_blocking(move || std::io::copy(&mut &daemon, &mut &daemon).unwrap())
}

#[tokio::test]
async fn bytes_are_copied_in_both_directions() {
    let mut rig = rig();
    let echoed = echo(rig.daemon);
    let (mut said, mut heard) = (Vec::new(), vec![0; 100]);
    for round in 0..1000 {
        said.clear();
        writeln!(said, "{{\"id\":{round}}}").unwrap();
        rig.say.write_all(&said).unwrap();
        rig.hear.read_exact(&mut heard[..said.len()]).unwrap();
        assert_eq!(heard[..said.len()], said);
    }
    drop(rig.say);
    assert!(matches!(within(rig.ended).await, RelayEnd::Finished));
    echoed.await;
}

#[tokio::test]
async fn large_transfers_pass_both_ways_until_the_last_answer() {
    let rig = rig();
    let echoed = echo(rig.daemon);
    let said: Vec<u8> = (0..10_000_000_u32).map(|it| (it ^ (it >> 8)).to_le_bytes()[0]).collect();
    let saying = said.clone();
    let (mut say, mut hear) = (rig.say, rig.hear);
    let spoken = start_blocking(move || say.write_all(&saying).unwrap());
    let heard = start_blocking(move || {
        let mut heard = Vec::new();
        hear.read_to_end(&mut heard).unwrap();
        heard
    });
    spoken.await;
    assert!(heard.await == said);
    assert!(matches!(within(rig.ended).await, RelayEnd::Finished));
    assert_eq!(echoed.await, 10_000_000);
}

#[tokio::test]
async fn end_of_input_is_forwarded_and_late_answers_are_copied() {
    let mut rig = rig();
    rig.say.write_all(b"question\n").unwrap();
    drop(rig.say);
    let (mut daemon, mut hear) = (rig.daemon, rig.hear);
    let question = run_blocking(move || {
        let mut question = String::new();
        daemon.read_to_string(&mut question).unwrap();
        daemon.write_all(b"answer\n").unwrap();
        (question, daemon)
    });
    let (question, daemon) = question.await;
    assert_eq!(question, "question\n");
    let mut answer = [0; 7];
    hear.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"answer\n");
    drop(daemon);
    assert!(matches!(within(rig.ended).await, RelayEnd::Finished));
}

#[tokio::test]
async fn closing_daemon_ends_the_relay() {
    let mut rig = rig();
    rig.daemon.write_all(b"last words\n").unwrap();
    rig.daemon.shutdown(Shutdown::Write).unwrap();
    assert!(matches!(within(rig.ended).await, RelayEnd::DaemonGone));
    let mut heard = [0; 11];
    rig.hear.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"last words\n");
}

#[tokio::test]
async fn daemon_that_exits_with_unread_input_ends_the_relay() {
    let mut rig = rig();
    rig.say.write_all(b"question\n").unwrap();
    let daemon = rig.daemon;
    run_blocking(move || leave_unread(&daemon)).await;
    assert!(matches!(within(rig.ended).await, RelayEnd::DaemonGone));
}

/// Waits until there is something to read.
fn leave_unread(daemon: &UnixStream) {
    let mut fds = [rustix::event::PollFd::new(daemon, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, None).unwrap();
}

#[tokio::test]
async fn client_that_closed_its_output_is_reported_gone() {
    let mut rig = rig();
    drop(rig.hear);
    rig.daemon.write_all(b"anybody there?\n").unwrap();
    assert!(matches!(within(rig.ended).await, RelayEnd::ClientGone));
    let mut heard = Vec::new();
    rig.daemon.read_to_end(&mut heard).unwrap();
    assert!(heard.is_empty(), "the daemon sees the end");
}

#[tokio::test]
async fn exited_client_is_noticed_before_the_daemon_writes() {
    let mut rig = rig();
    drop((rig.say, rig.hear));
    assert!(matches!(within(rig.ended).await, RelayEnd::ClientGone));
    assert_eq!(rig.daemon.read(&mut [0]).unwrap(), 0);
    assert!(rig.daemon.write(b"x").is_err(), "the daemon cannot be heard any more");
}

#[tokio::test]
async fn files_work_as_input_and_output() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in"), dir.path().join("out"));
    std::fs::write(&input, "one\ntwo\n").unwrap();
    let (socket, daemon) = UnixStream::pair().unwrap();
    let echoed = echo(daemon);
    let (from, to) = (File::open(input).unwrap(), File::create(&output).unwrap());
    let ended = start_blocking(move || relay_bytes(from, to, socket.into()));
    assert!(matches!(within(ended).await, RelayEnd::Finished));
    assert_eq!(std::fs::read_to_string(output).unwrap(), "one\ntwo\n");
    echoed.await;
}

#[tokio::test]
async fn nonblocking_pipes_are_supported() {
    let ((input, say), (hear, output)) =
        (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
    for fd in [&input, &output] {
        rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK).unwrap();
    }
    let rig = rig_with(input, say, hear, output);
    let echoed = echo(rig.daemon);
    let (mut say, mut hear) = (rig.say, rig.hear);
    let spoken = start_blocking(move || say.write_all(&vec![b'x'; 1_000_000]).unwrap());
    let heard = start_blocking(move || std::io::copy(&mut hear, &mut std::io::sink()).unwrap());
    spoken.await;
    assert_eq!(heard.await, 1_000_000);
    assert!(matches!(within(rig.ended).await, RelayEnd::Finished));
    echoed.await;
}
