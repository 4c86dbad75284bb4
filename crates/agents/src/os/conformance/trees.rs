//! Trees of processes: descendants, marks, orphans and memory.

use super::{TestProcess, shell_with_descendant, wait_for};
use crate::guard::AgentTree;
use crate::os::{
    OrphanParent, ProcessIdentity, ProcessTable, Signal, SignalReader, resident_bytes,
    tree_resident_bytes,
};
use std::collections::BTreeSet;

#[test]
fn descendants_are_found_without_their_root() {
    let (shell, grandchild) = shell_with_descendant("sleep 60 & echo $!; wait", None);
    let table = ProcessTable::system();
    assert_eq!(table.descendants(&[shell.pid()]), [grandchild.process]);
    assert!(table.descendants(&[std::process::id()]).contains(&grandchild.process));
    assert!(table.rows().iter().any(|row| row.process == grandchild.process));
    let children = table.children(shell.pid());
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].parent, shell.pid());
}

#[test]
fn mark_is_found_in_the_environment_of_another_process() {
    let marked = TestProcess::marked("conformance-1");
    let table = ProcessTable::system();
    assert!(table.has_mark(marked.pid(), "conformance-1"));
    assert!(!table.has_mark(marked.pid(), "conformance"));
    assert!(table.has_other_mark(marked.pid(), "conformance"));
    let found = table.find_marked(&BTreeSet::from(["conformance-1"]));
    assert_eq!(found, [(marked.identity(), "conformance-1".to_owned())]);
    assert!(!table.has_mark(u32::MAX, "conformance-1"));
}

/// A tree on a system where orphans become children of init, with this member.
fn tree<'a>(signals: &'a SignalReader, mark: &str, member: u32) -> AgentTree<'a> {
    let mut tree = AgentTree::new(OrphanParent::Init, mark.to_owned(), signals);
    tree.add_agent(member);
    tree
}

fn end_and_reap(mut shell: TestProcess) {
    shell.child.kill().unwrap();
    shell.child.wait().unwrap();
}

#[test]
fn orphan_that_was_seen_stays_in_the_tree() {
    let signals = SignalReader::block().unwrap();
    let (shell, orphan) = shell_with_descendant("set -m; sleep 60 & echo $!; wait", None);
    let mut tree = tree(&signals, "none", shell.pid());
    assert!(tree.processes().contains(&orphan.process));
    end_and_reap(shell);
    wait_for("a new parent", || is_orphan(orphan.process).then_some(()));
    assert_eq!(tree.processes(), [orphan.process]);
    assert!(!tree.is_empty_without_children());
    orphan.process.signal(Signal::KILL);
    wait_for("an empty tree", || tree.is_empty_without_children().then_some(()));
}

#[test]
fn orphan_with_the_mark_belongs_to_the_tree_and_others_do_not() {
    let signals = SignalReader::block().unwrap();
    let (marked, other) = (TestProcess::marked("conformance-2"), TestProcess::sleeper());
    let mut tree = AgentTree::new(OrphanParent::Init, "conformance-2".to_owned(), &signals);
    let found = tree.processes();
    assert_eq!(found, [marked.identity()]);
    assert!(!found.contains(&other.identity()));
}

fn is_orphan(process: ProcessIdentity) -> bool {
    let table = ProcessTable::system();
    let row = table.row(process.pid).unwrap();
    // Another subreaper may be above this test, which exists all the time.
    row.parent != std::process::id() && table.row(row.parent).is_some_and(|it| !it.zombie)
}

#[test]
fn memory_of_a_tree_includes_its_descendants() {
    let (shell, grandchild) = shell_with_descendant("sleep 60 & echo $!; wait", None);
    let (own, below) = (resident_bytes(shell.pid()), resident_bytes(grandchild.process.pid));
    assert!(0 < own && 0 < below);
    assert_eq!(own % 4096, 0);
    assert!(own < tree_resident_bytes(shell.pid()));
    assert!(1 << 20 < resident_bytes(std::process::id()));
    assert_eq!(resident_bytes(u32::MAX), 0);
}
