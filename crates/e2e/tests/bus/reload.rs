//! SIGHUP: the configuration is read again, and what still fits goes on.

use super::{Bus, fault, one_pool, pid, pool, write_config};
use jackfield_e2e::{Home, procs, wait_for};
use rustix::process::Signal;
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};

#[test]
fn a_new_configuration_scales_pools_and_loses_no_session_and_no_request() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut client = bus.dial();
    let first = pid(&client.ask("echo", &json!({ "sessionId": "s" })));
    let running = client.send("sleep", &json!({ "sessionId": "s", "ms": 1000 }));
    let pools = [pool(&home, "echo", 3, &json!({})), pool(&home, "other", 1, &json!({}))];
    write_config(&home, &json!({ "pools": pools }));
    bus.signal(Signal::HUP);
    bus.until_said("reloaded the configuration: 2 pools, 4 workers");
    assert_eq!(pid(&client.ask("echo", &json!({ "sessionId": "s" }))), first);
    let mut ask = |pool: &str| {
        client.send_line(&json!({ "id": "q", "method": "echo", "pool": pool }).to_string());
        client.until("an answer", |it| it["id"] == "q")
    };
    wait_for("three workers", Duration::from_secs(10), || {
        let workers: BTreeSet<u32> = (0..3).map(|_| pid(&ask("echo"))).collect();
        (workers.len() == 3).then_some(())
    });
    assert!(ask("other").get("result").is_some());
    assert!(client.answer(running).get("result").is_some(), "what was asked before is answered");

    // And back: who is not needed any more ends, and the session stays where it is.
    write_config(&home, &one_pool(&home, 1));
    bus.signal(Signal::HUP);
    bus.until_said("reloaded the configuration: 1 pools, ");
    wait_for("one worker", Duration::from_secs(10), || {
        let workers = home.alive(&[]).into_iter().map(procs::words);
        let workers = workers.filter(|it| it.first().is_some_and(|it| it.ends_with("python3")));
        (workers.count() == 1).then_some(())
    });
    assert_eq!(pid(&client.ask("echo", &json!({ "sessionId": "s" }))), first);
    client.send_line(&json!({ "id": "gone", "method": "echo", "pool": "other" }).to_string());
    let answer = client.until("an answer", |it| it["id"] == "gone");
    assert_eq!(fault(&answer), "no_worker");
    bus.stop();
}

#[test]
fn a_configuration_that_cannot_be_used_is_told_and_changes_nothing() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut client = bus.dial();
    let first = pid(&client.ask("echo", &json!({ "sessionId": "s" })));
    write_config(&home, &json!({ "pools": [{ "id": "echo", "command": "cat" }] }));
    bus.signal(Signal::HUP);
    bus.until_said("missing required 'instances' field");
    assert!(bus.said().contains("keeping the old one"), "{}", bus.said());
    assert_eq!(pid(&client.ask("echo", &json!({ "sessionId": "s" }))), first);
    bus.stop();
}
