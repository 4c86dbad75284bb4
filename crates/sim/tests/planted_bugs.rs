//! The table of planted bugs against the hooks in the code.

use jackfield_sim::planted_bugs::PLANTED_BUGS;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Counts the hooks below this folder by name.
fn count_hooks(folder: &Path, counts: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path: PathBuf = entry.expect("it can be listed").path();
        if path.is_dir() {
            count_hooks(&path, counts);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("it can be read");
            for rest in text.split("is_planted(\"").skip(1) {
                let name = rest.split('"').next().unwrap_or_default();
                *counts.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
}

#[test]
fn each_planted_bug_has_one_hook_and_each_hook_is_listed() {
    let mut counts = BTreeMap::new();
    for name in ["bus", "events", "fleet", "hub", "hub-client"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        count_hooks(&folder, &mut counts);
    }
    let listed = PLANTED_BUGS.iter().map(|it| (it.name.to_owned(), 1));
    assert_eq!(counts, listed.collect::<BTreeMap<_, _>>());
}
