//! `jackfield-PLATFORM.cdx.json`: what the program is made of, in the format `CycloneDX`. It has the crates that are
//! compiled into the program or run when it is built, and the scripts that the web console bundles.
//!
//! It has no time and no serial number, so the same commit gives the same file.

mod crates;
mod scripts;

use super::{DistOptions, VERSION, platform};
use anyhow::{Context as _, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

/// The components by their package URL, and which of them each one uses.
#[derive(Debug, Default)]
struct ComponentGraph {
    components: BTreeMap<String, Component>,
    edges: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: String,
    repository: String,
    /// SHA-256 of the package, in hexadecimal.
    checksum: Option<String>,
    /// It only runs when the program is built.
    pub(super) is_build_only: bool,
}

impl Component {
    pub(super) fn is_own(&self) -> bool {
        self.name.starts_with("jackfield") && self.version == VERSION
    }
}

/// All components, sorted by package URL.
pub(super) fn read_components() -> Result<Vec<Component>> {
    Ok(read_graph()?.components.into_values().collect())
}

fn read_graph() -> Result<ComponentGraph> {
    let mut graph = crates::read()?;
    scripts::add(&mut graph, &program_url())?;
    Ok(graph)
}

fn program_url() -> String {
    crates::package_url("jackfield", VERSION)
}

pub(super) fn write(options: &DistOptions) -> Result<()> {
    let (graph, program) = (read_graph()?, program_url());
    let path = options.out.join(format!("jackfield-{}.cdx.json", platform()));
    fs::write(&path, print(&graph, &program))
        .with_context(|| format!("failed to write {}", path.display()))
}

fn print(graph: &ComponentGraph, program: &str) -> String {
    let others = graph.components.iter().filter(|(url, _)| *url != program);
    let components: Vec<String> =
        others.map(|(url, it)| print_component(url, it, "library")).collect();
    let program_text = graph
        .components
        .get(program)
        .map(|it| print_component(program, it, "application"))
        .unwrap_or_default();
    let dependencies: Vec<String> = graph
        .edges
        .iter()
        .map(|(url, uses)| {
            let uses: Vec<String> = uses.iter().map(|it| quote(it)).collect();
            format!("    {{\"ref\": {}, \"dependsOn\": [{}]}}", quote(url), uses.join(", "))
        })
        .collect();
    format!(
        "{{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.6\",\n  \"version\": 1,\n  \
         \"metadata\": {{\"component\":\n{program_text}\n  }},\n  \"components\": [\n{}\n  ],\n  \
         \"dependencies\": [\n{}\n  ]\n}}\n",
        components.join(",\n"),
        dependencies.join(",\n")
    )
}

fn print_component(url: &str, component: &Component, kind: &str) -> String {
    let Component { name, version, license, repository, checksum, is_build_only } = component;
    let mut text = format!(
        "    {{\"type\": \"{kind}\", \"bom-ref\": {0}, \"name\": {1}, \"version\": {2}, \
         \"purl\": {0}",
        quote(url),
        quote(name),
        quote(version)
    );
    if *is_build_only {
        text.push_str(", \"scope\": \"excluded\"");
    }
    if !license.is_empty() {
        let _ = write!(text, ", \"licenses\": [{{\"expression\": {}}}]", quote(license));
    }
    if let Some(checksum) = checksum {
        let _ = write!(
            text,
            ", \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": {}}}]",
            quote(checksum)
        );
    }
    if !repository.is_empty() {
        let _ = write!(
            text,
            ", \"externalReferences\": [{{\"type\": \"vcs\", \"url\": {}}}]",
            quote(repository)
        );
    }
    text.push('}');
    text
}

/// A JSON string. Names, versions, licenses and addresses have no control characters.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_and_edges_are_printed_once_and_sorted() {
        let mut graph = ComponentGraph::default();
        for (url, name) in [("pkg:cargo/b@1", "b"), ("pkg:cargo/a@1", "a")] {
            let component =
                Component { name: name.into(), version: "1".into(), ..Component::default() };
            graph.components.insert(url.into(), component);
        }
        graph.edges.entry("pkg:cargo/b@1".into()).or_default().insert("pkg:cargo/a@1".into());
        let text = print(&graph, "pkg:cargo/b@1");
        assert!(text.contains("\"type\": \"application\", \"bom-ref\": \"pkg:cargo/b@1\""));
        assert!(text.contains("\"components\": [\n    {\"type\": \"library\", \"bom-ref\""));
        assert!(text.contains("{\"ref\": \"pkg:cargo/b@1\", \"dependsOn\": [\"pkg:cargo/a@1\"]}"));
    }
}
