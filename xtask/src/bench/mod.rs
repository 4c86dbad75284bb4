//! `cargo xtask bench`: a direct pipe to a program and the same program through Jackfield, in one run.
//!
//! Machines are noisy: the ways take turns in short rounds, and what counts is the difference between
//! two figures of the same run.

mod adapter;
mod bus;
mod figures;
pub(crate) mod foreign;
mod hub;
mod own_agent;
mod talk;
mod way;

use crate::cargo::cargo;
use anyhow::Result;
use std::path::{Path, PathBuf};
use way::Bench;

/// What can be measured, in the order of the tables.
const PARTS: [&str; 4] = ["--bus", "--hub", "--adapter", "--agent"];

/// `None` for words that mean nothing.
pub(crate) fn run(words: &[&str]) -> Option<Result<()>> {
    let mut parts = Vec::new();
    let mut peer = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--peer" => peer = Some(Path::new(*words.next()?)),
            part if PARTS.contains(&part) => parts.push(part),
            _ => return None,
        }
    }
    if parts.is_empty() {
        parts.extend(PARTS);
    }
    Some(measure(&parts, peer))
}

fn measure(parts: &[&str], peer: Option<&Path>) -> Result<()> {
    let target = build()?;
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
    Ok(())
}

/// Builds what is measured, as users run it; says where it is.
fn build() -> Result<PathBuf> {
    let packages = ["--package", "jackfield", "--package", "jackfield-testkit", "--bins"];
    cargo(&[&["build", "--release"], &packages[..]].concat(), &[])?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(std::path::absolute(target)?.join("release"))
}
