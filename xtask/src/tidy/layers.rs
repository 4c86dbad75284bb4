//! Dependencies between our crates point one way.

use std::{fs, path::Path};

/// Each crate and the only crates of ours it may name, in the order of the flow.
const LAYERS: &[(&str, &[&str])] = &[
    ("private-files", &[]),
    ("nats-access", &[]),
    ("wire", &[]),
    ("policy", &[]),
    ("core", &["wire", "policy"]),
    ("testkit", &["wire", "policy", "core"]),
    ("inside", &["wire"]),
    // Its tests start servers.
    ("journal", &["private-files", "nats-access", "testkit"]),
    ("catalogue", &[]),
    ("views", &["wire"]),
    ("agents", &["private-files", "wire", "catalogue"]),
    ("clients", &["private-files", "wire"]),
    // Its tests start servers.
    ("fleet", &["private-files", "nats-access", "testkit"]),
    ("gateway", &["wire", "core", "clients", "journal", "fleet"]),
    ("bus", &["wire", "core", "agents", "clients"]),
    ("adapt", &["private-files", "wire", "catalogue", "agents", "clients"]),
    // Its tests are asked by the scripted model.
    ("chat", &["private-files", "wire", "policy", "agents", "inside", "testkit"]),
    ("api", &["private-files", "wire", "views", "catalogue", "agents", "clients"]),
    (
        "daemon",
        &[
            "private-files",
            "nats-access",
            "wire",
            "policy",
            "core",
            "inside",
            "journal",
            "catalogue",
            "agents",
            "clients",
            "fleet",
            "gateway",
        ],
    ),
    (
        "cli",
        &[
            "private-files",
            "nats-access",
            "wire",
            "policy",
            "views",
            "bus",
            "daemon",
            "fleet",
            "catalogue",
            "agents",
            "adapt",
            "api",
            "chat",
            "clients",
            "journal",
        ],
    ),
    ("fuzz-checks", &["wire", "policy", "catalogue", "agents", "adapt", "testkit"]),
    ("bench", &["nats-access", "core", "journal", "testkit"]),
    ("e2e", &["nats-access", "wire", "journal", "catalogue", "testkit"]),
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
    let Some((_, allowed)) = LAYERS.iter().find(|(it, _)| *it == name) else {
        return vec![format!("crates/{name}: has no row in LAYERS (xtask/src/tidy/layers.rs)")];
    };
    ours(manifest)
        .filter(|it| !allowed.contains(it))
        .map(|it| format!("crates/{name}/Cargo.toml: `{name}` may not depend on `{it}`"))
        .collect()
}

/// The crates of ours that a manifest names as dependencies; dev-dependencies count too.
fn ours(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter_map(|key| key.strip_prefix("jackfield-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_dependency_is_seen() {
        let manifest = "[package]\nname = \"jackfield-core\"\n[dependencies]\n\
            jackfield-wire.workspace = true\njackfield-journal = { workspace = true }\n\
            [dev-dependencies]\njackfield-agents={ path = \"../agents\" }\nserde = \"1\"\n";
        assert_eq!(ours(manifest).collect::<Vec<_>>(), ["wire", "journal", "agents"]);
    }

    #[test]
    fn a_crate_may_use_what_its_row_lists_and_nothing_else() {
        assert!(check_manifest("core", "jackfield-wire.workspace = true").is_empty());
        let complaints = check_manifest("journal", "jackfield-wire.workspace = true");
        assert_eq!(complaints, ["crates/journal/Cargo.toml: `journal` may not depend on `wire`"]);
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        assert!(check_manifest("engine", "")[0].contains("has no row in LAYERS"));
    }

    #[test]
    fn no_row_points_upwards() {
        for (index, (name, allowed)) in LAYERS.iter().enumerate() {
            for dependency in *allowed {
                let below = LAYERS[..index].iter().any(|(it, _)| it == dependency);
                assert!(below, "`{name}` lists `{dependency}`, which is not above it in LAYERS");
            }
        }
    }
}
