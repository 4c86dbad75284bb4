//! `jackfield_fuzz_checks::sse_read`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::sse_read::check(data));
