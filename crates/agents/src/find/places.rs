//! Where programs are: `PATH`, then the folders that shells add to it and that a daemon started from
//! a desktop does not see.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

/// Replaces every folder beside `PATH`; empty for none.
pub const PROGRAM_DIRS: &str = "JACKFIELD_PROGRAM_DIRS";

/// Folders of version managers, package managers and installers: the variable that moves the first
/// part, where that part is otherwise (below the home folder), and the rest.
const TOOLS: &[(&str, &str, &str)] = &[
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

/// Folders that hold one folder per version of node, and where the programs are in that.
const VERSIONS: &[(&str, &str, &str, &str)] = &[
    ("NVM_DIR", ".nvm", "versions/node", "bin"),
    ("FNM_DIR", ".local/share/fnm", "node-versions", "installation/bin"),
    ("", ".fnm", "node-versions", "installation/bin"),
    ("MISE_DATA_DIR", ".local/share/mise", "installs/node", "bin"),
];

/// Folders of the whole machine.
const SYSTEM: &[&str] = &[
    "opt/homebrew/bin",
    "home/linuxbrew/.linuxbrew/bin",
    "usr/local/bin",
    "run/current-system/sw/bin",
    "snap/bin",
    "usr/bin",
    "bin",
];

/// The environment that programs are looked for in, and the folders it leads to.
#[derive(Debug, Clone)]
pub struct Places {
    env: BTreeMap<String, String>,
    path: Vec<PathBuf>,
    /// Only those that exist, in the order they are searched.
    others: Vec<PathBuf>,
}

impl Places {
    pub fn new(env: impl Iterator<Item = (String, String)>) -> Places {
        Places::below(Path::new("/"), env)
    }

    /// The same with the machine's folders below `root`.
    pub(super) fn below(root: &Path, env: impl Iterator<Item = (String, String)>) -> Places {
        let env: BTreeMap<String, String> = env.collect();
        let split = |it: &String| env::split_paths(it).filter(|it| it.is_absolute()).collect();
        let path: Vec<PathBuf> = env.get("PATH").map(split).unwrap_or_default();
        let mut others = match env.get(PROGRAM_DIRS) {
            Some(ours) => split(ours),
            None => known(root, &env),
        };
        others.retain(|it| !path.contains(it) && it.is_dir());
        let mut seen = Vec::new();
        others.retain(|it| {
            let new = !seen.contains(it);
            seen.push(it.clone());
            new
        });
        Places { env, path, others }
    }

    pub fn env(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.env.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// A variable that is set to something.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// `~` at the beginning of a path is the home folder.
    pub fn expand(&self, path: &str) -> PathBuf {
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

    /// All folders, in the order they are searched.
    pub fn searched(&self) -> Vec<PathBuf> {
        self.path.iter().chain(&self.others).cloned().collect()
    }

    /// A `PATH` that a program found beside `PATH` can live with: what it starts itself, such as
    /// its interpreter, is installed where it is.
    pub fn wide_path(&self) -> String {
        let joined = env::join_paths(self.searched());
        joined.ok().and_then(|it| it.into_string().ok()).unwrap_or_default()
    }
}

fn known(root: &Path, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let set = |name: &str| env.get(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let home = set("HOME");
    let base = |variable: &str, fallback: &str| {
        set(variable).or_else(|| home.as_ref().map(|it| it.join(fallback)))
    };
    let tools = TOOLS.iter().filter_map(|(variable, fallback, rest)| {
        let base = base(variable, fallback)?;
        Some(if rest.is_empty() { base } else { base.join(rest) })
    });
    let versions = VERSIONS.iter().flat_map(|(variable, fallback, folder, rest)| {
        let folder = base(variable, fallback).map(|it| it.join(folder));
        newest_first(folder).into_iter().map(move |it| it.join(rest))
    });
    let system = SYSTEM.iter().map(|it| root.join(it));
    tools.chain(versions).chain(system).collect()
}

/// `v22.1.0` before `v9.11.2`; what is no version comes last.
fn newest_first(folder: Option<PathBuf>) -> Vec<PathBuf> {
    let entries = folder.and_then(|it| fs::read_dir(it).ok()).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|it| it.path()).collect();
    folders.sort_by_cached_key(|it| Reverse((version_of(it), it.clone())));
    folders
}

fn version_of(folder: &Path) -> Vec<u64> {
    let name = folder.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.trim_start_matches('v').to_owned();
    name.split('.').map_while(|it| it.parse().ok()).collect()
}
