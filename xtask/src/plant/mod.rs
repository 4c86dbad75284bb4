//! `cargo xtask plant`: puts known bugs into copies of the hub, the bus and the gateway, one at a time, and checks that
//! the simulator finds each. Each core has a copy of its own: most of the time goes to building.

mod bugs;
mod bus_bugs;
mod fleet_bugs;
mod gateway_bugs;
mod tenant_bugs;

use crate::cargo::target_folder;
use bugs::{BUGS, Bug, Edit};
use bus_bugs::BUS_BUGS;
use fleet_bugs::FLEET_BUGS;
use gateway_bugs::GATEWAY_BUGS;
use std::{
    fs, io,
    num::NonZero,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};
use tenant_bugs::TENANT_BUGS;

/// A bug that hides for longer than this hides too well.
const SEEDS: &str = "20000";

/// The clean copy must hold for this long, or finding a bug in another means nothing.
const CONTROL: &str = "1000";

/// What a copy needs to build the simulator.
const PARTS: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "rustfmt.toml",
    "clippy.toml",
    "fixtures/acp",
    "crates/policy",
    "crates/wire",
    "crates/core",
    "crates/testkit",
];

fn all() -> impl Iterator<Item = &'static Bug> {
    BUGS.iter().chain(FLEET_BUGS).chain(TENANT_BUGS).chain(BUS_BUGS).chain(GATEWAY_BUGS)
}

enum Outcome {
    Found { seed: String, invariant: String },
    Missed,
    Broken(String),
}

pub(crate) fn run(names: &[&str]) -> ExitCode {
    let wanted = |bug: &&Bug| names.is_empty() || names.contains(&bug.name);
    let bugs: Vec<&Bug> = all().filter(wanted).collect();
    if bugs.is_empty() {
        let names: Vec<&str> = all().map(|it| it.name).collect();
        eprintln!("no such bug; there are: {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    let copies = thread::available_parallelism().map_or(1, NonZero::get).min(bugs.len());
    let copies: io::Result<Vec<_>> = (0..copies).map(WorkspaceCopy::prepare).collect();
    let copies = match copies {
        Ok(copies) => copies,
        Err(error) => {
            eprintln!("error: the copy could not be made: {error}");
            return ExitCode::FAILURE;
        }
    };
    if !matches!(copies[0].search_seeds(CONTROL), Ok(Outcome::Missed)) {
        eprintln!("error: the simulator fails without any bug planted: try `cargo xtask sim`");
        return ExitCode::FAILURE;
    }
    let mut outcomes = plant_all(&bugs, &copies);
    outcomes.sort_by_key(|(index, _)| *index);
    let mut missed = 0;
    println!("| bug | what it breaks | found by | seeds until found | command |");
    println!("|---|---|---|---|---|");
    for (index, outcome) in outcomes {
        let (found_by, seeds) = match outcome {
            Ok(Outcome::Found { seed, invariant }) => (format!("`{invariant}`"), seed),
            Ok(Outcome::Missed) => ("**nothing**".to_owned(), format!("not in {SEEDS}")),
            Ok(Outcome::Broken(why)) => ("**does not apply**".to_owned(), why),
            Err(error) => ("**could not run**".to_owned(), error.to_string()),
        };
        missed += u32::from(found_by.starts_with("**"));
        let Bug { name, breaks, .. } = bugs[index];
        println!("| {name} | {breaks} | {found_by} | {seeds} | `cargo xtask plant {name}` |");
    }
    ExitCode::from(u8::from(0 < missed))
}

/// What became of a bug, with its place in the list.
type PlantedBug = (usize, io::Result<Outcome>);

/// Plants each bug in the next copy that is free.
fn plant_all(bugs: &[&Bug], copies: &[WorkspaceCopy]) -> Vec<PlantedBug> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for copy in copies {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(bug) = bugs.get(index) else { return };
                    let start = Instant::now();
                    let outcome = copy.plant(bug);
                    let seconds = start.elapsed().as_secs();
                    eprintln!("{}: {seconds} s, {} of {}", bug.name, index + 1, bugs.len());
                    outcomes.lock().expect("no thread panics").push((index, outcome));
                }
            });
        }
    });
    outcomes.into_inner().expect("no thread panics")
}

/// A copy of the workspace in which bugs are planted. It is under `target`, and so is what is built from it: only the
/// crates above the bug are compiled again for the next one.
struct WorkspaceCopy {
    root: PathBuf,
    target: PathBuf,
}

impl WorkspaceCopy {
    fn prepare(number: usize) -> io::Result<WorkspaceCopy> {
        let target = fs::canonicalize(target_folder())?.join(format!("planted-{number}"));
        let root = target.join("workspace");
        for part in PARTS {
            mirror(Path::new(part), &root.join(part))?;
        }
        fs::create_dir_all(root.join("search/src"))?;
        write(&root.join("search/Cargo.toml"), SEARCH_MANIFEST)?;
        write(&root.join("search/src/main.rs"), SEARCH_PROGRAM)?;
        let manifest = fs::read_to_string("Cargo.toml")?;
        let members = r#"members = ["crates/policy", "crates/wire", "crates/core", "crates/testkit", "search"]"#;
        let manifest = manifest.replace(r#"members = ["crates/*", "xtask"]"#, members);
        // Most bugs are found within a hundred seeds: building takes longer than searching.
        let manifest = manifest.replace("opt-level = 2", "opt-level = 1");
        write(&root.join("Cargo.toml"), &manifest)?;
        Ok(WorkspaceCopy { root, target })
    }

    fn plant(&self, bug: &Bug) -> io::Result<Outcome> {
        // The copy was made once: the workspace may change while this runs.
        let mut clean = Vec::new();
        for Edit { file, old, .. } in bug.edits {
            let text = fs::read_to_string(self.root.join(file))?;
            let times = text.matches(old).count();
            if times != 1 {
                return Ok(Outcome::Broken(format!("`{}` stands {times} times", old.trim())));
            }
            clean.push(text);
        }
        for (Edit { file, old, new }, text) in bug.edits.iter().zip(&clean) {
            write(&self.root.join(file), text.replacen(old, new, 1))?;
        }
        let outcome = self.search_seeds(SEEDS);
        for (Edit { file, .. }, text) in bug.edits.iter().zip(&clean) {
            write(&self.root.join(file), text)?;
        }
        outcome
    }

    fn search_seeds(&self, seeds: &str) -> io::Result<Outcome> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "--quiet", "--offline", "--package", "search", "--", seeds]);
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        let output = cargo.output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = said.split_whitespace();
        Ok(match (words.next(), words.next(), words.next()) {
            (Some("found"), Some(seed), Some(invariant)) => {
                Outcome::Found { seed: seed.to_owned(), invariant: invariant.to_owned() }
            }
            (Some("missed"), ..) => Outcome::Missed,
            _ => Outcome::Broken(first_error(&String::from_utf8_lossy(&output.stderr))),
        })
    }
}

fn first_error(text: &str) -> String {
    text.lines().find(|it| it.starts_with("error")).unwrap_or("it says nothing").to_owned()
}

/// Makes `to` like `from`, and leaves alone what is like it already: cargo looks at the times.
fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_file() {
        return write(to, &fs::read(from)?);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        let gone = !from.join(entry.file_name()).exists();
        match entry.file_type()?.is_dir() {
            true if gone => fs::remove_dir_all(entry.path())?,
            false if gone => fs::remove_file(entry.path())?,
            _ => {}
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        mirror(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == text.as_ref()) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

const SEARCH_MANIFEST: &str = r#"[package]
name = "search"
edition.workspace = true
version.workspace = true
publish.workspace = true

[dependencies]
jackfield-testkit.workspace = true
"#;

/// Runs seeds from 0 on until one fails.
const SEARCH_PROGRAM: &str = r#"//! Looks for a planted bug.
use jackfield_testkit::worlds::WORLDS;

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|it| it.parse().ok()).expect("a number");
    std::panic::set_hook(Box::new(|_| {}));
    for seed in 0..seeds {
        for world in WORLDS {
            if let Err(failure) = (world.run)(seed, world.steps) {
                println!("found {} {}", seed + 1, failure.invariant);
                return;
            }
        }
    }
    println!("missed");
}
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// To plant them all takes most of an hour; to see that each edit applies takes a moment.
    #[test]
    fn every_bug_can_still_be_planted_and_has_a_name_of_its_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (mut names, mut outdated) = (BTreeSet::new(), Vec::new());
        for Bug { name, edits, .. } in all() {
            assert!(names.insert(name), "two bugs are called `{name}`");
            for Edit { file, old, new } in *edits {
                let text = fs::read_to_string(root.join(file)).unwrap();
                let times = text.matches(old).count();
                if times != 1 {
                    outdated.push(format!("{name}: `{}` is {times} times in {file}", old.trim()));
                }
                assert_ne!(old, new, "{name} changes nothing");
            }
        }
        assert!(outdated.is_empty(), "{}", outdated.join("\n"));
    }
}
