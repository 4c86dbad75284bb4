//! `jackfield_fuzz_checks::splice`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::splice::check(data));
