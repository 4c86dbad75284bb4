//! The rules the compiler cannot check: one-way dependencies, small files, a `//!` at the top of
//! each, names that say where a line lives.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Each crate and the only crates of ours it may name, in the order of the flow.
const LAYERS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("core", &["wire"]),
    ("journal", &[]),
    ("agents", &["wire"]),
    ("clients", &["wire"]),
    ("daemon", &["wire", "core", "journal", "agents", "clients"]),
    ("cli", &["wire", "daemon", "agents", "clients", "journal"]),
    ("testkit", &["wire", "core"]),
    ("e2e", &["wire", "journal", "testkit"]),
];

const LINES_WARN: usize = 400;
const LINES_MAX: usize = 600;

/// Names that say nothing about what is inside.
const REFUSED_NAMES: &[&str] =
    &["utils", "util", "helpers", "common", "types", "misc", "manager", "service", "processor"];

pub(crate) fn run() -> ExitCode {
    let mut complaints = Vec::new();
    check_layers(&mut complaints);
    for root in ["crates", "xtask", "fuzz/fuzz_targets"] {
        for file in rust_files(Path::new(root)) {
            check_file(&file, &mut complaints);
        }
    }
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    ExitCode::from(u8::from(!complaints.is_empty()))
}

fn check_layers(complaints: &mut Vec<String>) {
    for entry in fs::read_dir("crates").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((_, allowed)) = LAYERS.iter().find(|(it, _)| *it == name) else {
            complaints.push(format!("crates/{name}: has no row in LAYERS (xtask/src/tidy.rs)"));
            continue;
        };
        let manifest = entry.path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap_or_default();
        for dependency in ours(&text) {
            if !allowed.contains(&dependency) {
                let manifest = manifest.display();
                complaints.push(format!("{manifest}: `{name}` may not depend on `{dependency}`"));
            }
        }
    }
}

/// The crates of ours that a manifest names as dependencies; dev-dependencies count too.
fn ours(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter_map(|key| key.strip_prefix("jackfield-"))
}

fn check_file(path: &Path, complaints: &mut Vec<String>) {
    let shown = path.display();
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().count();
    if LINES_MAX < lines {
        complaints.push(format!("{shown}: {lines} lines, more than {LINES_MAX}"));
    } else if LINES_WARN < lines {
        println!("tidy: note: {shown}: {lines} lines, more than {LINES_WARN}");
    }
    if !text.starts_with("//!") {
        complaints.push(format!("{shown}: say in a `//!` line what this file is for"));
    }
    let stem = path.file_stem().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    if REFUSED_NAMES.contains(&stem.as_str()) {
        complaints.push(format!("{shown}: `{stem}` does not say what is inside"));
    }
    for (index, line) in text.lines().enumerate() {
        let marker = ["TO", "DO"].concat();
        if line.contains(&marker) {
            complaints.push(format!("{shown}:{}: `{marker}` has no place here", index + 1));
        }
    }
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_none_or(|it| it != "target") {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}
