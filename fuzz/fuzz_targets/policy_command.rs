//! `jackfield_fuzz_checks::policy_command`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jackfield_fuzz_checks::policy_command::check(data));
