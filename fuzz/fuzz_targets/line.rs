//! `jackfield_fuzz_checks::line`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::line::check(data));
