//! The folders that are searched for programs: `PATH`, then folders that shells add to `PATH` and
//! that a daemon started from a desktop does not have there.

use super::{FoundProgram, ProgramOrigin};
use crate::installed::{InstalledAgents, InstalledVersion};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

/// The variable that replaces all folders other than `PATH`; empty for none.
pub const PROGRAM_DIRS: &str = "JACKFIELD_PROGRAM_DIRS";

/// Folders of version managers, package managers and installers: the variable that sets the first
/// part, its default below the home folder, and the rest.
const TOOL_FOLDERS: &[(&str, &str, &str)] = &[
    ("", ".local/bin", ""),
    ("", "bin", ""),
    ("NPM_CONFIG_PREFIX", ".npm-global", "bin"),
    ("", ".npm-packages/bin", ""),
    ("PNPM_HOME", ".local/share/pnpm", ""),
    ("", "Library/pnpm", ""),
    ("", ".yarn/bin", ""),
    ("BUN_INSTALL", ".bun", "bin"),
    ("VOLTA_HOME", ".volta", "bin"),
    ("ASDF_DATA_DIR", ".asdf", "shims"),
    ("MISE_DATA_DIR", ".local/share/mise", "shims"),
    ("PYENV_ROOT", ".pyenv", "shims"),
    ("CARGO_HOME", ".cargo", "bin"),
    ("DENO_INSTALL", ".deno", "bin"),
    ("GOPATH", "go", "bin"),
    ("N_PREFIX", "n", "bin"),
    ("", ".nix-profile/bin", ""),
    ("", ".claude/local", ""),
    ("", ".opencode/bin", ""),
    ("", ".kimi-code/bin", ""),
    ("", ".grok/bin", ""),
];

/// Folders with one folder per version of Node.js, and the folder of the programs in it.
const VERSION_FOLDERS: &[(&str, &str, &str, &str)] = &[
    ("NVM_DIR", ".nvm", "versions/node", "bin"),
    ("FNM_DIR", ".local/share/fnm", "node-versions", "installation/bin"),
    ("", ".fnm", "node-versions", "installation/bin"),
    ("MISE_DATA_DIR", ".local/share/mise", "installs/node", "bin"),
];

/// Folders of the system.
const SYSTEM_FOLDERS: &[&str] = &[
    "opt/homebrew/bin",
    "home/linuxbrew/.linuxbrew/bin",
    "usr/local/bin",
    "run/current-system/sw/bin",
    "snap/bin",
    "usr/bin",
    "bin",
];

/// An environment, and the folders in which it finds programs.
#[derive(Debug, Clone)]
pub struct ProgramLocations {
    env: BTreeMap<String, String>,
    path: Vec<PathBuf>,
    /// Existing folders that are not on `PATH`, in the order of the search.
    others: Vec<PathBuf>,
    /// The agents that Jackfield has installed.
    installed: Option<InstalledAgents>,
}

impl ProgramLocations {
    pub fn new(env: impl Iterator<Item = (String, String)>) -> ProgramLocations {
        ProgramLocations::below_root(Path::new("/"), env)
    }

    /// The same with the system's folders below `root`.
    pub(super) fn below_root(
        root: &Path,
        env: impl Iterator<Item = (String, String)>,
    ) -> ProgramLocations {
        let env: BTreeMap<String, String> = env.collect();
        let split = |it: &String| env::split_paths(it).filter(|it| it.is_absolute()).collect();
        let path: Vec<PathBuf> = env.get("PATH").map(split).unwrap_or_default();
        let mut others = match env.get(PROGRAM_DIRS) {
            Some(folders) => split(folders),
            None => well_known_folders(root, &env),
        };
        others.retain(|it| !path.contains(it) && it.is_dir());
        let mut seen = Vec::new();
        others.retain(|it| {
            let is_new = !seen.contains(it);
            seen.push(it.clone());
            is_new
        });
        ProgramLocations { env, path, others, installed: None }
    }

    /// The same with the agents that Jackfield has installed, which are found before those on `PATH`.
    #[must_use]
    pub fn with_installed(self, installed: InstalledAgents) -> ProgramLocations {
        ProgramLocations { installed: Some(installed), ..self }
    }

    /// The version of an agent that Jackfield has installed.
    pub fn find_installed(&self, agent: &str) -> Option<InstalledVersion> {
        self.installed.as_ref()?.find_current(agent)
    }

    pub fn env(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.env.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// The value of a variable, if it is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// Replaces `~/` at the start of a path by the home folder.
    pub fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.var("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => PathBuf::from(path),
        }
    }

    pub(super) fn path(&self) -> &[PathBuf] {
        &self.path
    }

    pub(super) fn others(&self) -> &[PathBuf] {
        &self.others
    }

    /// All folders in the order of the search.
    pub fn searched(&self) -> Vec<PathBuf> {
        self.path.iter().chain(&self.others).cloned().collect()
    }

    /// The `PATH` for a program that is not on `PATH`, with all folders: programs that it starts, such as its
    /// interpreter, are usually in one of them. A program that Jackfield has installed finds those beside it first.
    /// `None` if the current `PATH` is sufficient.
    pub fn path_for(&self, found: &FoundProgram) -> Option<String> {
        let beside = found.path.parent().map(Path::to_owned);
        let own = match found.origin {
            ProgramOrigin::Path => return None,
            ProgramOrigin::Installed => beside,
            ProgramOrigin::Variable | ProgramOrigin::Folder => None,
        };
        Some(join_folders(own.into_iter().chain(self.searched())))
    }

    /// A `PATH` with all folders in the order of the search.
    pub(crate) fn search_path(&self) -> String {
        join_folders(self.searched().into_iter())
    }
}

fn join_folders(folders: impl Iterator<Item = PathBuf>) -> String {
    let joined = env::join_paths(folders);
    joined.ok().and_then(|it| it.into_string().ok()).unwrap_or_default()
}

fn well_known_folders(root: &Path, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let set = |name: &str| env.get(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let home = set("HOME");
    let base = |variable: &str, fallback: &str| {
        set(variable).or_else(|| home.as_ref().map(|it| it.join(fallback)))
    };
    let tools = TOOL_FOLDERS.iter().filter_map(|(variable, fallback, rest)| {
        let base = base(variable, fallback)?;
        Some(if rest.is_empty() { base } else { base.join(rest) })
    });
    let versions = VERSION_FOLDERS.iter().flat_map(|(variable, fallback, folder, rest)| {
        let folder = base(variable, fallback).map(|it| it.join(folder));
        folders_newest_first(folder).into_iter().map(move |it| it.join(rest))
    });
    let system = SYSTEM_FOLDERS.iter().map(|it| root.join(it));
    tools.chain(versions).chain(system).collect()
}

/// The folders in a folder, sorted by version: `v22.1.0` before `v9.11.2`, other names last.
fn folders_newest_first(folder: Option<PathBuf>) -> Vec<PathBuf> {
    let entries = folder.and_then(|it| fs::read_dir(it).ok()).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|it| it.path()).collect();
    folders.sort_by_cached_key(|it| Reverse((parse_version(it), it.clone())));
    folders
}

fn parse_version(folder: &Path) -> Vec<u64> {
    let name = folder.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.trim_start_matches('v').to_owned();
    name.split('.').map_while(|it| it.parse().ok()).collect()
}
