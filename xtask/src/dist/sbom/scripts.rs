//! The npm packages whose code is in the web console, which the program contains.

use super::{Component, ComponentGraph};
use crate::dist::stage;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// What files of `console/src` import; the other packages of the console only build and test it.
const BUNDLED: [&str; 7] = [
    "@solidjs/router",
    "@tanstack/solid-virtual",
    "dompurify",
    "marked",
    "shiki",
    "solid-js",
    "uplot",
];

#[derive(Debug, Default)]
struct LockedPackage {
    version: String,
    license: String,
    uses: Vec<String>,
}

/// Adds the bundled packages with everything that they use.
pub(super) fn add(graph: &mut ComponentGraph, program: &str) -> Result<()> {
    let locked = parse_lock(&stage::read("console/package-lock.json")?);
    let mut waiting: Vec<(String, String)> =
        BUNDLED.iter().map(|it| (program.to_owned(), (*it).to_owned())).collect();
    while let Some((parent, name)) = waiting.pop() {
        let package = locked.get(&name).with_context(|| format!("no `{name}` in the lock"))?;
        let url = format!("pkg:npm/{}@{}", name.replace('@', "%40"), package.version);
        graph.edges.entry(parent).or_default().insert(url.clone());
        if graph.components.contains_key(&url) {
            continue;
        }
        graph.edges.entry(url.clone()).or_default();
        let (version, license) = (package.version.clone(), package.license.clone());
        let component = Component { name, version, license, ..Component::default() };
        graph.components.insert(url.clone(), component);
        waiting.extend(package.uses.iter().map(|it| (url.clone(), it.clone())));
    }
    Ok(())
}

/// The packages at the top of `node_modules`. The lock has one member per line, and a package is indented by four
/// spaces.
fn parse_lock(text: &str) -> BTreeMap<String, LockedPackage> {
    let mut packages = BTreeMap::new();
    for entry in text.split("\n    \"node_modules/").skip(1) {
        let Some((name, members)) = entry.split_once("\": {\n") else { continue };
        let members = members.split("\n    }").next().unwrap_or_default();
        let value = |key: &str| {
            let start = format!("      \"{key}\": \"");
            let line = members.lines().find_map(|it| it.strip_prefix(&start));
            line.unwrap_or_default().trim_end_matches([',', '"']).to_owned()
        };
        let uses = members.split_once("      \"dependencies\": {\n").map_or("", |it| it.1);
        let uses = uses.split("\n      }").next().unwrap_or_default().lines();
        let uses = uses.filter_map(|it| Some(it.trim().strip_prefix('"')?.split_once('"')?.0));
        let package = LockedPackage {
            version: value("version"),
            license: value("license"),
            uses: uses.map(str::to_owned).collect(),
        };
        packages.insert(name.to_owned(), package);
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    #[test]
    fn lock_gives_versions_licenses_and_edges() {
        let lock = "{\n  \"packages\": {\n    \"\": {\n      \"version\": \"0.1.0\"\n    },\n    \
                    \"node_modules/a\": {\n      \"version\": \"1.2.3\",\n      \
                    \"license\": \"MIT\",\n      \"dependencies\": {\n        \
                    \"@x/b\": \"^1.0.0\"\n      },\n      \"engines\": {\n        \
                    \"node\": \">=8\"\n      }\n    },\n    \"node_modules/@x/b\": {\n      \
                    \"version\": \"1.0.1\"\n    }\n  }\n}\n";
        let locked = parse_lock(lock);
        assert_eq!((&*locked["a"].version, &*locked["a"].license), ("1.2.3", "MIT"));
        assert_eq!(locked["a"].uses, ["@x/b"]);
        assert_eq!(locked["@x/b"].version, "1.0.1");
    }

    /// Type-only imports and the client package of this repository are no components.
    #[test]
    fn every_package_that_the_console_imports_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/src");
        let mut waiting = vec![root];
        while let Some(folder) = waiting.pop() {
            for path in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
                if path.is_dir() {
                    waiting.push(path);
                } else if !path.to_string_lossy().contains(".test.") {
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    for name in imported_packages(&text) {
                        let is_listed = BUNDLED.contains(&name) || name == "jackfield-client";
                        assert!(is_listed, "{}: {name}", path.display());
                    }
                }
            }
        }
    }

    fn imported_packages(text: &str) -> impl Iterator<Item = &str> {
        let imports = [" from \"", "import(\""].into_iter().flat_map(|it| text.split(it).skip(1));
        let names = imports.filter_map(|it| it.split('"').next());
        names.filter(|it| !it.starts_with('.') && !it.contains(':')).map(|it| {
            let segments = if it.starts_with('@') { 2 } else { 1 };
            let end = it.match_indices('/').nth(segments - 1).map_or(it.len(), |(at, _)| at);
            &it[..end]
        })
    }
}
