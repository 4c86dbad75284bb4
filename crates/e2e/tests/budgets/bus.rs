//! A hostile worker of the bus.

use super::limit_memory;
use crate::bus::{Bus, pool, write};
use jackfield_e2e::{Home, procs};
use serde_json::json;

const WORKER: &str = include_str!("hostile_worker.py");

#[test]
fn worker_that_talks_before_its_session_has_a_name_is_bounded() {
    limit_memory();
    let home = Home::new();
    let worker = write(&home, "hostile_worker.py", WORKER);
    let args = json!(["-u", worker, home.mark()]);
    let hostile = json!({ "id": "hostile", "command": "python3", "args": args, "instances": 1 });
    let config = json!({ "pools": [hostile, pool(&home, "echo", 1, &json!({}))] });
    let bus = Bus::on_unix(&home, &config);
    let mut client = bus.dial();
    let ask = |method: &str, pool: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "pool": pool, "params": {} })
            .to_string()
    };
    client.send_line(&ask("session/new", "hostile"));
    let mut other = bus.dial();
    other.send_line(&ask("echo", "echo"));
    assert!(other.answer(1).get("result").is_some());
    // Its last message: everything else was heard before.
    assert_eq!(client.answer(1)["error"]["message"], "no session");
    // 160 MB were said.
    let peak = procs::resident_peak(bus.pid());
    assert!(0 < peak && peak < 128 << 20, "{} MiB", peak >> 20);
    drop((client, other));
    bus.stop();
}
