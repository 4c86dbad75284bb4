//! A client that never reads shares a worker with clients that do: they are served as if it were not there.

use super::{Bus, one_pool, request, say_all, socket};
use jackfield_e2e::Home;
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

const READERS: usize = 4;
const PHASE: Duration = Duration::from_millis(1_500);

/// Readers ask again and again for the length of a phase. Returns all their waiting times in order.
fn measure_waits(bus: &Bus<'_>) -> Vec<Duration> {
    let measure = |number: usize| {
        let mut client = bus.dial();
        let session = json!({ "sessionId": format!("reader-{number}") });
        let (begin, mut waits) = (Instant::now(), Vec::new());
        while begin.elapsed() < PHASE {
            let asked = Instant::now();
            client.result("echo", &session);
            waits.push(asked.elapsed());
        }
        waits
    };
    let measure = &measure;
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|it| scope.spawn(move || measure(it))).collect();
        readers.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    waits.sort_unstable();
    waits
}

fn percentile_99(waits: &[Duration]) -> Duration {
    waits[waits.len() * 99 / 100]
}

/// The one worker streams to a client that reads, then to one that does not. In both phases the same others ask it.
#[test]
#[expect(clippy::print_stderr, reason = "figures, for a run by hand")]
fn client_that_never_reads_does_not_delay_others_of_its_worker() {
    let home = Home::new();
    let mut config = one_pool(&home, 1);
    config["limits"] = json!({ "max_output_queue": 1 << 20 });
    let bus = Bus::on_unix(&home, &config);
    let stream_params =
        |name: &str| json!({ "sessionId": name, "ms": u64::try_from(PHASE.as_millis()).unwrap() });

    let mut reading = bus.dial();
    let streamed = reading.send("stream", &stream_params("reading"));
    let without = measure_waits(&bus);
    assert!(reading.answer(streamed).get("result").is_some());

    let mut stuck = UnixStream::connect(socket(&home)).unwrap();
    say_all(&mut stuck, [request(1, "stream", &stream_params("stuck"))]);
    let with = measure_waits(&bus);
    bus.until_said("while other clients use the same worker");

    let (p99_without, p99_with) = (percentile_99(&without), percentile_99(&with));
    let report = format!(
        "p99 of {} requests without it {p99_without:?}, of {} requests with it {p99_with:?}, longest {:?}",
        without.len(),
        with.len(),
        with.last().unwrap()
    );
    eprintln!("{report}");
    assert!(p99_with < 4 * p99_without + Duration::from_millis(20), "{report}");

    // It hears what was kept for it, and why it was closed.
    stuck.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let lines = BufReader::new(stuck).lines().map_while(Result::ok);
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    assert_eq!(last["error"]["data"]["jackfield"]["code"], "overloaded");
    assert!(last["error"]["message"].as_str().unwrap().contains("`max_output_queue`"), "{last}");
    bus.stop();
}
