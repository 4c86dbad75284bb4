//! `jackfield setup`: the settings of editors, and the files that it must not change.

use crate::home::{CommandOutcome, TestHome};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::PathBuf,
};

const SETTINGS: &str = "\
// Zed settings
{
  \"theme\": \"One Dark\", // at night
  \"vim_mode\": true,
}
";

/// A home with Zed, its settings and one agent.
fn home_with_zed() -> (TestHome, PathBuf) {
    let home = TestHome::new();
    let settings = home.path().join("config/zed/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, SETTINGS).unwrap();
    (home, settings)
}

fn succeed(home: &TestHome, args: &[&str]) -> CommandOutcome {
    let outcome = home.run(&[&["setup"], args].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn fail(home: &TestHome, args: &[&str]) -> CommandOutcome {
    let outcome = home.run(&[&["setup"], args].concat());
    assert_ne!(outcome.code, 0, "{outcome:?}");
    outcome
}

/// Where the program is differs between machines.
fn snapshot(outcome: &CommandOutcome) -> String {
    let text = outcome.to_snapshot().replace(env!("CARGO_BIN_EXE_jackfield"), "[JACKFIELD]");
    text.lines()
        .map(|it| match it.split_once("setup-backups/") {
            Some((start, _)) => format!("{start}setup-backups/[BACKUP]"),
            None => it.to_owned(),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn settings_are_written_once_updated_with_new_agents_and_restored() {
    let (home, settings) = home_with_zed();
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o640)).unwrap();
    insta::assert_snapshot!("setup_print", snapshot(&succeed(&home, &["zed", "--print"])));
    assert_eq!(fs::read_to_string(&settings).unwrap(), SETTINGS, "--print writes nothing");
    insta::assert_snapshot!("setup_unconfirmed", snapshot(&fail(&home, &["zed"])));

    insta::assert_snapshot!("setup_zed", snapshot(&succeed(&home, &["zed", "--yes"])));
    let written = fs::read_to_string(&settings).unwrap();
    assert_eq!(settings.metadata().unwrap().mode() & 0o777, 0o640);
    let backup = fs::read_dir(home.path().join("state/jackfield/setup-backups")).unwrap();
    let backups: Vec<PathBuf> = backup.map(|it| it.unwrap().path()).collect();
    assert_eq!(backups.len(), 1);
    assert_eq!(fs::read_to_string(&backups[0]).unwrap(), SETTINGS);
    insta::assert_snapshot!("setup_again", snapshot(&succeed(&home, &["zed", "--yes"])));
    assert_eq!(fs::read_to_string(&settings).unwrap(), written);

    home.write_program("opencode", "exit 1");
    let outcome = succeed(&home, &["zed", "--yes", "--format", "json"]);
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(document["files"][0]["added"], json!(["OpenCode in Jackfield"]));

    let edited = fs::read_to_string(&settings).unwrap().replace("One Dark", "Mine");
    fs::write(&settings, edited).unwrap();
    insta::assert_snapshot!("setup_undo", snapshot(&succeed(&home, &["zed", "--undo", "--yes"])));
    assert_eq!(fs::read_to_string(&settings).unwrap(), SETTINGS.replace("One Dark", "Mine"));
    let again = succeed(&home, &["zed", "--undo"]);
    assert!(again.stderr.starts_with("nothing to take back"), "{again:?}");
}

#[test]
fn link_of_a_dotfiles_manager_is_kept_and_its_target_changed() {
    let (home, settings) = home_with_zed();
    let (middle, target) = (home.path().join("middle.json"), home.path().join("dotfiles.json"));
    fs::rename(&settings, &target).unwrap();
    symlink(&target, &middle).unwrap();
    symlink("../../middle.json", &settings).unwrap();
    let outcome = succeed(&home, &["zed", "--yes"]);
    assert!(outcome.stderr.contains("(a link to [HOME]/dotfiles.json)"), "{outcome:?}");
    assert!(settings.symlink_metadata().unwrap().is_symlink());
    assert!(middle.symlink_metadata().unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("Goose in Jackfield"));
    succeed(&home, &["zed", "--undo", "--yes"]);
    assert_eq!(fs::read_to_string(&target).unwrap(), SETTINGS);
}

#[test]
fn file_that_must_not_be_changed_is_refused_with_the_way_out() {
    let (home, settings) = home_with_zed();
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o444)).unwrap();
    insta::assert_snapshot!("setup_read_only", snapshot(&fail(&home, &["zed", "--yes"])));
    assert!(succeed(&home, &["zed", "--print"]).stdout.contains("+  \"agent_servers\": {"));
    assert_eq!(fs::read_to_string(&settings).unwrap(), SETTINGS);

    fs::set_permissions(&settings, fs::Permissions::from_mode(0o644)).unwrap();
    fs::hard_link(&settings, home.path().join("second")).unwrap();
    let outcome = fail(&home, &["zed", "--yes"]);
    assert!(outcome.stderr.contains("several hard links"), "{outcome:?}");

    fs::remove_file(&settings).unwrap();
    symlink("nowhere", &settings).unwrap();
    let outcome = fail(&home, &["zed", "--yes"]);
    assert!(outcome.stderr.contains("it is a link to `nowhere`, which does not exist"));

    fs::remove_file(&settings).unwrap();
    fs::create_dir(&settings).unwrap();
    assert!(fail(&home, &["zed", "--yes"]).stderr.contains("it is not a file"));

    fs::remove_dir(&settings).unwrap();
    fs::write(&settings, "{\n  \"a\": 1\n  \"b\": 2\n}\n").unwrap();
    insta::assert_snapshot!("setup_invalid", snapshot(&fail(&home, &["zed", "--yes"])));
    insta::assert_snapshot!("setup_invalid_print", snapshot(&succeed(&home, &["zed", "--print"])));
}

#[test]
fn file_of_another_user_is_refused() {
    let home = TestHome::new();
    // A file that every system has and that belongs to root; if root runs the tests, it is given away.
    let settings = home.path().join("settings.json");
    let target = if fs::metadata(home.path()).unwrap().uid() == 0 {
        let foreign = home.path().join("foreign.json");
        fs::write(&foreign, "{}").unwrap();
        std::os::unix::fs::chown(&foreign, Some(65534), None).unwrap();
        foreign
    } else {
        PathBuf::from("/etc/hostname")
    };
    symlink(&target, &settings).unwrap();
    let before = fs::read(&target).unwrap();
    let args = ["zed", "--yes", "--settings", settings.to_str().unwrap()];
    let outcome = fail(&home, &args);
    let is_refused = outcome.stderr.contains("belongs to another user");
    assert!(is_refused || outcome.stderr.contains("line 1"), "{outcome:?}");
    assert_eq!(fs::read(&target).unwrap(), before);
}

#[test]
fn missing_editor_is_reported_with_the_searched_folders() {
    let home = TestHome::new();
    for editor in ["zed", "jetbrains", "neovim", "emacs", "vscode"] {
        let outcome = fail(&home, &[editor, "--yes"]);
        assert_eq!(outcome.code, 4, "{outcome:?}");
        insta::assert_snapshot!(format!("setup_missing_{editor}"), snapshot(&outcome));
    }
    let printed = succeed(&home, &["jetbrains", "--print"]);
    let entries: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(entries["agent_servers"]["Goose in Jackfield"]["args"], json!(["acp", "goose"]));
}

#[test]
fn every_edition_of_vscode_is_set_up_in_its_own_style() {
    let home = TestHome::new();
    let [code, codium] =
        ["Code", "VSCodium"].map(|it| home.path().join("config").join(it).join("User"));
    fs::create_dir_all(&code).unwrap();
    fs::create_dir_all(&codium).unwrap();
    let tabs = "{\r\n\t\"editor.tabSize\": 2\r\n}";
    fs::write(codium.join("settings.json"), tabs).unwrap();
    succeed(&home, &["vscode", "--yes", "--agent", "goose"]);
    let created = fs::read_to_string(code.join("settings.json")).unwrap();
    assert!(created.starts_with("{\n    \"acp.agents\": {\n        \""), "{created}");
    let changed = fs::read_to_string(codium.join("settings.json")).unwrap();
    assert!(changed.starts_with("{\r\n\t\"editor.tabSize\": 2,\r\n\t\"acp.agents\": {\r\n\t\t\""));
    succeed(&home, &["vscode", "--undo", "--yes"]);
    assert!(!code.join("settings.json").exists(), "the file was created by setup");
    assert_eq!(fs::read_to_string(codium.join("settings.json")).unwrap(), tabs);
}

#[test]
fn folder_that_was_created_for_the_settings_is_removed_again() {
    let home = TestHome::new();
    fs::create_dir_all(home.path().join("config/JetBrains/IdeaIC2025.3")).unwrap();
    succeed(&home, &["jetbrains", "--yes"]);
    let settings = home.path().join(".jetbrains/acp.json");
    let document: Value = serde_json::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
    let entry = &document["agent_servers"]["Goose in Jackfield"];
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_jackfield"));
    assert_eq!(entry.get("type"), None);
    succeed(&home, &["jetbrains", "--undo", "--yes"]);
    assert!(!settings.parent().unwrap().exists());
}

#[test]
fn files_of_ours_are_replaced_and_files_of_the_user_are_not() {
    let home = TestHome::new();
    let folder = home.path().join("config/nvim");
    fs::create_dir_all(folder.join("lua/plugins")).unwrap();
    insta::assert_snapshot!("setup_neovim", snapshot(&succeed(&home, &["neovim", "--yes"])));
    let module = folder.join("lua/jackfield.lua");
    home.write_program("opencode", "exit 1");
    succeed(&home, &["neovim", "--yes", "--agent", "opencode"]);
    let text = fs::read_to_string(&module).unwrap();
    assert!(text.contains("id = \"goose\"") && text.contains("id = \"opencode\""), "{text}");
    succeed(&home, &["neovim", "--undo", "--yes"]);
    assert_eq!(fs::read_dir(folder.join("lua")).unwrap().count(), 1, "only the folder is left");

    fs::write(&module, "return {}\n").unwrap();
    let outcome = fail(&home, &["neovim", "--yes"]);
    assert!(outcome.stderr.contains("it is a file of yours"), "{outcome:?}");
    assert_eq!(fs::read_to_string(&module).unwrap(), "return {}\n");
    assert!(!folder.join("lua/plugins/jackfield.lua").exists(), "all files or none");
}

#[test]
fn named_agent_is_added_even_if_it_is_not_installed() {
    let (home, settings) = home_with_zed();
    let outcome = succeed(&home, &["zed", "--yes", "--agent", "claude-code,chat"]);
    assert!(outcome.stderr.contains("`claude` is not installed yet"), "{outcome:?}");
    let text = fs::read_to_string(&settings).unwrap();
    assert!(text.contains("\"Claude Code in Jackfield\"") && !text.contains("\"goose\""));
    let outcome = fail(&home, &["zed", "--yes", "--agent", "claud"]);
    assert_eq!(outcome.code, 4);
    assert!(outcome.stderr.contains("`claude`"), "{outcome:?}");
}
