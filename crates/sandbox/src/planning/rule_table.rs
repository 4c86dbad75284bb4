//! The rules of a plan while it is made: at most one for each path, without symbolic links.

use super::path_lookup::{EntryKind, PathLookup};
use crate::plan::{PathAccess, PathLink, PathRule};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub(super) struct RuleTable<'a> {
    lookup: &'a dyn PathLookup,
    /// The directories in which an agent can create symbolic links.
    writable_areas: Vec<PathBuf>,
    rules: BTreeMap<PathBuf, TableRule>,
    links: BTreeMap<PathBuf, PathBuf>,
    /// Folders that do not exist and get an empty temporary directory if their parent is hidden.
    missing_folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
struct TableRule {
    access: PathAccess,
    /// Kept although a shorter path has the same access: a mount point cannot be renamed.
    is_pinned: bool,
}

impl<'a> RuleTable<'a> {
    pub(super) fn new(lookup: &'a dyn PathLookup, writable_areas: Vec<PathBuf>) -> RuleTable<'a> {
        let root = TableRule { access: PathAccess::ReadOnly, is_pinned: false };
        let rules = BTreeMap::from([(PathBuf::from("/"), root)]);
        RuleTable {
            lookup,
            writable_areas,
            rules,
            links: BTreeMap::new(),
            missing_folders: Vec::new(),
        }
    }

    /// Sets the access to a path. A path that does not exist has no effect, except for a temporary
    /// directory; nor does a permission for a path that a symbolic link of an agent leads to.
    pub(super) fn add(&mut self, path: &Path, access: PathAccess) {
        let Some(resolved) = self.lookup.resolve(path) else {
            if access == PathAccess::Temporary {
                self.missing_folders.push(path.to_owned());
            }
            return;
        };
        let is_permission = matches!(access, PathAccess::ReadOnly | PathAccess::Writable);
        if is_permission && self.leaves_writable_area(path, &resolved) {
            return;
        }
        if is_permission {
            self.add_link(path, &resolved);
        }
        self.rules.insert(resolved, TableRule { access, is_pinned: false });
    }

    /// Makes a folder or file of the agent writable. A folder that does not exist yet becomes a temporary
    /// directory; a file, which is recognized by the extension of its name, cannot be created.
    pub(super) fn add_folder(&mut self, path: &Path) {
        if self.lookup.resolve(path).is_none() && path.extension().is_none() {
            self.missing_folders.push(path.to_owned());
        }
        self.add(path, PathAccess::Writable);
    }

    /// Gives the process its own temporary directory, unless it may write to the existing one.
    pub(super) fn add_temporary(&mut self, path: &Path) {
        let resolved = self.lookup.resolve(path).unwrap_or_else(|| path.to_owned());
        if self.access_of(&resolved) != PathAccess::Writable {
            self.add(path, PathAccess::Temporary);
        }
    }

    /// Makes a path readable if it is hidden.
    pub(super) fn reveal(&mut self, path: &Path) {
        let Some(resolved) = self.lookup.resolve(path) else { return };
        let access = self.access_of(&resolved);
        if matches!(access, PathAccess::Hidden | PathAccess::Temporary) {
            self.add(path, PathAccess::ReadOnly);
        }
    }

    /// Makes a path read-only, unless there is a rule for the same path.
    pub(super) fn protect(&mut self, path: &Path) {
        let read_only = TableRule { access: PathAccess::ReadOnly, is_pinned: false };
        self.rules.entry(path.to_owned()).or_insert(read_only);
    }

    /// Hides folders with everything in them, except for these paths.
    pub(super) fn hide_folders(&mut self, folders: &[PathBuf], exceptions: &[PathBuf]) {
        for folder in folders.iter().filter_map(|it| self.lookup.resolve(it)) {
            self.rules.retain(|path, _| {
                !path.starts_with(&folder) || exceptions.iter().any(|it| path.starts_with(it))
            });
            let is_exception = exceptions.contains(&folder);
            if !is_exception {
                let hidden = TableRule { access: PathAccess::Hidden, is_pinned: false };
                self.rules.insert(folder, hidden);
            }
        }
    }

    /// The access to a path without symbolic links.
    pub(super) fn access_of(&self, path: &Path) -> PathAccess {
        let mut above = path.ancestors().filter_map(|it| self.rules.get(it));
        above.next().map_or(PathAccess::ReadOnly, |it| it.access)
    }

    pub(super) fn writable_paths(&self) -> Vec<PathBuf> {
        let writable = self.rules.iter().filter(|(_, it)| it.access == PathAccess::Writable);
        writable.map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn into_rules(mut self) -> (Vec<PathRule>, Vec<PathLink>) {
        for folder in std::mem::take(&mut self.missing_folders) {
            // Elsewhere a mount point would have to be created on the disk.
            if self.is_inside_hidden(&folder) {
                let rule = TableRule { access: PathAccess::Temporary, is_pinned: false };
                self.rules.insert(folder, rule);
            }
        }
        self.pin_parents();
        let needed = |(path, rule): &(&PathBuf, &TableRule)| {
            let above = path.parent().map(|it| self.access_of(it));
            // A temporary directory has to exist inside another one.
            rule.is_pinned || rule.access == PathAccess::Temporary || above != Some(rule.access)
        };
        let rules = self.rules.iter().filter(needed);
        let rules = rules.map(|(path, it)| PathRule { path: path.clone(), access: it.access });
        let links = self.links.iter().filter(|(path, _)| self.is_inside_hidden(path));
        let links = links.map(|(path, it)| PathLink { path: path.clone(), target: it.clone() });
        (rules.collect(), links.collect())
    }

    /// Adds rules for the directories between a writable one and a read-only path in it. They become
    /// mount points, so that the path cannot be replaced by renaming a directory above it.
    fn pin_parents(&mut self) {
        let read_only = self.rules.iter().filter(|(_, it)| it.access == PathAccess::ReadOnly);
        let read_only: Vec<PathBuf> = read_only.map(|(path, _)| path.clone()).collect();
        for path in read_only {
            let above = path.ancestors().skip(1).take_while(|it| !self.rules.contains_key(*it));
            let above: Vec<PathBuf> = above.map(Path::to_owned).collect();
            let is_writable =
                path.parent().map(|it| self.access_of(it)) == Some(PathAccess::Writable);
            for directory in above.into_iter().filter(|_| is_writable) {
                let pinned = TableRule { access: PathAccess::Writable, is_pinned: true };
                self.rules.insert(directory, pinned);
            }
        }
    }

    fn is_inside_hidden(&self, path: &Path) -> bool {
        matches!(self.access_of(path), PathAccess::Hidden | PathAccess::Temporary)
    }

    /// Remembers a link at the end of a path, because it is not in a hidden directory's replacement.
    fn add_link(&mut self, path: &Path, resolved: &Path) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Some(parent) = self.lookup.resolve(parent) else { return };
        let link = parent.join(name);
        if self.lookup.kind(&link) == Some(EntryKind::Link) {
            self.links.insert(link, resolved.to_owned());
        }
    }

    /// Whether a symbolic link that an agent may have created leads out of the directory that it is in.
    fn leaves_writable_area(&self, path: &Path, resolved: &Path) -> bool {
        let above: Vec<PathBuf> =
            path.ancestors().skip(1).filter_map(|it| self.lookup.resolve(it)).collect();
        let is_inside = |area: &PathBuf| above.iter().any(|it| it.starts_with(area));
        self.writable_areas.iter().any(|it| is_inside(it) && !resolved.starts_with(it))
    }
}
