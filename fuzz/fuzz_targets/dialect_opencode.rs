//! Lines in the dialect `opencode`.
#![no_main]

mod dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dialect::play("opencode", data));
