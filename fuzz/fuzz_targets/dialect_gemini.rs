//! Lines in the dialect `gemini`.
#![no_main]

mod dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dialect::play("gemini", data));
