//! Inputs to start from, and mutations of them.

use jackfield_test_support::rng::Rng;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Mutated inputs per target: a second or two in a test build.
pub(crate) const ROUNDS: usize = 1_000;

/// A mutated input is no longer than this: long recordings would take all the time.
const BYTES_MAX: usize = 8 * 1024;

/// The corpus of a fuzz target, what the program of a dialect printed, and an empty input.
pub(crate) fn collect(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = files_in(&root.join("fuzz/corpus").join(target));
    if let Some(dialect) = target.strip_prefix("dialect_") {
        let program = dialect.split('_').next().unwrap_or(dialect);
        for version in files_in(&root.join("crates/adapters/fixtures").join(program)) {
            let recorded = files_in(&version).into_iter();
            files.extend(recorded.filter(|it| it.extension().is_some_and(|it| it == "stdout")));
        }
    }
    files.sort();
    let read = files.iter().filter(|it| it.is_file()).map(|it| fs::read(it).expect("readable"));
    read.chain([Vec::new()]).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect()
}

/// A few random edits of one of the inputs.
pub(crate) fn mutate(inputs: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = window(&inputs[rng.index(inputs.len())], rng).to_vec();
    for _ in 0..=rng.index(4) {
        let at = rng.index(input.len() + 1);
        match rng.index(5) {
            0 => input.truncate(at),
            1 => input.insert(at, u8::try_from(rng.below(256)).expect("below 256")),
            2 if at < input.len() => input[at] ^= 1 << rng.index(8),
            3 if at < input.len() => drop(input.remove(at)),
            _ => {
                let other = window(&inputs[rng.index(inputs.len())], rng);
                let piece = &other[..rng.index(other.len().min(200) + 1)];
                input.splice(at..at, piece.iter().copied());
            }
        }
    }
    input.truncate(BYTES_MAX);
    input
}

/// A part of a long input that starts at a line, or the whole of a short one.
fn window<'a>(input: &'a [u8], rng: &mut Rng) -> &'a [u8] {
    if input.len() <= BYTES_MAX {
        return input;
    }
    let from = rng.index(input.len() - BYTES_MAX / 2);
    let line = input[from..].iter().position(|it| *it == b'\n').map_or(from, |it| from + it + 1);
    let tail = &input[line..];
    &tail[..tail.len().min(BYTES_MAX)]
}
