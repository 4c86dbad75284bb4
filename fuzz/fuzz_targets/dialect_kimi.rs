//! `jackfield_fuzz_checks::dialect`, for the dialect `kimi`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::dialect::check("kimi", data));
