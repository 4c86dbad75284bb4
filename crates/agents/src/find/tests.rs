//! Detection on machines that are a folder each.

use super::*;
use std::os::unix::fs::{PermissionsExt as _, symlink};

struct Machine {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Machine {
        let mut machine = Machine { dir: tempfile::tempdir().unwrap(), env: Vec::new() };
        machine.set("HOME", "home");
        machine.set("PATH", "bare");
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn set(&mut self, name: &str, path: &str) {
        let value = self.path(path).to_str().unwrap().to_owned();
        self.env.push((name.to_owned(), value));
    }

    fn program(&self, path: &str, mode: u32) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn places(&self) -> Places {
        Places::below(self.dir.path(), self.env.iter().cloned())
    }

    fn find(&self, bin: &str) -> Result<Found, Missing> {
        find(&[bin.to_owned()], Some("TOOL_BIN"), &self.places())
    }
}

#[test]
fn a_bare_path_finds_what_the_shell_finds() {
    let folders = [
        ".local/bin",
        ".npm-global/bin",
        ".local/share/pnpm",
        ".bun/bin",
        ".volta/bin",
        ".asdf/shims",
        ".local/share/mise/shims",
        ".pyenv/shims",
        ".cargo/bin",
        ".deno/bin",
        "go/bin",
        ".nix-profile/bin",
        ".nvm/versions/node/v20.1.0/bin",
        ".local/share/fnm/node-versions/v20.1.0/installation/bin",
    ];
    for folder in folders {
        let machine = Machine::new();
        let path = machine.program(&format!("home/{folder}/tool"), 0o755);
        assert_eq!(machine.find("tool"), Ok(Found { path, via: Via::Folder }), "{folder}");
    }
    for folder in ["opt/homebrew/bin", "usr/local/bin"] {
        let machine = Machine::new();
        let path = machine.program(&format!("{folder}/tool"), 0o755);
        assert_eq!(machine.find("tool"), Ok(Found { path, via: Via::Folder }), "{folder}");
    }
}

#[test]
fn path_comes_first_and_the_newest_version_before_the_others() {
    let machine = Machine::new();
    machine.program("home/.nvm/versions/node/v9.11.2/bin/tool", 0o755);
    let newest = machine.program("home/.nvm/versions/node/v22.1.0/bin/tool", 0o755);
    machine.program("home/.nvm/versions/node/system/bin/tool", 0o755);
    assert_eq!(machine.find("tool").unwrap().path, newest);
    let path = machine.program("bare/tool", 0o755);
    assert_eq!(machine.find("tool"), Ok(Found { path, via: Via::Path }));
}

#[test]
fn a_variable_moves_a_folder() {
    let mut machine = Machine::new();
    let path = machine.program("elsewhere/bin/tool", 0o755);
    machine.program("home/.cargo/bin/tool", 0o755);
    machine.set("CARGO_HOME", "elsewhere");
    assert_eq!(machine.find("tool").unwrap().path, path);
}

#[test]
fn what_may_not_be_run_is_passed_by_and_told_if_nothing_else_is_there() {
    let machine = Machine::new();
    let near = machine.program("bare/tool", 0o644);
    assert_eq!(machine.find("tool").unwrap_err().why, Why::NotExecutable(near));
    let path = machine.program("home/.local/bin/tool", 0o755);
    assert_eq!(machine.find("tool").unwrap().path, path);
}

#[test]
fn a_link_to_nothing_is_told() {
    let machine = Machine::new();
    fs::create_dir(machine.path("bare")).unwrap();
    symlink(machine.path("gone"), machine.path("bare/tool")).unwrap();
    assert_eq!(
        machine.find("tool").unwrap_err().why,
        Why::Dangling(machine.path("bare").join("tool"))
    );
}

#[test]
fn a_variable_names_a_program_or_nothing() {
    let mut machine = Machine::new();
    machine.program("bare/tool", 0o755);
    let path = machine.program("mine/tool-2", 0o755);
    machine.set("TOOL_BIN", "mine/tool-2");
    assert_eq!(machine.find("tool"), Ok(Found { path, via: Via::Variable }));
    machine.program("mine/plain", 0o644);
    let cases = [
        ("mine/none", "there is no such file"),
        ("mine", "it is not a file"),
        ("mine/plain", "it may not be run"),
    ];
    for (value, reason) in cases {
        machine.env.pop();
        machine.set("TOOL_BIN", value);
        let Why::BadVariable { name, why, .. } = machine.find("tool").unwrap_err().why else {
            panic!("{value} is refused");
        };
        assert_eq!((name.as_str(), why), ("TOOL_BIN", reason));
    }
    machine.env.pop();
    machine.env.push(("TOOL_BIN".into(), "tool".into()));
    let Why::BadVariable { why, .. } = machine.find("tool").unwrap_err().why else { panic!() };
    assert_eq!(why, "it is not an absolute path");
}

#[test]
fn on_a_machine_with_nothing_the_folders_are_told() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("home/.cargo/bin")).unwrap();
    let missing = machine.find("tool").unwrap_err();
    assert_eq!(missing.why, Why::Nowhere);
    assert_eq!(missing.searched, [machine.path("bare"), machine.path("home/.cargo/bin")]);
}

#[test]
fn the_folders_beside_path_can_be_replaced() {
    let mut machine = Machine::new();
    machine.program("home/.cargo/bin/tool", 0o755);
    machine.set("JACKFIELD_PROGRAM_DIRS", "mine");
    assert!(machine.find("tool").is_err());
    let path = machine.program("mine/tool", 0o755);
    assert_eq!(machine.find("tool").unwrap().path, path);
    assert!(machine.places().wide_path().ends_with("/mine"));
}

#[test]
fn the_first_variant_whose_program_is_there_is_chosen() {
    let text = "id = \"a\"\nname = \"A\"\nbins = [\"a\"]\nbin_env = \"A_BIN\"\n[[launch]]\n\
                bins = [\"a-acp\"]\n[[launch]]\nargs = [\"acp\"]\n";
    let spec = jackfield_catalogue::parse(text).unwrap();
    let mut machine = Machine::new();
    let missing = choose(&spec, &machine.places()).unwrap_err();
    assert_eq!(missing.bins, ["a-acp", "a"]);
    let own = machine.program("mine/a", 0o755);
    machine.set("A_BIN", "mine/a");
    let chosen = choose(&spec, &machine.places()).unwrap();
    assert_eq!((chosen.index, chosen.found.path), (1, own));
    machine.program("bare/a-acp", 0o755);
    assert_eq!(choose(&spec, &machine.places()).unwrap().index, 0);
}
