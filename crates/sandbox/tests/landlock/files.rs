//! Paths.

use super::attack_world::{AttackWorld, assert_refused, assert_works, text_of, words};
use jackfield_sandbox::plan::{NetworkPlan, PathAccess, PathRule};
use std::fs;
use std::path::Path;

/// An attack on one path below the folder of the test.
fn assert_path_refused(attack: &str, path: &str) {
    assert_refused(&NetworkPlan::None, |world| words(&[attack, &world.path(path)]));
}

#[test]
fn file_outside_the_writable_folder_cannot_be_changed() {
    for attack in ["write", "truncate", "delete"] {
        assert_path_refused(attack, "readonly/file");
    }
    assert_path_refused("create", "readonly/new");
}

#[test]
fn mode_owner_times_and_attributes_outside_cannot_be_changed() {
    let attacks =
        ["change-mode", "change-mode-of-file", "change-times", "change-owner", "change-attribute"];
    for attack in attacks {
        assert_path_refused(attack, "readonly/file");
    }
    assert_path_refused("change-mode", "hidden/file");
}

#[test]
fn mode_owner_and_times_inside_can_be_changed() {
    let world = AttackWorld::new(NetworkPlan::None);
    let file = world.path("workspace/file");
    for change in ["change-mode", "change-mode-of-file", "change-times", "change-owner"] {
        assert_works(&world, &words(&[change, &file]));
    }
    let metadata = fs::metadata(&file).unwrap();
    assert_eq!(metadata.modified().unwrap(), std::time::SystemTime::UNIX_EPOCH);
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o666);
    assert_works(&world, &words(&["change-mode", "file"]));
}

#[test]
fn hidden_file_cannot_be_read_and_hidden_folder_not_listed() {
    assert_path_refused("read", "hidden/file");
    assert_path_refused("list", "hidden");
    assert_works(&AttackWorld::new(NetworkPlan::None), &words(&["read", "/etc/passwd"]));
}

#[test]
fn links_and_renames_do_not_lead_out() {
    let between = |attack: &str, from: &str, to: &str| {
        assert_refused(&NetworkPlan::None, |world| {
            words(&[attack, &world.path(from), &world.path(to)])
        });
    };
    between("link", "readonly/file", "workspace/link");
    between("rename", "readonly/file", "workspace/moved");
    between("rename", "workspace/file", "readonly/moved");
    between("link-and-write", "readonly/file", "workspace/link");
}

#[test]
fn temporary_folder_is_private_and_removed() {
    let world = AttackWorld::new(NetworkPlan::None);
    assert_works(&world, &words(&["write-temporary"]));
    let names: Vec<_> =
        fs::read_dir(world.path("temporary")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["file"], "only the file from before");
    assert_path_refused("read", "temporary/file");
}

#[test]
fn pseudo_terminal_works_without_access_to_other_terminals() {
    let world = AttackWorld::new(NetworkPlan::None);
    assert_works(&world, &words(&["terminal"]));
    assert_refused(&NetworkPlan::None, |_| words(&["list", "/dev/pts"]));
}

#[test]
fn plan_with_a_protected_file_in_a_writable_folder_is_not_started() {
    let world = AttackWorld::new(NetworkPlan::None);
    let mut plan = world.plan();
    let path = world.path("workspace/.git/hooks").into();
    plan.paths.push(PathRule { path, access: PathAccess::ReadOnly });
    let output = world.sandboxed(&plan, Path::new("/bin/true"), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text_of(&output).contains("protect_files = false"), "{}", text_of(&output));
}
