//! Documents: every decision is reachable from the architecture, every local link leads somewhere.

use std::path::{Component, Path, PathBuf};

pub(super) const ARCHITECTURE: &str = "ARCHITECTURE.md";
const ADRS: &str = "docs/adr/";

/// Complaints about decisions that `architecture` does not link to, and about two with one number.
pub(super) fn check_adrs(files: &[String], architecture: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut last = "";
    for path in files.iter().filter(|it| it.starts_with(ADRS) && super::extension(it) == "md") {
        let number = path[ADRS.len()..].split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|it| it.is_ascii_digit()) {
            complaints.push(format!("{path}: name it `NNNN-what-was-decided.md`"));
        }
        if number == last {
            complaints.push(format!("{path}: the number {number} is taken"));
        }
        last = number;
        if !links(architecture).any(|(_, it)| it == path) {
            complaints.push(format!("{ARCHITECTURE}: has no link to {path}"));
        }
    }
    complaints
}

/// Complaints about links in a document that lead to no file.
pub(super) fn check_links(path: &str, text: &str) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    links(text)
        .filter(|(_, target)| !target.contains(':') && !target.starts_with('#'))
        .filter(|(_, target)| {
            let file = target.split('#').next().unwrap_or_default();
            !plain(&folder.join(file)).exists()
        })
        .map(|(number, target)| format!("{path}:{number}: `{target}` leads nowhere"))
        .collect()
}

/// The targets of `[text](target)` with their line numbers, outside of code blocks.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    let prose = (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    });
    prose.flat_map(|(number, line)| {
        line.split("](").skip(1).filter_map(move |rest| Some((number, rest.split_once(')')?.0)))
    })
}

/// The path without `.` and `..`, so that it can be looked up through folders that do not exist.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adrs(names: &[&str]) -> Vec<String> {
        names.iter().map(|it| format!("{ADRS}{it}")).collect()
    }

    #[test]
    fn a_linked_decision_is_fine_and_a_forgotten_one_is_reported() {
        let files = adrs(&["0001-a.md", "0002-b.md"]);
        let complaints = check_adrs(&files, "See [a](docs/adr/0001-a.md).");
        assert_eq!(complaints, ["ARCHITECTURE.md: has no link to docs/adr/0002-b.md"]);
    }

    #[test]
    fn two_decisions_with_one_number_are_refused() {
        let files = adrs(&["0001-a.md", "0001-b.md"]);
        let architecture = "[a](docs/adr/0001-a.md) [b](docs/adr/0001-b.md)";
        assert_eq!(check_adrs(&files, architecture).len(), 1);
    }

    #[test]
    fn a_decision_without_a_number_is_refused() {
        let complaints = check_adrs(&adrs(&["why.md"]), "[a](docs/adr/why.md)");
        assert_eq!(complaints, ["docs/adr/why.md: name it `NNNN-what-was-decided.md`"]);
    }

    #[test]
    fn links_in_code_blocks_are_not_links() {
        let text = "[a](b.md) and [c](d.md#e)\n```\n[x](y.md)\n```\n[f](g.md)\n";
        let found: Vec<_> = links(text).collect();
        assert_eq!(found, [(1, "b.md"), (1, "d.md#e"), (5, "g.md")]);
    }

    #[test]
    fn only_local_links_that_lead_nowhere_are_reported() {
        let text = "[a](https://example.org) [b](#here) [c](Cargo.toml)\n[d](no-such-file.md)\n";
        let complaints = check_links("x.md", text);
        assert_eq!(complaints, ["x.md:2: `no-such-file.md` leads nowhere"]);
    }

    #[test]
    fn a_path_is_made_plain() {
        assert_eq!(plain(Path::new("docs/adr/../../README.md")), Path::new("README.md"));
    }
}
