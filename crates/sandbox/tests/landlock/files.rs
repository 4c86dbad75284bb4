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
fn mode_of_a_hidden_or_open_file_outside_cannot_be_changed() {
    assert_path_refused("change-mode", "hidden/file");
    assert_path_refused("change-mode-of-file", "readonly/file");
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
fn hidden_folder_cannot_be_listed() {
    assert_path_refused("list", "hidden");
    assert_works(&AttackWorld::new(NetworkPlan::None), &words(&["read", "/etc/passwd"]));
}

#[test]
fn file_cannot_be_moved_out() {
    assert_refused(&NetworkPlan::None, |world| {
        words(&["rename", &world.path("workspace/file"), &world.path("readonly/moved")])
    });
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
