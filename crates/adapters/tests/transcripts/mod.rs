//! Translates recordings of real programs: every recording in `fixtures/<cli>/<version>/` is played
//! through the adapter, checked against ACP's schema and the adapter's invariants, and compared
//! with a reviewed snapshot.

pub(crate) mod player;
pub(crate) mod properties;
pub(crate) mod recording;

use player::{play, play_in_chunks};
use proptest::prelude::*;
use recording::Recording;
use std::fmt::Write as _;

/// Plays every recording of a CLI in a dialect.
fn translate_recordings(cli: &str, dialect: &str) {
    let recordings = Recording::all(cli);
    assert!(!recordings.is_empty(), "no recordings of {cli}");
    for recording in recordings {
        let played = play(dialect, &recording);
        properties::check_properties(&recording, &played);
        let mut report = String::new();
        for (channel, frame) in &played.frames {
            writeln!(report, "{channel} {frame}").unwrap();
        }
        insta::assert_snapshot!(format!("{cli}-{}", recording.case), report);
    }
}

macro_rules! recordings {
    ($($test:ident: $cli:literal in $dialect:literal;)*) => { $(
        #[test]
        fn $test() {
            translate_recordings($cli, $dialect);
        }
    )* };
}

recordings! {
    amp_recordings_match_snapshots: "amp" in "amp";
    claude_recordings_match_snapshots: "claude" in "claude";
    codex_exec_recordings_match_snapshots: "codex" in "codex";
    copilot_recordings_match_snapshots: "copilot" in "copilot";
    cursor_recordings_match_snapshots: "cursor" in "cursor";
    fast_agent_recordings_match_snapshots: "fast-agent" in "plain";
    gemini_recordings_match_snapshots: "gemini" in "gemini";
    grok_recordings_match_snapshots: "grok" in "grok";
    hermes_recordings_match_snapshots: "hermes" in "plain";
    kilo_recordings_match_snapshots: "kilo" in "opencode";
    kimi_recordings_match_snapshots: "kimi" in "kimi";
    opencode_recordings_match_snapshots: "opencode" in "opencode";
    pi_recordings_match_snapshots: "pi" in "pi";
    qwen_recordings_match_snapshots: "qwen" in "qwen";
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunk_boundaries_do_not_change_the_output(
        which in any::<prop::sample::Index>(),
        one in any::<prop::sample::Index>(),
        sizes in prop::collection::vec(1_usize..200, 1..400),
    ) {
        let clis = [("claude", "claude"), ("codex", "codex"), ("gemini", "gemini"), ("pi", "pi"),
            ("copilot", "copilot"), ("qwen", "qwen"), ("hermes", "plain"), ("opencode", "opencode")];
        let (cli, dialect) = which.get(&clis);
        let recordings = Recording::all(cli);
        let recording = one.get(&recordings);
        prop_assert_eq!(play(dialect, recording), play_in_chunks(dialect, recording, &sizes));
    }
}
