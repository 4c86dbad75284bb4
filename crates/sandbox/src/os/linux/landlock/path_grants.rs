//! Expands the path rules of a plan into grants of Landlock.
//!
//! Landlock permits and never forbids: a grant for a directory is one for everything below it. So a
//! directory with something hidden below it gets no grant itself; its other entries get one each, and
//! only the directories on the way to the hidden path are read for this. What is created in such a
//! directory later has no grant, and the directory cannot be listed, which would list the hidden one too.

use super::LandlockError;
use crate::plan::{PathAccess, PathRule};
use std::path::{Path, PathBuf};

/// The rights of one path and everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathGrant {
    pub(super) path: PathBuf,
    pub(super) rights: GrantRights,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantRights {
    /// Read, list and execute.
    Read,
    /// Everything but control calls of devices.
    Write,
    /// Read and write one device.
    Device,
    /// Read, write and control one device, as terminals need it.
    Terminal,
}

/// Devices that every program expects. The other ones are hidden, also `/dev/pts`: the terminals of the
/// user are there, and a grant for new ones would be a grant for all.
const DEVICES: &[(&str, GrantRights)] = &[
    ("/dev/null", GrantRights::Device),
    ("/dev/zero", GrantRights::Device),
    ("/dev/full", GrantRights::Device),
    ("/dev/random", GrantRights::Device),
    ("/dev/urandom", GrantRights::Device),
    ("/dev/tty", GrantRights::Terminal),
    ("/dev/ptmx", GrantRights::Terminal),
];

/// The rules of a plan in the order in which they apply.
#[derive(Debug, Clone)]
pub(super) struct PathTable {
    rules: Vec<PathRule>,
}

impl PathTable {
    /// `private` are the directories that replace temporary ones.
    pub(super) fn new(plan: &[PathRule], private: &[PathBuf]) -> PathTable {
        let mut rules = plan.to_vec();
        if !rules.iter().any(|it| it.path == Path::new("/dev")) {
            rules.push(PathRule { path: "/dev".into(), access: PathAccess::Hidden });
        }
        let private = private.iter();
        rules.extend(private.map(|it| PathRule { path: it.clone(), access: PathAccess::Writable }));
        rules.sort_by(|a, b| a.path.cmp(&b.path));
        PathTable { rules }
    }

    /// The access to an absolute path without symbolic links.
    pub(super) fn access_of(&self, path: &Path) -> PathAccess {
        let rules = self.rules.iter().filter(|it| path.starts_with(&it.path));
        let longest = rules.max_by_key(|it| it.path.components().count());
        longest.map_or(PathAccess::Hidden, |it| it.access)
    }

    /// Every grant of the plan. `list_entries` returns the paths of a directory's entries, and none for
    /// a directory that cannot be read.
    pub(super) fn grants(
        &self,
        list_entries: &dyn Fn(&Path) -> Vec<PathBuf>,
    ) -> Result<Vec<PathGrant>, LandlockError> {
        let mut grants = Vec::new();
        self.expand(Path::new("/"), self.access_of(Path::new("/")), list_entries, &mut grants)?;
        let devices = DEVICES.iter();
        grants
            .extend(devices.map(|(path, rights)| PathGrant { path: path.into(), rights: *rights }));
        Ok(grants)
    }

    fn expand(
        &self,
        path: &Path,
        access: PathAccess,
        list_entries: &dyn Fn(&Path) -> Vec<PathBuf>,
        grants: &mut Vec<PathGrant>,
    ) -> Result<(), LandlockError> {
        let mut below = self.rules_below(path);
        match access {
            PathAccess::Hidden | PathAccess::Temporary => {
                self.expand_nearest_rules(path, list_entries, grants)
            }
            PathAccess::Writable => {
                if let Some(weaker) = below.find(|it| it.access != PathAccess::Writable) {
                    return Err(LandlockError::RuleBelowWritable {
                        writable: path.to_owned(),
                        rule: weaker.clone(),
                    });
                }
                grants.push(PathGrant { path: path.to_owned(), rights: GrantRights::Write });
                Ok(())
            }
            PathAccess::ReadOnly if below.all(|it| is_visible(it.access)) => {
                grants.push(PathGrant { path: path.to_owned(), rights: GrantRights::Read });
                self.expand_nearest_rules(path, list_entries, grants)
            }
            PathAccess::ReadOnly => list_entries(path).into_iter().try_for_each(|entry| {
                self.expand(&entry, self.access_of(&entry), list_entries, grants)
            }),
        }
    }

    /// Expands the rules below a path that have no other rule between them and the path.
    fn expand_nearest_rules(
        &self,
        path: &Path,
        list_entries: &dyn Fn(&Path) -> Vec<PathBuf>,
        grants: &mut Vec<PathGrant>,
    ) -> Result<(), LandlockError> {
        let is_nearest =
            |rule: &&PathRule| !self.rules_below(path).any(|it| is_below(&rule.path, &it.path));
        self.rules_below(path)
            .filter(is_nearest)
            .try_for_each(|it| self.expand(&it.path, it.access, list_entries, grants))
    }

    fn rules_below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a PathRule> {
        self.rules.iter().filter(move |it| is_below(&it.path, path))
    }
}

fn is_below(path: &Path, directory: &Path) -> bool {
    path != directory && path.starts_with(directory)
}

fn is_visible(access: PathAccess) -> bool {
    matches!(access, PathAccess::ReadOnly | PathAccess::Writable)
}

/// The entries of a directory of this machine.
pub(super) fn list_directory(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten();
    entries.filter_map(|it| it.ok().map(|it| it.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rules: &[(&str, PathAccess)]) -> PathTable {
        let rules: Vec<PathRule> = rules
            .iter()
            .map(|(path, access)| PathRule { path: path.into(), access: *access })
            .collect();
        PathTable::new(&rules, &[])
    }

    fn list_example(path: &Path) -> Vec<PathBuf> {
        let names: &[&str] = match path.to_str().unwrap() {
            "/" => &["usr", "home", "dev", "tmp"],
            "/home" => &["ada", "eve"],
            "/home/ada" => &[".ssh", "notes", "project"],
            other => panic!("`{other}` has to be granted as a whole"),
        };
        names.iter().map(|it| path.join(it)).collect()
    }

    /// Grants without those of devices, as `r PATH` and `w PATH`.
    fn grants_of(table: &PathTable) -> Vec<String> {
        let grants = table.grants(&list_example).unwrap();
        let paths = grants.iter().filter(|it| !it.path.starts_with("/dev"));
        let mut lines: Vec<String> = paths
            .map(|it| match it.rights {
                GrantRights::Read => format!("r {}", it.path.display()),
                _ => format!("w {}", it.path.display()),
            })
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn entries_beside_a_hidden_path_are_granted_one_by_one() {
        let table = table(&[
            ("/", PathAccess::ReadOnly),
            ("/home/ada/.ssh", PathAccess::Hidden),
            ("/home/ada/project", PathAccess::Writable),
            ("/tmp", PathAccess::Temporary),
        ]);
        let expected = ["r /home/ada/notes", "r /home/eve", "r /usr", "w /home/ada/project"];
        assert_eq!(grants_of(&table), expected);
    }

    #[test]
    fn writable_path_below_a_hidden_one_is_granted_without_its_siblings() {
        let table = table(&[
            ("/", PathAccess::ReadOnly),
            ("/home", PathAccess::Hidden),
            ("/home/ada/project", PathAccess::Writable),
            ("/home/ada/notes", PathAccess::ReadOnly),
        ]);
        let expected = ["r /home/ada/notes", "r /tmp", "r /usr", "w /home/ada/project"];
        assert_eq!(grants_of(&table), expected);
    }

    #[test]
    fn private_directory_below_a_temporary_one_is_writable() {
        let rules = [
            PathRule { path: "/".into(), access: PathAccess::ReadOnly },
            PathRule { path: "/tmp".into(), access: PathAccess::Temporary },
        ];
        let table = PathTable::new(&rules, &["/tmp/private".into()]);
        assert_eq!(grants_of(&table), ["r /home", "r /usr", "w /tmp/private"]);
        assert_eq!(table.access_of(Path::new("/tmp/private/a")), PathAccess::Writable);
        assert_eq!(table.access_of(Path::new("/tmp/other")), PathAccess::Temporary);
    }

    #[test]
    fn less_access_below_a_writable_path_is_refused_with_the_way_out() {
        for access in [PathAccess::ReadOnly, PathAccess::Hidden, PathAccess::Temporary] {
            let table = table(&[
                ("/", PathAccess::ReadOnly),
                ("/home/ada/project", PathAccess::Writable),
                ("/home/ada/project/.git/hooks", access),
            ]);
            let refusal = table.grants(&list_example).unwrap_err().to_string();
            assert!(refusal.contains("/home/ada/project/.git/hooks"), "{refusal}");
            assert!(refusal.contains("protect_files = false"), "{refusal}");
        }
    }
}
