//! `jackfield_fuzz_checks::policy_rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::policy_rules::check(data));
