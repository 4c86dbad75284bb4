//! Bugs of the gateway: each loses, repeats or mixes up something on the way.

use super::bugs::{Bug, edit};

const ASK: &str = "crates/core/src/gateway/ask.rs";
const FLOW: &str = "crates/core/src/gateway/flow.rs";
const HEARD: &str = "crates/core/src/gateway/heard.rs";
const KEY: &str = "crates/core/src/gateway/key.rs";
const LEG: &str = "crates/core/src/gateway/leg.rs";
const PLACE: &str = "crates/core/src/gateway/place.rs";
const SESSION: &str = "crates/core/src/gateway/session.rs";

pub(super) const GATEWAY_BUGS: &[Bug] = &[
    Bug {
        name: "gateway-forgets-what-was-open",
        breaks: "a request whose host is lost is never answered",
        edits: &[edit(
            SESSION,
            "it.waits.push_front((since, Wait::Request(id)));",
            "let _ = (since, id);",
        )],
    },
    Bug {
        name: "gateway-hears-on-after-half-an-event",
        breaks: "the frames of an event that were still to come are lost with the leg",
        edits: &[edit(HEARD, "Some(seq) => seq.saturating_sub(1),", "Some(seq) => seq,")],
    },
    Bug {
        name: "gateway-does-not-count-frames",
        breaks: "frames of the last event are heard twice after a loss",
        edits: &[edit(HEARD, "self.skip = Some(self.passed);", "self.skip = Some(0);")],
    },
    Bug {
        name: "gateway-keeps-the-hosts-ids",
        breaks: "asks of two hosts under one id are taken for each other",
        edits: &[edit(
            ASK,
            "let ours = client.next_ask;",
            "let ours: u64 = id.parse().unwrap_or_default();",
        )],
    },
    Bug {
        name: "gateway-gives-one-key-to-all",
        breaks: "a prompt is taken for another that was asked before",
        edits: &[edit(KEY, "        self.next_key += 1;\n", "")],
    },
    Bug {
        name: "gateway-gives-up-with-its-host",
        breaks: "a client is told that a host stops, though another takes its place",
        edits: &[edit(LEG, "(To::Session(_), Some(\"stopping\")) => return,", "")],
    },
    Bug {
        name: "gateway-leaves-asks-behind",
        breaks: "a client is asked what nobody waits for any more",
        edits: &[edit(
            SESSION,
            "        self.withdraw_asks(conn, |it| it.leg == leg && it.session.as_ref() == Some(session));\n",
            "",
        )],
    },
    Bug {
        name: "gateway-never-reads-a-leg-on",
        breaks: "a leg that waited for a slow client waits for ever",
        edits: &[edit(FLOW, "if std::mem::take(&mut it.paused) {", "if it.paused && leg.0 == 0 {")],
    },
    Bug {
        name: "gateway-does-not-follow",
        breaks: "a client stops hearing a session that moves",
        edits: &[edit(
            LEG,
            "                    self.lose(conn, &session, Some(host), false);\n",
            "                    let _ = host;\n",
        )],
    },
    Bug {
        name: "gateway-has-it-told-twice",
        breaks: "a session that was being loaded when its host was lost is heard twice",
        edits: &[edit(SESSION, "            && !self.asks_to_hear(conn, session)\n", "")],
    },
    Bug {
        name: "gateway-trusts-a-name",
        breaks: "a leg to a host that was started again is thought to be alive",
        edits: &[edit(
            PLACE,
            "(leg.incarnation != now).then_some",
            "(now.is_none() && leg.incarnation.is_some()).then_some",
        )],
    },
    Bug {
        name: "gateway-opens-nothing-elsewhere",
        breaks: "a session that was being opened on a lost host is never answered for",
        edits: &[edit(LEG, "To::New => self.place_again(conn, id),", "To::New => {}")],
    },
];
