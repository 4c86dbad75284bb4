//! The crates of the program, as `cargo tree` lists them, with the checksums of `Cargo.lock`.

use super::{super::output, Component, ComponentGraph};
use crate::{cargo::remove_run_variables, dist::stage};
use anyhow::{Context as _, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

pub(super) fn read() -> Result<ComponentGraph> {
    let checksums = read_checksums(&stage::read("Cargo.lock")?);
    let mut graph = parse_tree(&list("normal,build")?)?;
    let compiled_in = parse_tree(&list("normal,no-proc-macro")?)?;
    let compiled_in: BTreeSet<&String> = compiled_in.components.keys().collect();
    for (url, component) in &mut graph.components {
        component.checksum = checksums.get(url).cloned();
        component.is_build_only = !compiled_in.contains(url);
    }
    Ok(graph)
}

pub(super) fn package_url(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

fn list(edges: &str) -> Result<String> {
    let mut cargo = Command::new("cargo");
    remove_run_variables(&mut cargo);
    cargo.args(["tree", "--locked", "--package", "jackfield", "--edges", edges]);
    output(cargo.args(["--prefix", "depth", "--format", "|{p}|{l}|{r}|"]))
}

/// Lines such as `2|serde v1.0.0 (proc-macro)|MIT OR Apache-2.0|https://…|`, each below its parent. A crate is listed
/// with what it uses only once; later lines of it end with `(*)`.
fn parse_tree(text: &str) -> Result<ComponentGraph> {
    let mut graph = ComponentGraph::default();
    let mut parents: Vec<String> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [depth, package, license, repository, ..] = fields[..] else { continue };
        let depth: usize = depth.parse().with_context(|| format!("no depth in `{line}`"))?;
        let mut words = package.split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next().unwrap_or_default().trim_start_matches('v');
        let url = package_url(name, version);
        parents.truncate(depth);
        if let Some(parent) = parents.last() {
            graph.edges.entry(parent.clone()).or_default().insert(url.clone());
        }
        graph.edges.entry(url.clone()).or_default();
        graph.components.entry(url.clone()).or_insert_with(|| Component {
            name: name.to_owned(),
            version: version.to_owned(),
            // Older crates separate alternatives by a slash.
            license: license.replace('/', " OR ").replace("  OR  ", " OR "),
            repository: repository.to_owned(),
            ..Component::default()
        });
        parents.push(url);
    }
    Ok(graph)
}

/// The checksums by package URL.
fn read_checksums(lock: &str) -> BTreeMap<String, String> {
    let entries = lock.split("[[package]]").skip(1);
    let checksum = |entry: &str| {
        let value = |key: &str| {
            let start = format!("{key} = \"");
            let line = entry.lines().find_map(|it| it.strip_prefix(&start))?;
            Some(line.trim_end_matches('"').to_owned())
        };
        Some((package_url(&value("name")?, &value("version")?), value("checksum")?))
    };
    entries.filter_map(checksum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_gives_components_and_edges() {
        let tree = "0|a v0.1.0 (/src/a)|MIT||\n\
                    1|b v1.0.0 (proc-macro)|MIT/Apache-2.0|https://example.org/b|\n\
                    2|c v2.0.0|MIT||\n\
                    1|c v2.0.0|MIT|| (*)\n";
        let graph = parse_tree(tree).unwrap();
        assert_eq!(graph.components["pkg:cargo/b@1.0.0"].license, "MIT OR Apache-2.0");
        assert_eq!(graph.components.len(), 3);
        let uses: Vec<&String> = graph.edges["pkg:cargo/a@0.1.0"].iter().collect();
        assert_eq!(uses, ["pkg:cargo/b@1.0.0", "pkg:cargo/c@2.0.0"]);
        assert!(graph.edges["pkg:cargo/b@1.0.0"].contains("pkg:cargo/c@2.0.0"));
        assert!(graph.edges["pkg:cargo/c@2.0.0"].is_empty());
    }

    #[test]
    fn checksums_come_from_the_lock() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                    checksum = \"ab\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let checksums = read_checksums(lock);
        assert_eq!(checksums.get("pkg:cargo/a@1.0.0").map(String::as_str), Some("ab"));
        assert_eq!(checksums.len(), 1);
    }
}
