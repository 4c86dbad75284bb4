//! Bugs of sessions that move between hosts, and of prompts that are said again.

use super::bugs::{Bug, edit};

const KEYS: &str = "crates/events/src/keyed_prompts.rs";
const FOLD: &str = "crates/events/src/summary.rs";
const KEYED: &str = "crates/core/src/session/keyed.rs";
const QUEUE: &str = "crates/core/src/session/queue.rs";
const LEAVING: &str = "crates/core/src/session/leaving.rs";
const ADOPT: &str = "crates/core/src/session/adopt.rs";
const ATTACH: &str = "crates/core/src/session/attach.rs";
const SEATS: &str = "crates/core/src/agent/seats.rs";

pub(super) const FLEET_BUGS: &[Bug] = &[
    Bug {
        name: "forget-the-keys",
        breaks: "a prompt that is said again runs again",
        edits: &[edit(
            QUEUE,
            "if let Some(known) = key.and_then(",
            "if let Some(known) = key.filter(|_| self.now.0 % 3 != 0).and_then(",
        )],
    },
    Bug {
        name: "forget-that-a-keyed-turn-ended",
        breaks: "who says a prompt again after its end is never answered",
        edits: &[edit(
            FOLD,
            "                self.keys.on_ended(ended.turn, &ended.outcome);\n",
            "",
        )],
    },
    Bug {
        name: "forget-that-a-keyed-prompt-was-withdrawn",
        breaks: "a prompt that was withdrawn is looked for in the queue",
        edits: &[edit(
            FOLD,
            "                self.keys.on_withdrawn(withdrawn.prompt, &withdrawn.why);\n",
            "",
        )],
    },
    Bug {
        name: "lose-the-keys-with-the-summary",
        breaks: "after a restart a prompt that is said again runs again",
        edits: &[edit(
            FOLD,
            "    #[serde(skip_serializing_if = \"KeyedPrompts::is_empty\")]\n",
            "    #[serde(skip)]\n",
        )],
    },
    Bug {
        name: "keep-what-is-held-although-it-is-said-again",
        breaks: "who says a held prompt again waits for ever",
        edits: &[edit(
            KEYED,
            "            session.queue.push_back(Prompt::held(conn, number, queued));\n        }",
            "            let _ = queued;\n            return;\n        }",
        )],
    },
    Bug {
        name: "owe-the-last-one-only",
        breaks: "of two who say one prompt the first is never answered",
        edits: &[edit(
            KEYED,
            "        prompt.waiters.push((conn, request.into()));",
            "        prompt.waiters = vec![(conn, request.into())];",
        )],
    },
    Bug {
        name: "let-go-in-the-middle-of-a-turn",
        breaks: "a turn is open in the log of a session that was let go",
        edits: &[edit(
            LEAVING,
            "if session.turn.is_some() || session.is_opening() {",
            "if session.is_opening() {",
        )],
    },
    Bug {
        name: "let-go-before-it-is-written",
        breaks: "what was said last is not in the log that the next host finds",
        edits: &[edit(
            LEAVING,
            "session.leaving.as_mut().filter(|_| session.gate.is_clear())",
            "session.leaving.as_mut()",
        )],
    },
    Bug {
        name: "let-go-before-it-is-summed-up",
        breaks: "the next host has to read the log",
        edits: &[edit(
            LEAVING,
            "                leaving.last_summary = LastSummary::Sent;\n                session.summary_is_due = true;",
            "                leaving.last_summary = LastSummary::Written;\n                session.summary_is_due = true;",
        )],
    },
    Bug {
        name: "let-go-while-the-agent-ends",
        breaks: "two agents write the files of one session",
        edits: &[edit(
            LEAVING,
            "        if self.has_ending_process(id) {\n            return;\n        }\n",
            "",
        )],
    },
    Bug {
        name: "begin-a-turn-in-what-leaves",
        breaks: "a session that is let go never goes, or its turn is cut",
        edits: &[edit(
            QUEUE,
            "        if session.leaving.is_some() {\n            return self.let_go_on(id);\n        }\n",
            "",
        )],
    },
    Bug {
        name: "answer-a-leg-that-asks-again",
        breaks: "a request is answered here and once more elsewhere",
        edits: &[edit(
            SEATS,
            "                && !self.is_left_to_ask_again(id, conn, &theirs)\n",
            "",
        )],
    },
    Bug {
        name: "leave-a-leg-without-a-word",
        breaks: "a gateway waits for ever in a session that has left",
        edits: &[edit(LEAVING, "        leaving.legs.insert(conn);\n", "")],
    },
    Bug {
        name: "lose-the-name-of-a-session-that-leaves",
        breaks: "who opened a session that leaves at once is never answered",
        edits: &[edit(
            ATTACH,
            "            Some((it, id)) if end.is_its_name(conn, it) => self.answer(conn, id, Err(end.fault)),\n",
            "",
        )],
    },
    Bug {
        name: "adopt-without-settling",
        breaks: "a turn that was lost with its host has no outcome",
        edits: &[edit(
            ADOPT,
            "                self.settle(id, &lost, &format!(\"{lost} during the turn\"));\n",
            "                let _ = &lost;\n",
        )],
    },
    Bug {
        name: "adopt-what-is-there",
        breaks: "a session that is served is begun again from its log",
        edits: &[edit(
            ADOPT,
            "self.stopping || self.sessions.contains_key(id) || ",
            "self.stopping || ",
        )],
    },
    Bug {
        name: "remember-no-more-than-one-key",
        breaks: "of two prompts that are said again the older one runs again",
        edits: &[edit(KEYS, "if max <= self.0.iter()", "if 1 <= self.0.iter()")],
    },
];
