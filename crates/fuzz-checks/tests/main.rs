//! Every property holds for the committed corpus of its fuzz target, for recorded output of real programs, and for
//! mutations of both under a fixed seed.

mod inputs;

use inputs::{ROUNDS, collect, mutate};
use jackfield_fuzz_checks::{
    dialect, frame, line, policy_command, policy_input, policy_rules, splice, sse, sse_read,
};
use jackfield_test_support::rng::Rng;
use std::{collections::BTreeSet, fs, path::Path};

/// One test per fuzz target, under the name of the target.
macro_rules! check_targets {
    ($($target:ident => $check:expr;)*) => {
        const TARGETS: &[&str] = &[$(stringify!($target)),*];
        $(
            #[test]
            fn $target() {
                try_inputs(stringify!($target), $check);
            }
        )*
    };
}

check_targets! {
    dialect_amp => |data| dialect::check("amp", data);
    dialect_claude => |data| dialect::check("claude", data);
    dialect_codex => |data| dialect::check("codex", data);
    dialect_codex_app_server => |data| dialect::check("codex-app-server", data);
    dialect_copilot => |data| dialect::check("copilot", data);
    dialect_cursor => |data| dialect::check("cursor", data);
    dialect_gemini => |data| dialect::check("gemini", data);
    dialect_grok => |data| dialect::check("grok", data);
    dialect_kimi => |data| dialect::check("kimi", data);
    dialect_opencode => |data| dialect::check("opencode", data);
    dialect_pi => |data| dialect::check("pi", data);
    dialect_plain => |data| dialect::check("plain", data);
    dialect_qwen => |data| dialect::check("qwen", data);
    frame => frame::check;
    line => line::check;
    policy_command => policy_command::check;
    policy_input => policy_input::check;
    policy_rules => policy_rules::check;
    splice => splice::check;
    sse => sse::check;
    sse_read => sse_read::check;
}

/// The panic of a broken property is preceded by the input, as a Rust literal.
fn try_inputs(target: &str, check: fn(&[u8])) {
    let inputs = collect(target);
    for input in &inputs {
        check(input);
    }
    let mut rng = Rng::new(1);
    for round in 0..ROUNDS {
        let input = mutate(&inputs, &mut rng);
        let outcome = std::panic::catch_unwind(|| check(&input));
        assert!(outcome.is_ok(), "round {round}: b\"{}\"", input.escape_ascii());
    }
}

#[test]
fn every_fuzz_target_is_tried_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let files = fs::read_dir(folder).expect("the fuzz targets are in the checkout").flatten();
    let stem = |it: fs::DirEntry| it.path().file_stem().map(|it| it.to_string_lossy().into_owned());
    let names: BTreeSet<String> = files.filter_map(stem).collect();
    assert_eq!(names, TARGETS.iter().map(ToString::to_string).collect());
}
