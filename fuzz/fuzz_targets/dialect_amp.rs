//! Lines in the dialect `amp`.
#![no_main]

mod dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dialect::play("amp", data));
