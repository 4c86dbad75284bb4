//! The rules the compiler cannot check: one-way dependencies, small files that say what they are
//! for, documents that link to each other, nothing that names one person's machine, names that a
//! reader of the ACP specification understands.

mod layers;
mod named_tests;
mod parse;
mod prose;
mod purity;
mod ratchet;
mod report;
mod retries;
mod source;
mod systems;
mod tracked;
mod workflows;

use anyhow::{Result, bail};
use parse::{SourceText, SourceTree};
use std::{collections::BTreeSet, fs, path::Path};

/// Checks every rule; fails if there is a complaint.
pub(crate) fn check() -> Result<()> {
    let files = tracked::files()?;
    let complaints = find_complaints(&files);
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    println!("tidy: {} files, {} complaints", files.len(), complaints.len());
    if complaints.is_empty() { Ok(()) } else { bail!("the tree is not tidy") }
}

/// Prints figures about the production code.
pub(crate) fn print_report(format: ReportFormat) -> Result<()> {
    let texts = read_sources(&tracked::files()?);
    let tree = SourceTree::parse(&texts);
    let (violations, _) = ratchet::find_violations(&tree, ratchet::ALLOWED);
    let report = report::measure(&tree, &violations);
    match format {
        ReportFormat::Table => print!("{}", report::to_table(&report)),
        ReportFormat::Json => print!("{}", report::to_json(&report)),
    }
    Ok(())
}

/// How figures are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReportFormat {
    Table,
    Json,
}

/// Removes fixed violations from the baseline.
pub(crate) fn write_baseline() -> Result<()> {
    let texts = read_sources(&tracked::files()?);
    ratchet::write_baseline(&SourceTree::parse(&texts)).map_err(anyhow::Error::msg)
}

/// The Rust files of the crates.
fn read_sources(files: &[String]) -> Vec<SourceText> {
    let sources = files.iter().filter(|it| it.starts_with("crates/") && extension(it) == "rs");
    // Gone since git listed it: nothing to read.
    let texts = sources.filter_map(|path| Some((path, fs::read_to_string(path).ok()?)));
    texts.map(|(path, text)| SourceText { path: path.clone(), text }).collect()
}

fn find_complaints(files: &[String]) -> Vec<String> {
    let mut complaints = layers::check(Path::new("crates"));
    let (mut architecture, mut naming_tests) = (String::new(), Vec::new());
    let mut functions = BTreeSet::new();
    for path in files {
        // Not text, or gone since git listed it: nothing to read.
        let Ok(text) = fs::read_to_string(path) else { continue };
        match extension(path) {
            "rs" => {
                complaints.extend(source::check(path, &text));
                complaints.extend(purity::check(path, &text));
                complaints.extend(systems::check(path, &text));
                functions.extend(named_tests::functions(&text).map(str::to_owned));
            }
            "md" => complaints.extend(prose::check_links(path, &text)),
            _ => {}
        }
        complaints.extend(tracked::check_paths(path, &text));
        if path == retries::CONFIG {
            complaints.extend(retries::check(&text));
        }
        if path.starts_with(workflows::FOLDER) {
            complaints.extend(workflows::check(path, &text));
        }
        match path.as_str() {
            prose::ARCHITECTURE => architecture = text,
            it if named_tests::DOCUMENTS.contains(&it) => naming_tests.push((it, text)),
            _ => {}
        }
    }
    complaints.extend(prose::check_adrs(files, &architecture));
    let named = naming_tests.iter();
    complaints.extend(named.flat_map(|(path, text)| named_tests::check(path, text, &functions)));
    complaints.extend(ratchet::check(&SourceTree::parse(&read_sources(files))));
    complaints
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}
