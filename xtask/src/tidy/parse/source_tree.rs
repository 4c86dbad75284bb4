//! The production code of the workspace: every file under `crates/*/src` without its tests.

use super::{
    items::{FileItems, TypeItem, find_items},
    test_items::remove_tests,
    tokens::{Token, closing_positions, tokenize},
};

/// Crates that are test code as a whole.
const TEST_CRATES: &[&str] = &["bench", "e2e", "fuzz-checks", "sim", "test-support"];

/// A file as it was read.
#[derive(Debug)]
pub(crate) struct SourceText {
    /// From the root of the checkout.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The production code of one file.
#[derive(Debug)]
pub(crate) struct SourceFile<'a> {
    pub(crate) path: &'a str,
    /// The folder of the crate: `hub` of `crates/hub`.
    pub(crate) crate_name: &'a str,
    /// Its module below the root of the crate: `a`, `b` of `src/a/b.rs`.
    pub(crate) modules: Vec<&'a str>,
    /// All lines, including comments and tests.
    pub(crate) lines: usize,
    pub(crate) test_lines: usize,
    pub(crate) tokens: Vec<Token<'a>>,
    /// The closing position of each opening delimiter in `tokens`.
    pub(crate) closings: Vec<usize>,
    pub(crate) items: FileItems<'a>,
}

#[derive(Debug)]
pub(crate) struct SourceTree<'a> {
    pub(crate) files: Vec<SourceFile<'a>>,
}

impl<'a> SourceTree<'a> {
    /// Files that are not production code are left out.
    pub(crate) fn parse(texts: &'a [SourceText]) -> Self {
        let mut files = Vec::new();
        let mut test_modules = Vec::new();
        for SourceText { path, text } in texts {
            let Some((crate_name, modules)) = locate(path) else { continue };
            let all = tokenize(text);
            let code = remove_tests(&all);
            for name in code.test_modules {
                test_modules.push((crate_name, [&modules[..], &[name]].concat()));
            }
            let closings = closing_positions(&code.tokens);
            files.push(SourceFile {
                path,
                crate_name,
                modules,
                lines: text.lines().count(),
                test_lines: code.test_lines,
                items: find_items(&code.tokens, &closings),
                tokens: code.tokens,
                closings,
            });
        }
        files.retain(|file| {
            let is_test = test_modules.iter().any(|(crate_name, modules)| {
                *crate_name == file.crate_name && file.modules.starts_with(modules)
            });
            !is_test && !file.tokens.is_empty()
        });
        Self { files }
    }

    /// The names of the crates, sorted, each once.
    pub(crate) fn crate_names(&self) -> Vec<&'a str> {
        let mut names: Vec<_> = self.files.iter().map(|it| it.crate_name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(crate) fn files_of<'b>(
        &'b self,
        crate_name: &'b str,
    ) -> impl Iterator<Item = &'b SourceFile<'a>> {
        self.files.iter().filter(move |it| it.crate_name == crate_name)
    }
}

impl<'a> SourceFile<'a> {
    pub(crate) fn public_types(&self) -> impl Iterator<Item = &TypeItem<'a>> {
        self.items.types.iter().filter(|it| it.is_public)
    }
}

/// The crate and the module of a file; none for what is not production code.
fn locate(path: &str) -> Option<(&str, Vec<&str>)> {
    let (crate_name, inside) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let stem = inside.strip_suffix(".rs")?;
    let mut modules: Vec<&str> = stem.split('/').collect();
    let is_test = modules.iter().any(|it| *it == "tests" || it.ends_with("_tests"));
    if is_test || crate_name.contains('/') || TEST_CRATES.contains(&crate_name) {
        return None;
    }
    if matches!(modules.last(), Some(&("mod" | "lib" | "main"))) {
        modules.pop();
    }
    Some((crate_name, modules))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SourceText {
        /// Files for tests: paths below `folder`, and their texts.
        pub(crate) fn from_pairs(folder: &str, files: &[(&str, &str)]) -> Vec<Self> {
            let text = |(path, text): &(&str, &str)| Self {
                path: format!("{folder}{path}"),
                text: (*text).to_owned(),
            };
            files.iter().map(text).collect()
        }
    }

    #[test]
    fn module_is_derived_from_the_path() {
        assert_eq!(locate("crates/hub/src/lib.rs"), Some(("hub", vec![])));
        assert_eq!(locate("crates/hub/src/a/mod.rs"), Some(("hub", vec!["a"])));
        assert_eq!(locate("crates/hub/src/a/b.rs"), Some(("hub", vec!["a", "b"])));
    }

    #[test]
    fn test_files_and_test_crates_are_left_out() {
        for path in [
            "crates/hub/src/a/tests.rs",
            "crates/hub/src/a/tests/b.rs",
            "crates/hub/src/file_tests.rs",
            "crates/hub/tests/main.rs",
            "crates/sim/src/lib.rs",
            "xtask/src/main.rs",
        ] {
            assert_eq!(locate(path), None, "{path}");
        }
    }

    #[test]
    fn modules_that_are_declared_as_tests_elsewhere_are_left_out() {
        let files = [
            ("journal/src/lib.rs", "mod memory;\n#[cfg(test)]\nmod contract;\n"),
            ("journal/src/contract/mod.rs", "mod model;"),
            ("journal/src/contract/model.rs", "struct Model;"),
            ("journal/src/memory.rs", "struct MemoryJournal;"),
            ("protocol/src/contract.rs", "struct Contract;"),
        ];
        let texts = SourceText::from_pairs("crates/", &files);
        let tree = SourceTree::parse(&texts);
        let paths: Vec<_> = tree.files.iter().map(|it| it.path).collect();
        let expected = ["lib.rs", "memory.rs"].map(|it| format!("crates/journal/src/{it}"));
        assert_eq!(paths[..2], expected);
        assert_eq!(paths[2..], ["crates/protocol/src/contract.rs"]);
        assert_eq!(tree.crate_names(), ["journal", "protocol"]);
    }
}
