//! `cargo xtask bench`: a direct pipe to a program and the same program through Jackfield, in one run.
//!
//! Machines are noisy: the ways take turns in short rounds, and what counts is the difference between
//! two figures of the same run.

mod adapter;
mod bus;
mod figures;
mod fleet;
pub(crate) mod foreign;
mod hub;
mod own_agent;
mod talk;
mod way;

use crate::cargo::cargo;
use anyhow::Result;
pub(crate) use fleet::measure as measure_fleet;
use std::path::{Path, PathBuf};
use way::Bench;

/// What is measured unless parts are named, in the order of the tables.
const PARTS: [&str; 4] = ["--bus", "--hub", "--adapter", "--agent"];
/// What takes many minutes, and servers.
const FLEET: &str = "--fleet";

/// `None` for words that mean nothing.
pub(crate) fn run(words: &[&str]) -> Option<Result<()>> {
    let mut parts = Vec::new();
    let (mut peer, mut of_fleet) = (None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--peer" => peer = Some(Path::new(*words.next()?)),
            "--quick" => of_fleet.push(*word),
            "--only" | "--before" => of_fleet.extend([*word, words.next()?]),
            part if part == FLEET || PARTS.contains(&part) => parts.push(part),
            _ => return None,
        }
    }
    if parts.is_empty() {
        parts.extend(PARTS);
    }
    if !parts.contains(&FLEET) && !of_fleet.is_empty() {
        return None;
    }
    Some(measure(&parts, peer, &of_fleet))
}

fn measure(parts: &[&str], peer: Option<&Path>, of_fleet: &[&str]) -> Result<()> {
    let target = build(parts.contains(&FLEET))?;
    let (jackfield, agent) = (target.join("jackfield"), target.join("fake-agent"));
    if parts.contains(&"--bus") {
        bus::run(&jackfield, &target.join("bench-worker"), peer)?;
    }
    let mut bench = Bench::new(jackfield, agent)?;
    if parts.contains(&"--hub") {
        hub::run(&mut bench)?;
    }
    if parts.contains(&"--adapter") {
        adapter::run(&bench)?;
    }
    if parts.contains(&"--agent") {
        own_agent::run(&bench)?;
    }
    if parts.contains(&FLEET) {
        fleet::run(&target, of_fleet)?;
    }
    Ok(())
}

/// Builds what is measured, as users run it, and what measures a fleet; says where it is.
fn build(with_ours: bool) -> Result<PathBuf> {
    let mut packages = vec!["--package", "jackfield", "--package", "jackfield-testkit", "--bins"];
    if with_ours {
        packages.extend(["--package", "xtask"]);
    }
    cargo(&[&["build", "--release"], &packages[..]].concat(), &[])?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(std::path::absolute(target)?.join("release"))
}
