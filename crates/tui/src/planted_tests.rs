//! Deliberate mistakes: `cargo xtask plant` checks that the property tests find each.

use std::{collections::BTreeMap, fs, path::Path};

/// Makes a mistake and fails if the test does not. The cases of a property are random, so it has some attempts.
#[cfg(planted_bugs)]
pub(crate) fn assert_found(name: &'static str, test: fn()) {
    use jackfield_protocol::planted_bugs::plant_bug;
    const ATTEMPTS: usize = 20;
    test();
    plant_bug(name);
    let is_found = (0..ATTEMPTS).any(|_| std::panic::catch_unwind(test).is_err());
    plant_bug("");
    assert!(is_found, "the test does not find `{name}`");
}

/// Counts the names after `call` in all files of a folder.
fn count_names(folder: &Path, call: &str, counts: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count_names(&path, call, counts);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for rest in text.split(&format!("{call}(\"")).skip(1) {
                let name = rest.split('"').next().unwrap_or_default();
                *counts.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
}

#[test]
fn each_planted_bug_has_one_hook_and_one_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut hooks, mut tests) = (BTreeMap::new(), BTreeMap::new());
    count_names(&folder, "is_planted", &mut hooks);
    count_names(&folder, "assert_found", &mut tests);
    assert!(hooks.len() >= 4 && hooks.values().all(|it| *it == 1), "{hooks:?}");
    assert_eq!(hooks, tests);
}
