//! Dependencies between our crates point one way.

use std::{fs, path::Path};

/// One crate of ours and the only crates of ours that it may use.
struct CrateLayer {
    name: &'static str,
    /// In production code, and in tests.
    uses: &'static [&'static str],
    /// In tests only, as dev-dependencies.
    tests_use: &'static [&'static str],
}

const fn layer(
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
) -> CrateLayer {
    CrateLayer { name, uses, tests_use }
}

/// Every crate, in the order of the flow: a crate uses only crates above it.
const LAYERS: &[CrateLayer] = &[
    layer("private-files", &[], &[]),
    layer("nats-access", &[], &[]),
    layer("test-support", &[], &[]),
    layer("sandbox", &[], &["test-support"]),
    layer("network-proxy", &[], &["test-support"]),
    layer("protocol", &[], &[]),
    layer("policy", &[], &[]),
    layer("catalog", &[], &[]),
    layer("editor-settings", &[], &[]),
    layer("events", &["protocol"], &[]),
    layer("hub", &["protocol", "events", "policy"], &[]),
    layer("views", &["protocol", "events"], &[]),
    layer("workspace-fs", &["protocol"], &[]),
    layer("journal", &["private-files", "nats-access"], &["test-support"]),
    layer("agents", &["private-files", "protocol", "catalog"], &[]),
    layer("transport", &["private-files", "protocol"], &[]),
    layer("hub-client", &["protocol", "events", "transport"], &[]),
    layer(
        "fleet",
        &[
            "private-files",
            "nats-access",
            "protocol",
            "events",
            "hub",
            "journal",
            "agents",
            "transport",
            "hub-client",
        ],
        &["test-support"],
    ),
    layer("bus", &["protocol", "catalog", "events", "hub", "agents", "transport"], &[]),
    layer("adapters", &["private-files", "protocol", "catalog", "agents", "transport"], &[]),
    layer(
        "chat-agent",
        &["private-files", "protocol", "policy", "agents", "workspace-fs"],
        &["test-support"],
    ),
    layer(
        "web",
        &[
            "private-files",
            "protocol",
            "policy",
            "events",
            "views",
            "catalog",
            "agents",
            "transport",
            "hub-client",
        ],
        &[],
    ),
    layer(
        "daemon",
        &[
            "private-files",
            "nats-access",
            "protocol",
            "events",
            "policy",
            "sandbox",
            "network-proxy",
            "hub",
            "workspace-fs",
            "journal",
            "catalog",
            "agents",
            "transport",
            "fleet",
            "web",
        ],
        &[],
    ),
    layer("tui", &["protocol", "events", "views", "transport", "hub-client"], &[]),
    layer(
        "cli",
        &[
            "network-proxy",
            "tui",
            "private-files",
            "nats-access",
            "protocol",
            "events",
            "policy",
            "views",
            "bus",
            "daemon",
            "fleet",
            "catalog",
            "agents",
            "adapters",
            "web",
            "chat-agent",
            "sandbox",
            "editor-settings",
            "transport",
            "hub-client",
            "journal",
        ],
        &[],
    ),
    layer("sim", &["protocol", "events", "policy", "hub", "bus", "fleet", "test-support"], &[]),
    layer(
        "fuzz-checks",
        &["protocol", "policy", "catalog", "agents", "adapters"],
        &["test-support"],
    ),
    layer("bench", &["nats-access", "events", "hub", "journal", "test-support"], &[]),
    layer("e2e", &["nats-access", "test-support"], &["journal"]),
];

/// Complaints about the manifests of the crates in `crates`.
pub(super) fn check(crates: &Path) -> Vec<String> {
    let mut complaints = Vec::new();
    for entry in fs::read_dir(crates).into_iter().flatten().flatten() {
        let manifest = entry.path().join("Cargo.toml");
        // A folder without a manifest is no crate: git does not even carry empty ones.
        let Ok(text) = fs::read_to_string(manifest) else { continue };
        complaints.extend(check_manifest(&entry.file_name().to_string_lossy(), &text));
    }
    complaints
}

fn check_manifest(name: &str, manifest: &str) -> Vec<String> {
    let Some(layer) = LAYERS.iter().find(|it| it.name == name) else {
        return vec![format!("crates/{name}: has no row in LAYERS (xtask/src/tidy/layers.rs)")];
    };
    let mut complaints = Vec::new();
    for Dependency { name: used, is_for_tests } in our_dependencies(manifest) {
        let is_for_tests_only = layer.tests_use.contains(&used);
        if layer.uses.contains(&used) || (is_for_tests && is_for_tests_only) {
            continue;
        }
        let advice = if is_for_tests_only {
            "only its tests may: move it to `[dev-dependencies]`"
        } else {
            "see LAYERS in xtask/src/tidy/layers.rs"
        };
        complaints.push(format!(
            "crates/{name}/Cargo.toml: `{name}` may not depend on `{used}`; {advice}"
        ));
    }
    complaints
}

/// A crate of ours that a manifest names.
#[derive(Debug, PartialEq)]
struct Dependency<'a> {
    name: &'a str,
    /// It is in a section of dev-dependencies.
    is_for_tests: bool,
}

fn our_dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut is_for_tests = false;
    let mut dependencies = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_for_tests = line.contains("dev-dependencies");
        }
        // A dependency is a line of a section, or the end of a section's name.
        let key = line.trim_matches(['[', ']']).rsplit("dependencies.").next().unwrap_or(line);
        let key = key.split(['.', ' ', '=']).next().unwrap_or(key);
        if let Some(name) = key.strip_prefix("jackfield-") {
            dependencies.push(Dependency { name, is_for_tests });
        }
    }
    dependencies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_dependency_is_found() {
        let manifest = "[package]\nname = \"jackfield-hub\"\n[dependencies]\n\
            jackfield-protocol.workspace = true\njackfield-journal = { workspace = true }\n\
            [dev-dependencies]\njackfield-agents={ path = \"../agents\" }\nserde = \"1\"\n\
            [target.'cfg(unix)'.dependencies]\njackfield-bus.workspace = true\n\
            [dev-dependencies.jackfield-cli]\nworkspace = true\n";
        let found = our_dependencies(manifest);
        let found: Vec<_> = found.iter().map(|it| (it.name, it.is_for_tests)).collect();
        let expected = [
            ("protocol", false),
            ("journal", false),
            ("agents", true),
            ("bus", false),
            ("cli", true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn crate_may_use_what_its_row_lists_and_nothing_else() {
        assert_eq!(check_manifest("hub", "jackfield-protocol.workspace = true"), [""; 0]);
        let complaints = check_manifest("journal", "jackfield-protocol.workspace = true");
        let expected = "crates/journal/Cargo.toml: `journal` may not depend on `protocol`; \
            see LAYERS in xtask/src/tidy/layers.rs";
        assert_eq!(complaints, [expected]);
    }

    #[test]
    fn crate_for_tests_is_accepted_as_a_dev_dependency_only() {
        let tests = "[dev-dependencies]\njackfield-test-support.workspace = true";
        assert_eq!(check_manifest("journal", tests), [""; 0]);
        let production = "[dependencies]\njackfield-test-support.workspace = true";
        let complaints = check_manifest("journal", production);
        assert!(complaints[0].ends_with("only its tests may: move it to `[dev-dependencies]`"));
        assert_eq!(check_manifest("hub", tests).len(), 1);
    }

    #[test]
    fn crate_without_a_row_is_refused() {
        assert!(check_manifest("engine", "")[0].contains("has no row in LAYERS"));
    }

    #[test]
    fn no_row_points_upwards() {
        for (index, CrateLayer { name, uses, tests_use }) in LAYERS.iter().enumerate() {
            for dependency in uses.iter().chain(*tests_use) {
                let is_above = LAYERS[..index].iter().any(|it| it.name == *dependency);
                assert!(is_above, "`{name}` lists `{dependency}`, which is not above it in LAYERS");
            }
        }
    }
}
