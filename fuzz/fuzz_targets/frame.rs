//! `jackfield_fuzz_checks::frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::frame::check(data));
