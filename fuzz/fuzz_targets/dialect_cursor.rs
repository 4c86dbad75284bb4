//! Lines in the dialect `cursor`.
#![no_main]

mod dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dialect::play("cursor", data));
