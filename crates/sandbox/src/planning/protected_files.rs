//! Files in writable directories that other programs execute or obey outside of the sandbox.
//!
//! A file is protected by a read-only mount, which needs a mount point. So only a file that exists at
//! launch is protected: a mount point for a missing one would stay in the user's directory as an empty
//! file. The plan lists what is not protected.

use super::path_lookup::{EntryKind, PathLookup};
use super::rule_table::RuleTable;
use std::path::{Path, PathBuf};

/// Relative to a writable root.
const PROTECTED: &[&str] = &[
    // Git runs hooks, and programs that its configuration names. In a worktree `.git` is a file.
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    // Settings of agents and editors: commands that they run, permissions, MCP servers.
    ".amp",
    ".claude",
    ".clinerules",
    ".codex",
    ".continue",
    ".cursor",
    ".devcontainer",
    ".factory",
    ".gemini",
    ".goose",
    ".idea",
    ".kilocode",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".qwen",
    ".roo",
    ".vscode",
    ".windsurf",
    ".zed",
    "opencode.json",
    // Rules and commands of Jackfield.
    ".jackfield.toml",
    // Shells read these when they start, or when they enter the directory.
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish",
    ".cshrc",
    ".envrc",
    ".kshrc",
    ".login",
    ".profile",
    ".tcshrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    // The user's own settings, if the root is a home directory.
    ".config/git",
    ".gitconfig",
    ".ssh",
];

const MODULES: &str = ".git/modules";
/// Files of a submodule's Git directory.
const PROTECTED_IN_MODULE: &[&str] = &["hooks", "config"];
/// With more submodules than this, all of `.git/modules` is read-only: each mount costs time at launch.
const MODULES_MAX: usize = 40;
/// Submodules in folders and in other submodules.
const MODULE_DEPTH_MAX: usize = 8;

/// Makes the protected files of a root read-only. Returns those that cannot be protected.
pub(super) fn protect(
    root: &Path,
    table: &mut RuleTable<'_>,
    lookup: &dyn PathLookup,
) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = PROTECTED.iter().map(|it| root.join(it)).collect();
    let git = root.join(".git");
    if lookup.kind(&git) == Some(EntryKind::File) {
        paths.retain(|it| !it.starts_with(&git));
        paths.push(git);
    }
    let modules = find_modules(&root.join(MODULES), lookup);
    if modules.len() <= MODULES_MAX {
        let files =
            modules.iter().flat_map(|it| PROTECTED_IN_MODULE.iter().map(|name| it.join(name)));
        paths.extend(files);
    } else {
        paths.push(root.join(MODULES));
    }
    let mut unprotected = Vec::new();
    for path in paths {
        // A path below a symbolic link or with one at its end resolves to another one.
        if lookup.resolve(&path).as_ref() == Some(&path) {
            table.protect(&path);
        } else {
            unprotected.push(path);
        }
    }
    unprotected
}

/// The Git directories of submodules.
fn find_modules(top: &Path, lookup: &dyn PathLookup) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![(top.to_owned(), 0)];
    while let Some((directory, depth)) = pending.pop() {
        if MODULE_DEPTH_MAX < depth || MODULES_MAX < found.len() {
            continue;
        }
        for name in lookup.list(&directory) {
            let path = directory.join(name);
            if lookup.kind(&path) != Some(EntryKind::Directory) {
                continue;
            }
            if lookup.kind(&path.join("HEAD")).is_some() {
                pending.push((path.join("modules"), depth + 1));
                found.push(path);
            } else {
                pending.push((path, depth + 1));
            }
        }
    }
    found
}
