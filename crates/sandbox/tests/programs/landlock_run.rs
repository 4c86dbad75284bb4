//! Runs a program in the Landlock sandbox: `landlock-run PLAN PROGRAM ARGS…`. The tests attack it.

use std::error::Error;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let [plan, program, args @ ..] = args.as_slice() else { return Err("usage".into()) };
    let plan = serde_json::from_str(plan.to_str().ok_or("the plan is not UTF-8")?)?;
    Ok(jackfield_sandbox::os::linux::landlock::run(&plan, program, args)?.into())
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    Err("Landlock is a part of Linux".into())
}
