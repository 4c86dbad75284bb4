//! Many who say little or nothing. They are few at a time and gone soon, and keep nobody out.

use super::{GONE_WITHIN, Target, statuses};
use jackfield_e2e::wait_for;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
    time::{Duration, Instant},
};

/// More than the limit for connections without a token, which is what must be exceeded.
const IDLE_GATE: u64 = 2_000;
const IDLE_NIGHTLY: u64 = 10_000;
/// What `limits.rs` says of strangers.
const STRANGERS_MAX: usize = 1024;

impl Target {
    /// A connection from another address of this machine.
    fn dial_from(&self, last: u8) -> TcpStream {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, last), 0)).unwrap();
        connect(&socket, &self.at).unwrap();
        TcpStream::from(socket)
    }

    /// The files that the daemon has open.
    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.daemon.pid())).unwrap().count()
    }
}

/// As many files as this process may have, less what it needs itself.
fn room_for_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    limit.maximum.unwrap_or(u64::MAX).saturating_sub(500)
}

/// Two daemons side by side: each has to wait until its strangers are gone.
#[test]
fn silent_and_slow_connections_do_not_exhaust_the_limit_or_memory() {
    std::thread::scope(|scope| {
        scope.spawn(those_who_say_a_byte_a_second);
        open_silent_connections(IDLE_GATE);
    });
}

#[test]
#[ignore = "nightly: more connections of the kind that is tested with every change"]
fn ten_thousand_silent_connections_do_not_exhaust_the_limit_or_memory() {
    open_silent_connections(IDLE_NIGHTLY);
}

#[expect(clippy::print_stderr, reason = "figures, for whoever runs it by hand")]
fn open_silent_connections(wanted: u64) {
    let target = Target::new();
    let files = target.files();
    let count = wanted.min(room_for_files());
    let begun = Instant::now();
    let mut idle = Vec::new();
    let (mut slowest, mut most) = (Duration::ZERO, 0);
    for number in 0..count {
        let mut stream = target.dial_from(2 + u8::try_from(number % 8).unwrap());
        // Some begin to speak, and never end.
        if number % 3 == 0 {
            let _evicted = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ");
        }
        idle.push(stream);
        if number % 500 == 499 {
            slowest = slowest.max(target.serves_the_honest());
            most = most.max(target.files() - files);
        }
    }
    let came = begun.elapsed();
    slowest = slowest.max(target.serves_the_honest());
    let grown = target.grown();
    // A connection or two may be between the system's queue and its seat.
    assert!(most <= STRANGERS_MAX + 200, "{most} connections at a time");
    assert!(grown < 48 << 20, "{grown} bytes for them");
    wait_for("all of them to be gone", GONE_WITHIN, || (target.files() <= files + 2).then_some(()));
    let gone = begun.elapsed();
    eprintln!(
        "{count} idle connections came in {came:?}: at most {most} files more, {} KiB more memory, \
         an honest client waited {slowest:?} at most; all gone after {gone:?}",
        grown >> 10
    );
    drop(idle);
    target.must_be_well(48 << 20);
}

fn those_who_say_a_byte_a_second() {
    let target = Target::new();
    let files = target.files();
    let begun = Instant::now();
    let head = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        target.token
    );
    let body = format!(
        "POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{}",
        "x".repeat(99)
    );
    let mut slow: Vec<(TcpStream, &[u8])> =
        (0..100).map(|_| (target.dial(), head.as_bytes())).collect();
    // The head at once, and then the body, a byte a second: without the token nobody waits for it.
    let early = body.len() - 99;
    for _ in 0..100 {
        let mut stream = target.dial();
        stream.write_all(&body.as_bytes()[..early]).unwrap();
        slow.push((stream, &body.as_bytes()[early..]));
    }
    let mut said = 0;
    wait_for("all of them to be gone", GONE_WITHIN, || {
        if said <= begun.elapsed().as_secs() {
            said += 1;
            for (stream, rest) in &mut slow {
                let (byte, later) = rest.split_at(1);
                // One that was cut off cannot be heard any more.
                let _cut = stream.write_all(byte);
                *rest = later;
            }
            target.serves_the_honest();
        }
        (target.files() <= files).then_some(())
    });
    for (stream, _) in &mut slow {
        let answers = statuses(&super::listen(stream));
        assert!(matches!(answers[..], [] | [401]), "{answers:?}");
    }
    target.must_be_well(16 << 20);
}
