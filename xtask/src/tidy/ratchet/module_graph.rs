//! References between the modules of the first level of a crate.
//!
//! A reference is a path that starts with `crate` or leads to the root of the crate by `super`. A
//! name that the root re-exports is a reference to the module it comes from.

use super::super::parse::{SourceFile, SourceTree, Token, parse_use};
use std::collections::{BTreeMap, BTreeSet};

/// Which module refers to which, with the place of the first reference.
#[derive(Debug, Default)]
pub(crate) struct ModuleGraph<'a> {
    references: BTreeMap<(&'a str, &'a str), String>,
}

/// Modules that refer to each other, or one module of a longer cycle, and where.
#[derive(Debug, PartialEq)]
pub(crate) struct ModuleCycle {
    /// `a <-> b`, or `a (longer cycle)` for a module in a cycle of three or more.
    pub(crate) name: String,
    pub(crate) place: String,
}

/// What the paths of a crate can lead to.
struct CrateRoot<'a> {
    modules: BTreeSet<&'a str>,
    /// Names that the root re-exports, with the module they come from.
    exports: BTreeMap<&'a str, &'a str>,
}

impl<'a> ModuleGraph<'a> {
    pub(crate) fn build(tree: &SourceTree<'a>, crate_name: &str) -> Self {
        let root = CrateRoot::find(tree, crate_name);
        let mut graph = Self::default();
        for file in tree.files_of(crate_name) {
            // Programs in `src/bin` are crates of their own.
            let Some(source) = file.modules.first().copied().filter(|it| *it != "bin") else {
                continue;
            };
            for (path, line) in crate_paths(file) {
                if let Some(target) = root.resolve(&path).filter(|it| *it != source) {
                    let place = || format!("{}:{line}", file.path);
                    graph.references.entry((source, target)).or_insert_with(place);
                }
            }
        }
        graph
    }

    /// Every pair of modules that refer to each other, and every module of a longer cycle. A
    /// reference that is removed never adds an entry.
    pub(crate) fn find_cycles(&self) -> Vec<ModuleCycle> {
        let pairs = self.references.iter().filter_map(|((source, target), place)| {
            let back = self.references.get(&(*target, *source)).filter(|_| source < target)?;
            let name = format!("{source} <-> {target}");
            Some(ModuleCycle { name, place: format!("{place} and {back}") })
        });
        let mut targets = BTreeMap::<_, BTreeSet<_>>::new();
        for (source, target) in self.references.keys() {
            targets.entry(*source).or_default().insert(*target);
        }
        let longer = targets.keys().filter_map(|module| {
            let mut group = reachable(&targets, module);
            group.retain(|it| reachable(&targets, it).contains(module));
            let name = format!("{module} (longer cycle)");
            let inner = group.iter().find_map(|it| self.references.get(&(*module, *it)));
            let place = inner.filter(|_| 2 < group.len())?.clone();
            Some(ModuleCycle { name, place })
        });
        pairs.chain(longer).collect()
    }
}

/// The modules that can be reached from `start`; `start` itself only through a cycle.
fn reachable<'a>(
    references: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    start: &str,
) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&'a str> = references.get(start).into_iter().flatten().copied().collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(references.get(module).into_iter().flatten());
        }
    }
    found
}

impl<'a> CrateRoot<'a> {
    fn find(tree: &SourceTree<'a>, crate_name: &str) -> Self {
        let files = || tree.files_of(crate_name);
        let modules: BTreeSet<_> = files()
            .filter_map(|it| it.modules.first().copied())
            .filter(|it| *it != "bin")
            .collect();
        let mut exports = BTreeMap::new();
        for file in files().filter(|it| it.path.ends_with("/src/lib.rs")) {
            for (at, _) in file.tokens.iter().enumerate().filter(|(_, it)| it.text == "use") {
                for path in parse_use(&file.tokens[at + 1..]) {
                    let skipped = usize::from(["crate", "self"].contains(&path.segments[0]));
                    if let Some(module) = path.segments.get(skipped).and_then(|it| modules.get(it))
                    {
                        exports.insert(path.name, *module);
                    }
                }
            }
        }
        Self { modules, exports }
    }

    /// The module to which a path from the root leads.
    fn resolve(&self, path: &[&'a str]) -> Option<&'a str> {
        let first = path.first()?;
        self.modules.get(first).or_else(|| self.exports.get(first)).copied()
    }
}

/// The paths of a file that start at the root of its crate, without that start, with their lines.
fn crate_paths<'a>(file: &SourceFile<'a>) -> Vec<(Vec<&'a str>, usize)> {
    let text_at = |at: usize| file.tokens.get(at).map_or("", |it| it.text);
    let (mut paths, mut inline_modules) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < file.tokens.len() {
        inline_modules.retain(|end| at < *end);
        if text_at(at) == "mod" && text_at(at + 2) == "{" {
            inline_modules.push(file.closings[at + 2]);
        }
        let depth = file.modules.len() + inline_modules.len();
        let line = file.tokens[at].line;
        if text_at(at) == "use" && text_at(at + 1) != "<" {
            let found = parse_use(&file.tokens[at + 1..]);
            let found = found.into_iter().filter_map(|it| from_root(&it.segments, depth));
            paths.extend(found.map(|it| (it, line)));
            while at < file.tokens.len() && text_at(at) != ";" {
                at += 1;
            }
        } else if ["crate", "super"].contains(&text_at(at)) && !is_visibility(file, at) {
            let mut segments = vec![text_at(at)];
            while text_at(at + 1) == "::"
                && file.tokens.get(at + 2).is_some_and(Token::is_identifier)
            {
                segments.push(text_at(at + 2));
                at += 2;
            }
            paths.extend(from_root(&segments, depth).map(|it| (it, line)));
        }
        at += 1;
    }
    paths
}

/// `pub(in crate::a)` is not a reference to `a`.
fn is_visibility(file: &SourceFile<'_>, at: usize) -> bool {
    let before: Vec<_> = file.tokens[at.saturating_sub(3)..at].iter().map(|it| it.text).collect();
    before == ["pub", "(", "in"]
}

/// The rest of a path that leads to the root of the crate from a module at this depth.
fn from_root<'a>(segments: &[&'a str], depth: usize) -> Option<Vec<&'a str>> {
    let relative = segments.strip_prefix(&["self"]).unwrap_or(segments);
    let supers = relative.iter().take_while(|it| **it == "super").count();
    match segments.first() {
        Some(&"crate") => Some(segments[1..].to_vec()),
        _ if 0 < supers && supers == depth => Some(relative[supers..].to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::parse::SourceText, *};

    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let texts = SourceText::from_pairs("crates/hub/src/", files);
        let tree = SourceTree::parse(&texts);
        ModuleGraph::build(&tree, "hub").find_cycles().into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn modules_that_refer_one_way_have_no_cycle() {
        let a = ("a.rs", "use crate::{b::B, c}; fn d() { super::c::e(); }");
        let b = ("b.rs", "use super::c::C; pub(in crate::a) struct B;");
        assert_eq!(cycles(&[a, b, ("c.rs", "use self::d::E; use std::fmt;")]), [""; 0]);
    }

    #[test]
    fn pair_is_found_through_imports_paths_and_parents() {
        let a = ("a/mod.rs", "use crate::b::B;");
        assert_eq!(cycles(&[a, ("b.rs", "fn c() { crate::a::d() }")]), ["a <-> b"]);
        assert_eq!(cycles(&[a, ("b.rs", "fn c(it: super::a::D) {}")]), ["a <-> b"]);
        let inner = ("a/inner.rs", "use super::super::b::B; use super::b;");
        assert_eq!(cycles(&[inner, ("b.rs", "use crate::{c::D, a::{E, F}};")]), ["a <-> b"]);
        let inline = ("a.rs", "mod inner { use super::super::b::B; use super::b; }");
        assert_eq!(cycles(&[inline, ("b.rs", "use crate::a;")]), ["a <-> b"]);
    }

    #[test]
    fn name_that_the_root_exports_leads_to_its_module() {
        let root = ("lib.rs", "mod a; mod b; pub use a::{A, Other as Renamed}; pub use b::B;");
        let a = ("a.rs", "use crate::B;");
        assert_eq!(cycles(&[root, a, ("b.rs", "use crate::Renamed;")]), ["a <-> b"]);
        assert_eq!(cycles(&[root, a, ("b.rs", "use crate::Unknown;")]), [""; 0]);
    }

    #[test]
    fn longer_cycle_is_found_and_tests_do_not_count() {
        let files = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;")];
        let [a, b] = files;
        let expected = ["a (longer cycle)", "b (longer cycle)", "c (longer cycle)"];
        assert_eq!(cycles(&[a, b, ("c.rs", "use crate::a::A;")]), expected);
        let test = ("c.rs", "#[cfg(test)] mod tests { use crate::a::A; }");
        assert_eq!(cycles(&[a, b, test]), [""; 0]);
    }
}
