//! Lines in the dialect `codex`.
#![no_main]

mod dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dialect::play("codex", data));
