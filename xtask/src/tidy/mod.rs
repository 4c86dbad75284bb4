//! The rules the compiler cannot check: one-way dependencies, small files that say what they are
//! for, documents that link to each other, nothing that names one person's machine.

mod layers;
mod named_tests;
mod prose;
mod retries;
mod source;
mod tracked;

use std::{collections::BTreeSet, fs, path::Path, process::ExitCode};

pub(crate) fn run() -> ExitCode {
    let files = match tracked::files() {
        Ok(files) => files,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut complaints = layers::check(Path::new("crates"));
    let (mut architecture, mut threat_model) = (String::new(), String::new());
    let mut functions = BTreeSet::new();
    for path in &files {
        // Not text, or gone since git listed it: nothing to read.
        let Ok(text) = fs::read_to_string(path) else { continue };
        match extension(path) {
            "rs" => {
                complaints.extend(source::check(path, &text));
                functions.extend(named_tests::functions(&text).map(str::to_owned));
            }
            "md" => complaints.extend(prose::check_links(path, &text)),
            _ => {}
        }
        complaints.extend(tracked::check_paths(path, &text));
        if path == retries::CONFIG {
            complaints.extend(retries::check(&text));
        }
        match path.as_str() {
            prose::ARCHITECTURE => architecture = text,
            named_tests::DOCUMENT => threat_model = text,
            _ => {}
        }
    }
    complaints.extend(prose::check_adrs(&files, &architecture));
    complaints.extend(named_tests::check(&threat_model, &functions));
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    println!("tidy: {} files, {} complaints", files.len(), complaints.len());
    ExitCode::from(u8::from(!complaints.is_empty()))
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}
