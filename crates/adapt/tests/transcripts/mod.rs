//! What real programs printed, translated: every recording in `fixtures/<cli>/<version>/` is played
//! through the adapter, held against the protocol's schema and the adapter's promises, and kept as a
//! snapshot that people have read.

pub(crate) mod fixture;
pub(crate) mod player;
pub(crate) mod promises;

use fixture::Fixture;
use player::{play, play_in_chunks};
use proptest::prelude::*;
use std::fmt::Write as _;

/// Plays every recording of a CLI in a dialect.
fn translate(cli: &str, dialect: &str) {
    let fixtures = Fixture::all(cli);
    assert!(!fixtures.is_empty(), "no recordings of {cli}");
    for fixture in fixtures {
        let played = play(dialect, &fixture);
        promises::check(&fixture, &played);
        let mut shown = String::new();
        for (who, what) in &played.told {
            writeln!(shown, "{who} {what}").unwrap();
        }
        insta::assert_snapshot!(format!("{cli}-{}", fixture.case), shown);
    }
}

macro_rules! recordings {
    ($($test:ident: $cli:literal in $dialect:literal;)*) => { $(
        #[test]
        fn $test() {
            translate($cli, $dialect);
        }
    )* };
}

recordings! {
    what_amp_printed: "amp" in "amp";
    what_claude_printed: "claude" in "claude";
    what_codex_exec_printed: "codex" in "codex";
    what_copilot_printed: "copilot" in "copilot";
    what_cursor_printed: "cursor" in "cursor";
    what_fast_agent_printed: "fast-agent" in "plain";
    what_gemini_printed: "gemini" in "gemini";
    what_grok_printed: "grok" in "grok";
    what_hermes_printed: "hermes" in "plain";
    what_kilo_printed: "kilo" in "opencode";
    what_kimi_printed: "kimi" in "kimi";
    what_opencode_printed: "opencode" in "opencode";
    what_pi_printed: "pi" in "pi";
    what_qwen_printed: "qwen" in "qwen";
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn where_the_bytes_are_cut_changes_nothing(
        which in any::<prop::sample::Index>(),
        one in any::<prop::sample::Index>(),
        sizes in prop::collection::vec(1_usize..200, 1..400),
    ) {
        let clis = [("claude", "claude"), ("codex", "codex"), ("gemini", "gemini"), ("pi", "pi"),
            ("copilot", "copilot"), ("qwen", "qwen"), ("hermes", "plain"), ("opencode", "opencode")];
        let (cli, dialect) = which.get(&clis);
        let fixtures = Fixture::all(cli);
        let fixture = one.get(&fixtures);
        prop_assert_eq!(play(dialect, fixture), play_in_chunks(dialect, fixture, &sizes));
    }
}
