//! Lines in the dialect `qwen`.
#![no_main]

mod dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dialect::play("qwen", data));
