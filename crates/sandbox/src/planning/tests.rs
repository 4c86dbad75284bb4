//! Plans for an imaginary disk.

use super::*;
use crate::plan::PathLink;
use crate::profile::ProfileSet;
use std::{collections::BTreeMap, ffi::OsString};

/// Paths with what is there. A link has its target.
struct ImaginaryDisk(BTreeMap<PathBuf, Option<PathBuf>>);

impl ImaginaryDisk {
    /// Paths, or `PATH -> TARGET`, separated by spaces.
    fn new(lines: &str) -> ImaginaryDisk {
        let mut entries = BTreeMap::new();
        for line in
            lines.split_whitespace().collect::<Vec<_>>().join(" ").replace(" -> ", ">").split(' ')
        {
            let (path, target) = line.split_once('>').map_or((line, None), |it| (it.0, Some(it.1)));
            for above in Path::new(path).ancestors().skip(1) {
                entries.entry(above.to_owned()).or_insert(None);
            }
            entries.insert(PathBuf::from(path), target.map(PathBuf::from));
        }
        ImaginaryDisk(entries)
    }
}

impl PathLookup for ImaginaryDisk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut resolved = PathBuf::new();
        for component in path.components() {
            resolved.push(component);
            while let Some(target) = self.0.get(&resolved)? {
                resolved = self.resolve(target)?;
            }
        }
        Some(resolved)
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        let has_entries = || self.0.keys().any(|it| it.parent() == Some(path));
        Some(match self.0.get(path)? {
            Some(_) => EntryKind::Link,
            None if has_entries() => EntryKind::Directory,
            None => EntryKind::File,
        })
    }

    fn list(&self, path: &Path) -> Vec<OsString> {
        let inside = self.0.keys().filter(|it| it.parent() == Some(path));
        inside.filter_map(|it| it.file_name()).map(ToOwned::to_owned).collect()
    }
}

const DISK: &str = "/home/ann/.ssh/id /home/ann/.cargo/bin /home/ann/.cargo/credentials.toml
    /home/ann/.nvm/bin /home/ann/.local/bin/tool /home/ann/.local/share/keyrings/k
    /home/ann/.claude/settings.json /home/ann/.config/jackfield/config.toml
    /home/ann/.rustup -> /data/rustup /data/rustup/toolchains /home/ann/other/src
    /home/ann/app/.git/hooks/x /home/ann/app/.git/config /home/ann/app/.git/HEAD
    /home/ann/app/.vscode/tasks.json /home/ann/app/src/main.rs /home/ann/app/bin/run
    /run/docker.sock /run/user/1000/jackfield/s /tmp/x /var/tmp/y /etc/shadow /etc/resolv.conf
    /usr/bin/cc";

fn facts() -> LaunchFacts {
    LaunchFacts {
        layer: EnforcementLayer::Bubblewrap,
        session_directories: vec!["/home/ann/app".into()],
        home: "/home/ann".into(),
        search_path: [
            "/home/ann/.nvm/bin",
            "/home/ann/.local/bin",
            "/home/ann/app/bin",
            "/usr/bin",
        ]
        .map(PathBuf::from)
        .into(),
        temporary_directory: "/tmp".into(),
        agent_folders: ["/home/ann/.claude", "/home/ann/.claude-new", "/home/ann/.claude.json"]
            .map(PathBuf::from)
            .into(),
        program_folders: Vec::new(),
        agent_env: vec!["ANTHROPIC_*".into()],
        agent_hosts: vec!["api.anthropic.com".into()],
        own_folders: vec!["/home/ann/.config/jackfield".into(), "/run/user/1000/jackfield".into()],
        proxy_socket: Some("/run/user/1000/jackfield/proxy".into()),
    }
}

fn plan_of(profile: &str, policy: &str, facts: &LaunchFacts, disk: &str) -> SandboxPlan {
    let set = ProfileSet::parse(policy).unwrap();
    make_plan(set.find(profile).unwrap(), facts, &ImaginaryDisk::new(disk)).unwrap()
}

fn print_rules(plan: &SandboxPlan) -> String {
    let lines = plan.paths.iter().map(|it| format!("{:?} {}", it.access, it.path.display()));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn workspace_hides_the_home_directory_and_protects_files() {
    let plan = plan_of("workspace", "", &facts(), DISK);
    insta::assert_snapshot!(print_rules(&plan), @"
    ReadOnly /
    Hidden /etc/shadow
    Hidden /home
    Temporary /home/ann/.cache
    ReadOnly /home/ann/.cargo
    Hidden /home/ann/.cargo/credentials.toml
    Writable /home/ann/.claude
    Temporary /home/ann/.claude-new
    ReadOnly /home/ann/.local/bin
    ReadOnly /home/ann/.nvm
    Writable /home/ann/app
    Writable /home/ann/app/.git
    ReadOnly /home/ann/app/.git/config
    ReadOnly /home/ann/app/.git/hooks
    ReadOnly /home/ann/app/.vscode
    Hidden /run
    Temporary /tmp
    Temporary /var/tmp
    ");
    let link = PathLink { path: "/home/ann/.rustup".into(), target: "/data/rustup".into() };
    assert_eq!(plan.links, [link]);
    assert!(plan.unprotected.contains(&"/home/ann/app/.claude".into()));
    assert!(!plan.unprotected.contains(&"/home/ann/app/.git/hooks".into()));
    assert_eq!(plan.network, NetworkPlan::Proxy { socket: facts().proxy_socket.unwrap() });
    assert!(plan.env.contains(&"ANTHROPIC_*".to_owned()));
}

#[test]
fn longer_path_applies_and_then_the_later_layer() {
    let base = "[sandbox.workspace]\n";
    for (lines, path, expected) in [
        ("", "/home/ann/app/src/main.rs", PathAccess::Writable),
        ("", "/home/ann/other/src", PathAccess::Hidden),
        ("", "/home/ann/.local/bin/tool", PathAccess::ReadOnly),
        ("", "/home/ann/.local/share/keyrings/k", PathAccess::Hidden),
        ("", "/home/ann/.nvm/bin", PathAccess::ReadOnly),
        ("", "/home/ann/.cargo/credentials.toml", PathAccess::Hidden),
        ("", "/usr/bin/cc", PathAccess::ReadOnly),
        ("", "/etc/shadow", PathAccess::Hidden),
        ("read = [\"~/other\"]", "/home/ann/other/src", PathAccess::ReadOnly),
        (
            "write = [\"~/other\"]\nread = [\"~/other/src\"]",
            "/home/ann/other/src",
            PathAccess::ReadOnly,
        ),
        ("read = [\"~\"]", "/home/ann/.ssh/id", PathAccess::ReadOnly),
        ("read = [\"~\"]", "/home/ann/.cargo/credentials.toml", PathAccess::Hidden),
        ("write = [\"~/.cargo\"]", "/home/ann/.cargo/bin", PathAccess::Writable),
        ("hide = [\"./src\"]", "/home/ann/app/src/main.rs", PathAccess::Hidden),
        ("write = [\"./.git/hooks\"]", "/home/ann/app/.git/hooks/x", PathAccess::Writable),
        ("write = [\"./.git/hooks\"]", "/home/ann/app/.git/config", PathAccess::ReadOnly),
        ("protect_files = false", "/home/ann/app/.git/hooks/x", PathAccess::Writable),
        (
            "write = [\"/home/ann/.config/jackfield\"]",
            "/home/ann/.config/jackfield/config.toml",
            PathAccess::Hidden,
        ),
        (
            "read = [\"~/.config/jackfield/config.toml\"]",
            "/home/ann/.config/jackfield/config.toml",
            PathAccess::Hidden,
        ),
        ("read = [\"/run\"]", "/run/docker.sock", PathAccess::ReadOnly),
        ("read = [\"/run\"]", "/run/user/1000/jackfield/s", PathAccess::Hidden),
    ] {
        let plan = plan_of("workspace", &format!("{base}{lines}\n"), &facts(), DISK);
        let rule = plan.find_rule(Path::new(path)).unwrap();
        assert_eq!(rule.access, expected, "{lines}: {path}");
    }
}

#[test]
fn read_only_permits_no_writing_in_the_session_directory() {
    let plan = plan_of("read-only", "", &facts(), DISK);
    let writable = plan.paths.iter().filter(|it| it.access == PathAccess::Writable);
    let writable: Vec<_> = writable.map(|it| it.path.to_str().unwrap()).collect();
    assert_eq!(writable, ["/home/ann/.claude"]);
    let rule = plan.find_rule(Path::new("/home/ann/app/src")).unwrap();
    assert_eq!(rule.access, PathAccess::ReadOnly);
}

#[test]
fn link_of_an_agent_permits_nothing() {
    let disk = format!("{DISK} /home/ann/app/data -> /home/ann/.ssh");
    let policy = "[sandbox.workspace]\nread = [\"./data\"]\n";
    let plan = plan_of("workspace", policy, &facts(), &disk);
    let rule = plan.find_rule(Path::new("/home/ann/.ssh/id")).unwrap();
    assert_eq!(rule.access, PathAccess::Hidden);
    assert_eq!(plan.paths, plan_of("workspace", "", &facts(), DISK).paths);
}

#[test]
fn parents_of_a_read_only_path_in_a_writable_one_are_mount_points() {
    let disk = format!(
        "{DISK} /home/ann/app/.git/modules/lib/a/HEAD
        /home/ann/app/.git/modules/lib/a/config /home/ann/app/.git/modules/lib/a/modules/b/HEAD
        /home/ann/app/.git/modules/lib/a/modules/b/hooks/h"
    );
    let plan = plan_of("workspace", "", &facts(), &disk);
    let in_modules =
        plan.paths.iter().filter(|it| it.path.starts_with("/home/ann/app/.git/modules"));
    let in_modules: Vec<_> = in_modules.map(|it| (it.path.to_str().unwrap(), it.access)).collect();
    let top = "/home/ann/app/.git/modules";
    let expected = [
        ("", PathAccess::Writable),
        ("/lib", PathAccess::Writable),
        ("/lib/a", PathAccess::Writable),
        ("/lib/a/config", PathAccess::ReadOnly),
        ("/lib/a/modules", PathAccess::Writable),
        ("/lib/a/modules/b", PathAccess::Writable),
        ("/lib/a/modules/b/hooks", PathAccess::ReadOnly),
    ];
    let expected = expected.map(|(path, access)| (format!("{top}{path}"), access));
    assert_eq!(in_modules, expected.each_ref().map(|(path, access)| (path.as_str(), *access)));
}

#[test]
fn many_submodules_become_read_only_together() {
    let modules = (0..50).map(|it| format!("/home/ann/app/.git/modules/m{it}/HEAD"));
    let disk = format!("{DISK} {}", modules.collect::<Vec<_>>().join(" "));
    let plan = plan_of("workspace", "", &facts(), &disk);
    let rule = plan.find_rule(Path::new("/home/ann/app/.git/modules/m7/config")).unwrap();
    assert_eq!(rule.path, Path::new("/home/ann/app/.git/modules"));
    assert_eq!(rule.access, PathAccess::ReadOnly);
}

#[test]
fn git_file_of_a_worktree_is_protected() {
    let disk = "/home/ann/app/.git /home/ann/app/src/a /tmp/x";
    let plan = plan_of("workspace", "", &facts(), disk);
    let rule = plan.find_rule(Path::new("/home/ann/app/.git")).unwrap();
    assert_eq!(rule.access, PathAccess::ReadOnly);
}

#[test]
fn program_inside_an_own_folder_is_readable() {
    let own = "/home/ann/.local/share/jackfield";
    let disk = format!("{DISK} {own}/token {own}/agents/claude/cli.js");
    let facts = LaunchFacts {
        own_folders: vec![own.into()],
        program_folders: vec![format!("{own}/agents/claude").into()],
        ..facts()
    };
    let plan = plan_of("workspace", "[sandbox.workspace]\nread = [\"~/.local\"]\n", &facts, &disk);
    let access = |path: &str| plan.find_rule(Path::new(path)).unwrap().access;
    assert_eq!(access(&format!("{own}/agents/claude/cli.js")), PathAccess::ReadOnly);
    assert_eq!(access(&format!("{own}/agents/codex")), PathAccess::Hidden);
    assert_eq!(access(&format!("{own}/token")), PathAccess::Hidden);
}

#[test]
fn plan_is_refused_with_a_way_out() {
    let set = ProfileSet::built_in();
    let refuse = |facts: &LaunchFacts| {
        let disk = ImaginaryDisk::new(&format!("{DISK} /home/ann/link -> /home/ann/.ssh"));
        make_plan(set.find("workspace").unwrap(), facts, &disk).unwrap_err().to_string()
    };
    let in_directory =
        |path: &str| refuse(&LaunchFacts { session_directories: vec![path.into()], ..facts() });
    let without_proxy = refuse(&LaunchFacts { proxy_socket: None, ..facts() });
    let errors = ["/home/ann", "/", "/home/ann/missing", "/home/ann/link"].map(in_directory);
    insta::assert_snapshot!(errors.join("\n") + "\n" + &without_proxy, @"
    the session's directory `/home/ann` contains the home directory, which profile `workspace` hides; start the session in a project's directory, or use the profile `open`
    the session's directory `/` contains the home directory, which profile `workspace` hides; start the session in a project's directory, or use the profile `open`
    the session's directory `/home/ann/missing` does not exist
    the session's directory `/home/ann/link` is now a symbolic link to `/home/ann/.ssh`; start a session in that directory if it is intended
    profile `workspace` limits the network to hosts, and no proxy serves this launch
    ");
}

#[test]
fn loopback_is_proxied_if_a_needed_host_is_on_this_machine() {
    let with_hosts = |hosts: &str| {
        let policy = format!("[sandbox.workspace]\nnetwork = {{ hosts = [{hosts}] }}\n");
        plan_of("workspace", &policy, &facts(), DISK).proxies_loopback
    };
    assert!(!with_hosts("\"example.com\""));
    assert!(with_hosts("\"localhost:11434\""));
    assert!(with_hosts("\"127.0.0.1:8080\""));
}

#[test]
fn plan_survives_json() {
    let plan = plan_of("workspace", "", &facts(), DISK);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<SandboxPlan>(&text).unwrap(), plan);
}
