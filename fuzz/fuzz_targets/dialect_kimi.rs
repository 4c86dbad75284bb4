//! Lines in the dialect `kimi`.
#![no_main]

mod dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dialect::play("kimi", data));
