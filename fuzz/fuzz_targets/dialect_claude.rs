//! `jackfield_fuzz_checks::dialect`, for the dialect `claude`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::dialect::check("claude", data));
