//! Bugs of the bus: most of them are faults of routers that exist.

use super::bugs::{Bug, edit};

const CLIENT: &str = "crates/core/src/bus/client.rs";
const WORKER: &str = "crates/core/src/bus/worker.rs";
const ROUTE: &str = "crates/core/src/bus/route.rs";
const LIFE: &str = "crates/core/src/bus/life.rs";
const SLOW: &str = "crates/core/src/bus/slow.rs";

pub(super) const BUS_BUGS: &[Bug] = &[
    Bug {
        name: "bus-keeps-the-clients-ids",
        breaks: "answers cross between clients that use the same id",
        edits: &[edit(
            CLIENT,
            "frame.with_id(&ours.to_string()).into_bytes()",
            "frame.bytes().clone()",
        )],
    },
    Bug {
        name: "bus-moves-a-session-that-lives",
        breaks: "a session does not stay with its worker",
        edits: &[edit(
            ROUTE,
            "Some(it) if self.is_alive(it.worker) => return Ok(it.worker),",
            "Some(it) if self.now.0 % 7 == 3 && self.is_alive(it.worker) => return Ok(it.worker),",
        )],
    },
    Bug {
        name: "bus-tells-of-another-workers-session",
        breaks: "a client hears of a session of the same name that it has not used",
        edits: &[edit(WORKER, "table.get(&id).filter(|it| it.worker == worker)", "table.get(&id)")],
    },
    Bug {
        name: "bus-buries-a-worker-in-silence",
        breaks: "what a dead worker owed is never answered",
        edits: &[edit(
            LIFE,
            "            self.say(conn, &Frame::error_for(&id, &fault));\n",
            "            let _ = &fault;\n",
        )],
    },
    Bug {
        name: "bus-never-reads-on",
        breaks: "a worker that waited for a slow client waits for ever",
        edits: &[edit(
            SLOW,
            "        it.held_by -= 1;\n        if it.held_by == 0 {",
            "        it.held_by -= 1;\n        if it.held_by == usize::MAX {",
        )],
    },
    Bug {
        name: "bus-answers-before-what-was-said-before",
        breaks: "what a worker said of a session before it had a name is lost",
        edits: &[edit(WORKER, "        self.tell_held(worker, &id);\n", "")],
    },
    Bug {
        name: "bus-leaves-workers-waiting",
        breaks: "a worker whose client left with its question is never told",
        edits: &[edit(
            CLIENT,
            "let fault = Fault::NoClient { why: \"the one that was asked is gone\".to_owned() };",
            "let fault = Fault::NoClient { why: String::new() };\n            if 0 < ours {\n                continue;\n            }",
        )],
    },
];
