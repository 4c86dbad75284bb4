//! Tests of program detection, in which a folder stands for a machine.

use super::*;
use crate::installed::InstalledAgents;
use std::os::unix::fs::{PermissionsExt as _, symlink};

struct TestMachine {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl TestMachine {
    fn new() -> TestMachine {
        let mut machine = TestMachine { dir: tempfile::tempdir().unwrap(), env: Vec::new() };
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

    fn locations(&self) -> ProgramLocations {
        ProgramLocations::below_root(self.dir.path(), self.env.iter().cloned())
    }

    fn find(&self, bin: &str) -> Result<FoundProgram, MissingProgram> {
        find_program(&[bin.to_owned()], Some("TOOL_BIN"), &self.locations())
    }
}

#[test]
fn program_beside_path_is_found_in_well_known_folders() {
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
        let machine = TestMachine::new();
        let path = machine.program(&format!("home/{folder}/tool"), 0o755);
        assert_eq!(
            machine.find("tool"),
            Ok(FoundProgram { path, origin: ProgramOrigin::Folder }),
            "{folder}"
        );
    }
    for folder in ["opt/homebrew/bin", "usr/local/bin"] {
        let machine = TestMachine::new();
        let path = machine.program(&format!("{folder}/tool"), 0o755);
        assert_eq!(
            machine.find("tool"),
            Ok(FoundProgram { path, origin: ProgramOrigin::Folder }),
            "{folder}"
        );
    }
}

#[test]
fn path_is_searched_first_and_newest_version_before_others() {
    let machine = TestMachine::new();
    machine.program("home/.nvm/versions/node/v9.11.2/bin/tool", 0o755);
    let newest = machine.program("home/.nvm/versions/node/v22.1.0/bin/tool", 0o755);
    machine.program("home/.nvm/versions/node/system/bin/tool", 0o755);
    assert_eq!(machine.find("tool").unwrap().path, newest);
    let path = machine.program("bare/tool", 0o755);
    assert_eq!(machine.find("tool"), Ok(FoundProgram { path, origin: ProgramOrigin::Path }));
}

#[test]
fn variable_moves_a_folder() {
    let mut machine = TestMachine::new();
    let path = machine.program("elsewhere/bin/tool", 0o755);
    machine.program("home/.cargo/bin/tool", 0o755);
    machine.set("CARGO_HOME", "elsewhere");
    assert_eq!(machine.find("tool").unwrap().path, path);
}

#[test]
fn file_that_is_not_executable_is_skipped_and_reported() {
    let machine = TestMachine::new();
    let near = machine.program("bare/tool", 0o644);
    assert_eq!(machine.find("tool").unwrap_err().reason, MissingReason::NotExecutable(near));
    let path = machine.program("home/.local/bin/tool", 0o755);
    assert_eq!(machine.find("tool").unwrap().path, path);
}

#[test]
fn dangling_link_is_reported() {
    let machine = TestMachine::new();
    fs::create_dir(machine.path("bare")).unwrap();
    symlink(machine.path("gone"), machine.path("bare/tool")).unwrap();
    assert_eq!(
        machine.find("tool").unwrap_err().reason,
        MissingReason::Dangling(machine.path("bare").join("tool"))
    );
}

#[test]
fn variable_must_name_an_executable_file() {
    let mut machine = TestMachine::new();
    machine.program("bare/tool", 0o755);
    let path = machine.program("mine/tool-2", 0o755);
    machine.set("TOOL_BIN", "mine/tool-2");
    assert_eq!(machine.find("tool"), Ok(FoundProgram { path, origin: ProgramOrigin::Variable }));
    machine.program("mine/plain", 0o644);
    let cases = [
        ("mine/none", "the file does not exist"),
        ("mine", "it is not a file"),
        ("mine/plain", "it is not executable"),
    ];
    for (value, expected) in cases {
        machine.env.pop();
        machine.set("TOOL_BIN", value);
        let MissingReason::BadVariable { name, reason, .. } =
            machine.find("tool").unwrap_err().reason
        else {
            panic!("{value} is refused");
        };
        assert_eq!((name.as_str(), reason), ("TOOL_BIN", expected));
    }
    machine.env.pop();
    machine.env.push(("TOOL_BIN".into(), "tool".into()));
    let MissingReason::BadVariable { reason, .. } = machine.find("tool").unwrap_err().reason else {
        panic!()
    };
    assert_eq!(reason, "it is not an absolute path");
}

#[test]
fn searched_folders_are_reported_if_nothing_is_found() {
    let machine = TestMachine::new();
    fs::create_dir_all(machine.path("home/.cargo/bin")).unwrap();
    let missing = machine.find("tool").unwrap_err();
    assert_eq!(missing.reason, MissingReason::NotFound);
    assert_eq!(missing.searched, [machine.path("bare"), machine.path("home/.cargo/bin")]);
}

#[test]
fn folders_beside_path_can_be_replaced() {
    let mut machine = TestMachine::new();
    machine.program("home/.cargo/bin/tool", 0o755);
    machine.set("JACKFIELD_PROGRAM_DIRS", "mine");
    assert!(machine.find("tool").is_err());
    let path = machine.program("mine/tool", 0o755);
    assert_eq!(machine.find("tool").unwrap().path, path);
    let found = machine.find("tool").unwrap();
    assert!(machine.locations().path_for(&found).unwrap().ends_with("/mine"));
}

#[test]
fn first_variant_whose_program_exists_is_chosen() {
    let text = "id = \"a\"\nname = \"A\"\nbins = [\"a\"]\nbin_env = \"A_BIN\"\n[[launch]]\n\
                bins = [\"a-acp\"]\n[[launch]]\nargs = [\"acp\"]\n";
    let spec = jackfield_catalog::parse_agent_spec(text).unwrap();
    let mut machine = TestMachine::new();
    let missing = choose_variant(&spec, &machine.locations()).unwrap_err();
    assert_eq!(missing.bins, ["a-acp", "a"]);
    let own = machine.program("mine/a", 0o755);
    machine.set("A_BIN", "mine/a");
    let chosen = choose_variant(&spec, &machine.locations()).unwrap();
    assert_eq!((chosen.index, chosen.found.path), (1, own));
    machine.program("bare/a-acp", 0o755);
    assert_eq!(choose_variant(&spec, &machine.locations()).unwrap().index, 0);
}

#[test]
fn installed_version_is_found_after_the_variable_and_before_path() {
    let text = "id = \"a\"\nname = \"A\"\nbins = [\"a-2\", \"a\"]\nbin_env = \"A_BIN\"\n[[launch]]\n\
                bins = [\"a-acp\"]\n[[launch]]\nargs = [\"acp\"]\n";
    let spec = jackfield_catalog::parse_agent_spec(text).unwrap();
    let mut machine = TestMachine::new();
    machine.program("bare/a-2", 0o755);
    let acp = machine.program("bare/a-acp", 0o755);
    let ours = machine.program("agents/a/1.0/bin/a", 0o755);
    let locations = |machine: &TestMachine| {
        machine.locations().with_installed(InstalledAgents::new(machine.path("agents")))
    };
    let find = |machine: &TestMachine| find_own_program(&spec, &locations(machine)).unwrap();
    assert_eq!(find(&machine).origin, ProgramOrigin::Path, "the folder is incomplete");
    fs::write(machine.path("agents/a/1.0/installed.json"), "{}").unwrap();
    fs::write(machine.path("agents/a/current"), r#"{"current":"1.0"}"#).unwrap();
    let found = find(&machine);
    assert_eq!(found, FoundProgram { path: ours.clone(), origin: ProgramOrigin::Installed });
    let path = locations(&machine).path_for(&found).unwrap();
    assert!(path.starts_with(ours.parent().unwrap().to_str().unwrap()), "{path}");
    // A program that the installed version does not have is searched as before.
    let adapter = find_variant_program(&spec, &spec.launch[0], &locations(&machine)).unwrap();
    assert_eq!(adapter, FoundProgram { path: acp, origin: ProgramOrigin::Path });
    machine.program("mine/a", 0o755);
    machine.set("A_BIN", "mine/a");
    assert_eq!(find(&machine).origin, ProgramOrigin::Variable);
}
