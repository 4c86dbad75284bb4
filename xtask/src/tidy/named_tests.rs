//! Documents that say which test proves something name tests that exist.

use std::collections::BTreeSet;

/// The documents whose tables name tests.
pub(crate) const DOCUMENTS: [&str; 2] = ["docs/coming-from.md", "docs/threat-model.md"];

/// The names of the functions in a Rust file.
pub(crate) fn functions(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.lines().filter_map(|it| it.trim_start().split_once("fn "));
    starts.filter_map(|(_, rest)| rest.split(['(', '<']).next())
}

/// Complains about each name in the last column of a table that is no function.
pub(crate) fn check(path: &str, text: &str, known: &BTreeSet<String>) -> Vec<String> {
    let rows = text.lines().filter(|it| it.starts_with('|'));
    let cells = rows.filter_map(|it| it.trim_end_matches('|').rsplit('|').next());
    let names = cells.flat_map(|it| it.split('`').skip(1).step_by(2));
    let unknown = names.filter(|it| !known.contains(*it));
    unknown.map(|it| format!("{path}: there is no test `{it}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_is_no_function_is_reported() {
        let source = "    async fn one<T>() {\npub fn two(it: u8) {";
        let known: BTreeSet<String> = functions(source).map(str::to_owned).collect();
        assert_eq!(known, BTreeSet::from(["one".to_owned(), "two".to_owned()]));
        let text = "| what | why | test |\n|---|---|---|\n| `a` | `b` | `one`, `three` |\n`four`\n";
        assert_eq!(check("a.md", text, &known), ["a.md: there is no test `three`"]);
    }
}
