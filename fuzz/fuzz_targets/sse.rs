//! `jackfield_fuzz_checks::sse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::sse::check(data));
