//! Tests of the folder with the installed agents.

use super::*;
use std::{fs, os::unix::fs::symlink, path::Path};

fn record(version: &str) -> InstallRecord {
    let package = PackageRecord {
        source: PackageSource::Npm,
        name: "tool".to_owned(),
        version: version.to_owned(),
        integrity: "sha512-x".to_owned(),
    };
    let (agent, reported_version) = ("a".to_owned(), version.to_owned());
    InstallRecord { format: RECORD_FORMAT, agent, packages: vec![package], reported_version }
}

fn store(dir: &Path) -> InstalledAgents {
    InstalledAgents::new(dir.join("agents"))
}

fn add_version(store: &InstalledAgents, version: &str) {
    store.create_version("a", version).unwrap().write_record(&record(version)).unwrap();
    store.select("a", version).unwrap();
}

fn current(store: &InstalledAgents) -> Option<String> {
    store.find_current("a").map(|it| it.name)
}

#[test]
fn current_version_and_the_one_before_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    assert_eq!(current(&store), None);
    assert!(matches!(store.select_previous("a"), Err(StoreError::NotInstalled { .. })));
    for version in ["1.0", "1.1", "1.2"] {
        add_version(&store, version);
    }
    assert_eq!(store.list_agents(), ["a"]);
    assert_eq!(store.remove_unused_versions("a").unwrap(), ["1.0"]);
    assert_eq!(store.list_versions("a"), ["1.1", "1.2"]);
    assert_eq!(store.select_previous("a").unwrap().current, "1.1");
    assert_eq!(store.find_current("a").unwrap().read_record(), Some(record("1.1")));
    assert_eq!(store.select_previous("a").unwrap().current, "1.2");
    store.remove_agent("a").unwrap();
    assert_eq!((current(&store), store.list_agents()), (None, Vec::new()));
}

#[test]
fn incomplete_version_is_not_used_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    add_version(&store, "1.0");
    let incomplete = store.create_version("a", "1.1").unwrap();
    fs::write(incomplete.folder.join("part"), "").unwrap();
    assert_eq!(current(&store).as_deref(), Some("1.0"));
    assert_eq!(store.find_version("a", "1.1"), None);
    let again = store.create_version("a", "1.1").unwrap();
    assert_eq!(fs::read_dir(again.folder).unwrap().count(), 0);
    assert_eq!(store.remove_unused_versions("a").unwrap(), ["1.1"]);
}

#[test]
fn links_in_place_of_folders_are_not_used_and_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, other) = (store(dir.path()), InstalledAgents::new(dir.path().join("other")));
    add_version(&store, "1.0");
    let victim = dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "").unwrap();
    symlink(store.dir(), other.dir()).unwrap();
    assert_eq!(current(&other), None, "the folder of all agents is a link");
    assert!(other.create_version("a", "1.0").is_err());
    symlink(&victim, store.agent_dir("b")).unwrap();
    assert!(store.create_version("b", "1.0").is_err());
    assert!(store.remove_agent("b").is_err());
    // A link in place of a version is replaced by a folder.
    symlink(&victim, store.agent_dir("a").join("2.0")).unwrap();
    assert_eq!(store.find_version("a", "2.0"), None);
    let created = store.create_version("a", "2.0").unwrap();
    assert!(fs::symlink_metadata(created.folder).unwrap().is_dir());
    assert!(victim.join("file").exists());
}

#[test]
fn damaged_selection_counts_as_not_installed() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    add_version(&store, "1.0");
    for damaged in ["", "{", r#"{"current":"../../x"}"#, r#"{"current":"9.9"}"#] {
        fs::write(store.agent_dir("a").join("current"), damaged).unwrap();
        assert_eq!(current(&store), None, "{damaged}");
    }
    add_version(&store, "1.0");
    assert_eq!(current(&store).as_deref(), Some("1.0"));
}

#[test]
fn second_change_waits_for_the_first_and_other_agents_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let first = store.lock("a", || panic!("it is free")).await.unwrap();
        let _other = store.lock("b", || panic!("it is free")).await.unwrap();
        let mut first = Some(first);
        // The first change ends when the second one waits for it.
        store.lock("a", || drop(first.take())).await.unwrap();
        assert!(first.is_none());
    });
}
