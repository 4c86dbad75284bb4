//! The relay: every byte, both ways, and every way to end.

use crate::desk::{beside, elsewhere, within};
use jackfield_clients::{Ended, relay};
use rustix::fs::OFlags;
use std::fs::File;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// A relay that runs: the client's pipes, the daemon's socket, and how it will have ended.
struct Rig<F> {
    say: File,
    hear: File,
    daemon: UnixStream,
    ended: F,
}

fn rig() -> Rig<impl Future<Output = Ended>> {
    let ((input, say), (hear, output)) =
        (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
    rig_with(input, say, hear, output)
}

fn rig_with(
    input: OwnedFd,
    say: OwnedFd,
    hear: OwnedFd,
    output: OwnedFd,
) -> Rig<impl Future<Output = Ended>> {
    let (socket, daemon) = UnixStream::pair().unwrap();
    let ended = beside(move || relay(input, output, socket.into()));
    Rig { say: say.into(), hear: hear.into(), daemon, ended }
}

/// The daemon of these tests: says everything back, and closes when it has heard the end.
fn echo(daemon: UnixStream) -> impl Future<Output = u64> {
    beside(move || std::io::copy(&mut &daemon, &mut &daemon).unwrap())
}

#[tokio::test]
async fn what_is_said_is_heard() {
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
    assert!(matches!(within(rig.ended).await, Ended::Finished));
    echoed.await;
}

#[tokio::test]
async fn much_goes_both_ways_at_once_and_the_answers_after_the_last_word_too() {
    let rig = rig();
    let echoed = echo(rig.daemon);
    let said: Vec<u8> = (0..10_000_000_u32).map(|it| (it ^ (it >> 8)).to_le_bytes()[0]).collect();
    let saying = said.clone();
    let (mut say, mut hear) = (rig.say, rig.hear);
    let spoken = beside(move || say.write_all(&saying).unwrap());
    let heard = beside(move || {
        let mut heard = Vec::new();
        hear.read_to_end(&mut heard).unwrap();
        heard
    });
    spoken.await;
    assert!(heard.await == said);
    assert!(matches!(within(rig.ended).await, Ended::Finished));
    assert_eq!(echoed.await, 10_000_000);
}

#[tokio::test]
async fn the_end_of_the_input_is_passed_on_and_the_daemon_may_take_its_time() {
    let mut rig = rig();
    rig.say.write_all(b"question\n").unwrap();
    drop(rig.say);
    let (mut daemon, mut hear) = (rig.daemon, rig.hear);
    let question = elsewhere(move || {
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
    assert!(matches!(within(rig.ended).await, Ended::Finished));
}

#[tokio::test]
async fn a_daemon_that_closes_ends_it_although_the_client_is_there() {
    let mut rig = rig();
    rig.daemon.write_all(b"last words\n").unwrap();
    rig.daemon.shutdown(Shutdown::Write).unwrap();
    assert!(matches!(within(rig.ended).await, Ended::DaemonGone));
    let mut heard = [0; 11];
    rig.hear.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"last words\n");
}

#[tokio::test]
async fn a_daemon_that_dies_with_our_words_unread_ends_it() {
    let mut rig = rig();
    rig.say.write_all(b"question\n").unwrap();
    let daemon = rig.daemon;
    elsewhere(move || leave_unread(&daemon)).await;
    assert!(matches!(within(rig.ended).await, Ended::DaemonGone));
}

/// Waits until there is something to read.
fn leave_unread(daemon: &UnixStream) {
    let mut fds = [rustix::event::PollFd::new(daemon, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, None).unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_listen_any_more_is_gone() {
    let mut rig = rig();
    drop(rig.hear);
    rig.daemon.write_all(b"anybody there?\n").unwrap();
    assert!(matches!(within(rig.ended).await, Ended::ClientGone));
    let mut heard = Vec::new();
    rig.daemon.read_to_end(&mut heard).unwrap();
    assert!(heard.is_empty(), "the daemon sees the end");
}

#[tokio::test]
async fn a_client_that_died_is_noticed_before_the_daemon_says_anything() {
    let mut rig = rig();
    drop((rig.say, rig.hear));
    assert!(matches!(within(rig.ended).await, Ended::ClientGone));
    assert_eq!(rig.daemon.read(&mut [0]).unwrap(), 0);
    assert!(rig.daemon.write(b"x").is_err(), "the daemon cannot be heard any more");
}

#[tokio::test]
async fn a_file_as_input_and_output_is_as_good_as_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in"), dir.path().join("out"));
    std::fs::write(&input, "one\ntwo\n").unwrap();
    let (socket, daemon) = UnixStream::pair().unwrap();
    let echoed = echo(daemon);
    let (from, to) = (File::open(input).unwrap(), File::create(&output).unwrap());
    let ended = beside(move || relay(from, to, socket.into()));
    assert!(matches!(within(ended).await, Ended::Finished));
    assert_eq!(std::fs::read_to_string(output).unwrap(), "one\ntwo\n");
    echoed.await;
}

#[tokio::test]
async fn pipes_that_someone_made_non_blocking_are_waited_for() {
    let ((input, say), (hear, output)) =
        (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
    for fd in [&input, &output] {
        rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK).unwrap();
    }
    let rig = rig_with(input, say, hear, output);
    let echoed = echo(rig.daemon);
    let (mut say, mut hear) = (rig.say, rig.hear);
    let spoken = beside(move || say.write_all(&vec![b'x'; 1_000_000]).unwrap());
    let heard = beside(move || std::io::copy(&mut hear, &mut std::io::sink()).unwrap());
    spoken.await;
    assert_eq!(heard.await, 1_000_000);
    assert!(matches!(within(rig.ended).await, Ended::Finished));
    echoed.await;
}
