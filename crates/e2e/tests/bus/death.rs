//! Workers die, hang and babble: whoever waits is told, and the next one is served.

use super::{Bus, fault, is_gone, one_pool, pid, pool};
use jackfield_e2e::{Home, procs, wait_for};
use serde_json::json;
use std::time::{Duration, Instant};

/// The published kernel never answered; others did so after minutes.
#[test]
fn every_request_of_a_dead_worker_is_answered_at_once_and_the_next_one_is_served() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut clients = [bus.dial(), bus.dial()];
    let first = pid(&clients[0].ask("echo", &json!({})));
    let pending: Vec<u64> = (0..100).map(|_| clients[0].send("hang", &json!({}))).collect();
    let other = clients[1].send("hang", &json!({ "sessionId": "s" }));
    clients[0].result("echo", &json!({}));
    let begin = Instant::now();
    procs::kill_9(first);
    for id in pending {
        assert_eq!(fault(&clients[0].answer(id)), "worker_gone");
    }
    let answer = clients[1].answer(other);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!(fault(&answer), "worker_gone");
    assert!(answer["error"]["message"].as_str().unwrap().contains("signal 9"), "{answer}");
    for client in &mut clients {
        // It is asked until the new one is there: until then the bus says so.
        wait_for("a new worker", Duration::from_secs(10), || {
            let answer = client.ask("echo", &json!({ "sessionId": "s" }));
            answer.get("result").is_some().then(|| assert_ne!(pid(&answer), first))
        });
    }
    bus.stop();
}

/// The published kernel left the pool empty.
#[test]
fn a_worker_that_ends_well_is_started_again_unless_the_pool_says_otherwise() {
    let home = Home::new();
    let pools = [
        pool(&home, "always", 1, &json!({})),
        pool(&home, "on-failure", 1, &json!({ "restart": "on-failure" })),
        pool(&home, "never", 1, &json!({ "restart": "never" })),
    ];
    let bus = Bus::on_unix(&home, &json!({ "pools": pools }));
    let mut client = bus.dial();
    for (name, code, again) in [
        ("always", 0, true),
        ("on-failure", 1, true),
        ("on-failure", 0, false),
        ("never", 1, false),
    ] {
        let mut ask = |method: &str| {
            let line = json!({ "id": "q", "method": method, "pool": name,
                "params": { "code": code } });
            client.send_line(&line.to_string());
            client.until("an answer", |it| it["id"] == "q")
        };
        let answer = ask("die");
        assert_eq!(fault(&answer), "worker_gone", "{name}");
        assert!(answer.to_string().contains(&format!("exit status {code}")), "{answer}");
        if again {
            wait_for("a new worker", Duration::from_secs(10), || {
                ask("echo").get("result").is_some().then_some(())
            });
        } else {
            bus.until_said(&format!("not restarting a worker of pool `{name}`"));
            assert_eq!(fault(&ask("echo")), "no_worker", "{name}");
        }
    }
    bus.stop();
}

/// The published kernel logged a pause and did not make it.
#[test]
fn a_worker_that_keeps_ending_is_started_less_and_less_and_then_not() {
    let home = Home::new();
    let count = home.path().join("starts");
    let script = format!("echo x >> {}; exit 3", count.display());
    let config = json!({
        "pools": [{ "id": "bad", "command": "sh", "args": ["-c", script, home.mark()], "instances": 1 }],
        "limits": { "max_restarts": 4, "restart_window_sec": 60 },
    });
    let begin = Instant::now();
    let bus = Bus::on_unix(&home, &config);
    bus.until_said("a worker of pool `bad` ended ");
    bus.until_said("times within the restart window");
    // Pauses of 100 ms and more, each twice as long.
    assert!(Duration::from_millis(600) < begin.elapsed(), "{:?}", begin.elapsed());
    let said = bus.said();
    for pause in ["in 100 ms", "in 200 ms"] {
        assert!(said.contains(pause), "{said}");
    }
    let starts = std::fs::read_to_string(&count).unwrap().lines().count();
    assert!((4..=6).contains(&starts), "{starts} starts");
    let mut client = bus.dial();
    let answer = client.ask("echo", &json!({}));
    assert_eq!(fault(&answer), "no_worker");
    assert!(answer.to_string().contains("exit status 3"), "why is told: {answer}");
    bus.stop();
}

#[test]
fn a_worker_that_cannot_be_started_is_named() {
    let home = Home::new();
    let config =
        json!({ "pools": [{ "id": "none", "command": "no-such-program", "instances": 1 }] });
    let bus = Bus::on_unix(&home, &config);
    bus.until_said("no-such-program");
    let answer = bus.dial().ask("echo", &json!({}));
    // The second if the request came while the next start was tried.
    assert!(["no_worker", "worker_gone"].contains(&&*fault(&answer)), "{answer}");
    assert!(answer.to_string().contains("no-such-program"), "{answer}");
    bus.stop();
}

#[test]
fn sessions_of_a_dead_worker_move_or_end_as_configured() {
    let home = Home::new();
    let pools = [
        pool(&home, "moves", 2, &json!({})),
        pool(&home, "ends", 2, &json!({ "sessions": "end" })),
    ];
    let bus = Bus::on_unix(&home, &json!({ "pools": pools }));
    let mut client = bus.dial();
    let mut ask = |method: &str, name: &str| {
        let line = json!({ "id": "q", "method": method, "pool": name, "sessionId": name });
        client.send_line(&line.to_string());
        client.until("an answer", |it| it["id"] == "q")
    };
    let before = pid(&ask("echo", "moves"));
    pid(&ask("echo", "ends"));
    assert_eq!(fault(&ask("die", "moves")), "worker_gone");
    assert_eq!(fault(&ask("die", "ends")), "worker_gone");
    // The other worker of the pool is there already.
    assert_ne!(pid(&ask("echo", "moves")), before);
    assert_eq!(fault(&ask("echo", "ends")), "cannot_resume");
    bus.stop();
}

#[test]
fn a_worker_that_hangs_is_found_by_its_probe_and_replaced() {
    let home = Home::new();
    let health = json!({ "health": { "interval_sec": 0.2, "timeout_sec": 0.5 } });
    let bus = Bus::on_unix(&home, &json!({ "pools": [pool(&home, "echo", 1, &health)] }));
    let mut client = bus.dial();
    let first = pid(&client.ask("echo", &json!({})));
    // A healthy worker is left alone, also in the middle of a long request.
    client.result("sleep", &json!({ "ms": 1500 }));
    assert_eq!(pid(&client.ask("echo", &json!({}))), first);
    let stuck = client.send("stuck", &json!({}));
    let answer = client.answer(stuck);
    assert_eq!(fault(&answer), "worker_gone");
    assert!(bus.said().contains("failed its health check"), "{}", bus.said());
    wait_for("a new worker", Duration::from_secs(10), || {
        client.ask("echo", &json!({})).get("result").is_some().then_some(())
    });
    bus.stop();
}

/// The published kernel ended the worker, for good if it ended well.
#[test]
fn what_a_worker_prints_beside_its_messages_hurts_nobody() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut client = bus.dial();
    let first = pid(&client.ask("junk", &json!({})));
    assert_eq!(pid(&client.ask("echo", &json!({}))), first);
    bus.until_said("Loading...");
    bus.stop();
}

/// Nobody can know what was in it: whoever waits for it must not wait for ever.
#[test]
fn a_line_of_a_worker_that_is_too_long_ends_the_worker_and_the_request() {
    let home = Home::new();
    let mut config = one_pool(&home, 1);
    config["limits"] = json!({ "max_input_buffer": 100_000 });
    let bus = Bus::on_unix(&home, &config);
    let mut client = bus.dial();
    client.result("echo", &json!({}));
    assert_eq!(fault(&client.ask("long", &json!({ "bytes": 200_000 }))), "worker_gone");
    assert!(bus.said().contains("max_input_buffer"), "{}", bus.said());
    wait_for("a new worker", Duration::from_secs(10), || {
        client.ask("echo", &json!({})).get("result").is_some().then_some(())
    });
    let answer = client.ask("long", &json!({ "bytes": 90_000 }));
    assert!(answer["result"].is_string(), "what is short enough passes");
    bus.stop();
}

/// The published kernel and others left them running.
#[test]
fn a_killed_bus_leaves_no_worker_and_no_grandchild() {
    let home = Home::new();
    let mut bus = Bus::on_unix(&home, &one_pool(&home, 2));
    let mut client = bus.dial();
    let answer = client.ask("grandchild", &json!({}));
    let grandchild: u32 = answer["result"]["grandchild"].as_u64().unwrap().try_into().unwrap();
    assert!(procs::is_alive(grandchild));
    bus.child.kill().unwrap();
    bus.child.wait().unwrap();
    is_gone(&home, Duration::from_secs(20));
    assert!(!procs::is_alive(grandchild));
}
