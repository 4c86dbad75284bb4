//! Lines in the dialect `copilot`.
#![no_main]

mod dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dialect::play("copilot", data));
