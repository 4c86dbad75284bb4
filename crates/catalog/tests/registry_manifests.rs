//! The manifests in `deploy/registry` are valid entries of an ACP registry and name the current
//! version.

use jackfield_catalog::import_registry;
use serde_json::{Map, Value};
use std::{fs, path::PathBuf};

const REQUIRED: [&str; 5] = ["id", "name", "version", "description", "distribution"];
const OPTIONAL: [&str; 6] = ["repository", "website", "authors", "license", "license_url", "icon"];
const DISTRIBUTIONS: [&str; 3] = ["binary", "npx", "uvx"];
const PLATFORMS: [&str; 6] = [
    "darwin-aarch64",
    "darwin-x86_64",
    "linux-aarch64",
    "linux-x86_64",
    "windows-aarch64",
    "windows-x86_64",
];
const TARGET_MEMBERS: [&str; 5] = ["archive", "sha256", "cmd", "args", "env"];

/// The manifests by the name of their folder.
fn manifests() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/registry");
    let entries = fs::read_dir(folder).unwrap().map(|it| it.unwrap());
    let folders = entries.filter(|it| it.file_type().unwrap().is_dir());
    let mut found: Vec<_> = folders
        .map(|it| {
            let name = it.file_name().into_string().unwrap();
            (name, fs::read_to_string(it.path().join("agent.json")).unwrap())
        })
        .collect();
    found.sort();
    found
}

fn members(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

/// The rules of the registry's schema for one entry.
fn check_entry(folder: &str, entry: &Value) {
    for name in REQUIRED {
        assert!(entry.get(name).is_some(), "{folder}: `{name}` is missing");
    }
    for name in members(entry).keys() {
        let is_known = REQUIRED.contains(&&**name) || OPTIONAL.contains(&&**name);
        assert!(is_known, "{folder}: unknown member `{name}`");
    }
    let id = entry["id"].as_str().unwrap();
    assert_eq!(id, folder, "the folder has the name of the agent");
    let is_id_char = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    assert!(id.starts_with(|it: char| it.is_ascii_lowercase()) && id.chars().all(is_id_char));
    for (kind, distribution) in members(&entry["distribution"]) {
        assert!(DISTRIBUTIONS.contains(&&**kind), "{folder}: unknown distribution `{kind}`");
        if kind == "binary" {
            members(distribution).iter().for_each(|(at, it)| check_target(folder, at, it));
        }
    }
}

fn check_target(folder: &str, platform: &str, target: &Value) {
    assert!(PLATFORMS.contains(&platform), "{folder}: unknown platform `{platform}`");
    for name in members(target).keys() {
        assert!(TARGET_MEMBERS.contains(&&**name), "{folder}: unknown member `{name}`");
    }
    let archive = target["archive"].as_str().unwrap();
    assert!(archive.starts_with("https://"), "{folder}: {archive}");
    let version = format!("/{}/", env!("CARGO_PKG_VERSION"));
    assert!(archive.contains(&version), "{folder}: {archive} is not of this version");
    // The layout of the archives that `cargo xtask dist` makes.
    assert!(archive.ends_with(&format!("/jackfield-{platform}.tar.gz")), "{folder}: {archive}");
    assert_eq!(target["cmd"], format!("./jackfield-{platform}/bin/jackfield"));
}

#[test]
fn manifests_follow_the_schema_and_name_this_version() {
    let manifests = manifests();
    let names: Vec<&str> = manifests.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["jackfield", "jackfield-agent"]);
    for (folder, text) in &manifests {
        let entry: Value = serde_json::from_str(text).unwrap();
        check_entry(folder, &entry);
        assert_eq!(entry["version"], env!("CARGO_PKG_VERSION"), "{folder}: set the version");
    }
}

#[test]
fn manifests_can_be_imported() {
    for ((_, text), subcommand) in manifests().iter().zip(["acp", "agent"]) {
        let imported = import_registry(text).unwrap();
        assert_eq!(imported.skipped, []);
        assert_eq!(imported.specs[0].launch[0].args, [subcommand]);
    }
}
