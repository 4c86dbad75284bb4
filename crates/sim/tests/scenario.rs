//! Runs the chapters of `spec/` against the hub.

use jackfield_sim::scenario::ScenarioBook;
use std::{fs, path::Path};

fn book() -> ScenarioBook {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec");
    let mut chapters: Vec<_> = fs::read_dir(folder)
        .expect("the chapters are there")
        .map(|it| it.expect("a folder can be read").path())
        .filter(|it| it.extension().is_some_and(|it| it == "md"))
        .collect();
    chapters.sort();
    let mut book = ScenarioBook::default();
    for chapter in chapters {
        let name = chapter.file_name().expect("a file has a name").to_string_lossy();
        let text = fs::read_to_string(&chapter).expect("a chapter is text");
        book.add_chapter(&format!("spec/{name}"), &text);
    }
    book
}

#[test]
fn every_scenario_holds() {
    let book = book();
    let mut failed = Vec::new();
    for heading in book.headings() {
        let result = std::panic::catch_unwind(|| book.run_scenario(heading));
        if result.is_err() {
            failed.push(heading);
        }
    }
    assert!(failed.is_empty(), "these scenarios do not hold: {failed:#?}");
    assert!(40 < book.headings().count(), "chapters are missing");
}
