//! How an agent is, and what it is asked to do: drawn from the seed.

use jackfield_test_support::rng::Rng;

/// Each line is drawn with the chance in front, in percent; of several, one.
const TEMPERS: &[(u64, &[&str])] = &[
    (
        60,
        &[
            "--cancel ignore",
            "--cancel error",
            "--cancel die",
            "--cancel keep-streaming",
            "--cancel drain",
        ],
    ),
    (50, &["--caps load,resume", "--caps load", "--caps resume", "--caps none"]),
    (
        20,
        &[
            "--load null",
            "--load replay-then-null",
            "--load replay-new-tool-ids",
            "--load error-32603",
            "--load replay-after-answer",
        ],
    ),
    (20, &["--resume null", "--resume error"]),
    (20, &["--ignore-term", "--ignore-eof", "--ignore-term --ignore-eof"]),
    (20, &["--grandchild", "--grandchild-holds-stdout", "--grandchild-holds-stderr"]),
    (15, &["--reexec", "--relaunch"]),
    (20, &["--ids zero", "--ids big", "--ids string"]),
    (20, &["--delay prompt 150", "--delay cancel 400", "--delay load 300", "--delay resume 300"]),
    (10, &["--die-at before-answer --die-with KILL", "--die-at prompt-start", "--die-at cancel"]),
    (10, &["--banner", "--nulls", "--crlf", "--echo-user", "--usage cumulative"]),
    (5, &["--cancel-request-ignored"]),
    (5, &["--stderr-flood 200000"]),
];

/// What a prompt makes the agent do, the common things more often.
const SCRIPTS: &[&str] = &[
    "ask",
    "ask",
    "ask",
    "ask 3",
    "ask then burst 20",
    "ask-stubborn",
    "ask-withdraw 80",
    "elicit",
    "burst 10 then ask then slow 5 20",
    "tool then ask then tool",
    "burst 30",
    "burst 300 200",
    "burst 2000 300",
    "slow 10 30",
    "slow 40 25",
    "wait 400",
    "tool then plan",
    "think then tool",
    "title chaos reigns",
    "commands",
    "mode plan",
    "spawn then slow 20 20",
    "spawn then hang",
    "hang",
    "ask then hang",
    "die",
    "die KILL",
    "burst 50 then die SEGV",
    "half",
    "partial 50",
    "late 30",
    "two-turns",
    "answer-twice",
    "error-null",
    "error -32000 as told",
    "stop refusal",
    "junk",
    "bad-utf8",
    "huge 300000",
    "stderr-flood 100000",
    "unknown-request",
    "unknown-update",
    "unknown-notification",
    "fs-read /no/such/file",
    "terminal sleep 30",
];

/// The flags of an agent.
pub(super) fn flags(dice: &mut Rng) -> Vec<&'static str> {
    let mut flags = Vec::new();
    for (percent, choices) in TEMPERS {
        let chosen = dice.pick(choices);
        if dice.chance(*percent) {
            flags.extend(chosen.split(' '));
        }
    }
    flags
}

pub(super) fn script(dice: &mut Rng) -> &'static str {
    dice.pick(SCRIPTS)
}

/// Whether an agent with these flags answers a plain prompt and can be woken.
pub(super) fn is_reliable(flags: &[&str]) -> bool {
    !flags.iter().any(|it| ["die", "--die-at", "--caps", "--load", "--resume"].contains(it))
}
