//! The rules of this machine as files: the user's `policy.toml`, and the `.jackfield.toml` of every
//! project that was trusted. What was trusted is a text, kept here word for word: a project's file
//! that has changed since means nothing until it is trusted again, and the trusted one stays.

use crate::paths::Paths;
use jackfield_catalog::{AgentSpec, Catalog};
use jackfield_policy::{
    Policy, PolicyError, PolicySet, RuleEffect, parse_policy, parse_project_policy,
};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A project's own file.
pub const PROJECT_FILE: &str = ".jackfield.toml";

/// More folders behind symbolic links than these are looked up again.
const REAL_FOLDERS_MAX: usize = 1024;

/// The rules, and the texts they were read from.
#[derive(Debug)]
pub(crate) struct Rulebook {
    paths: Paths,
    seen: Texts,
    policies: Arc<PolicySet>,
}

#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write `{}`", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is no policy: {}", path.display(), listed(flaws))]
    Flawed { path: PathBuf, flaws: Vec<PolicyError> },
}

/// Everything that decides what the rules are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Texts {
    user: Option<String>,
    projects: BTreeMap<PathBuf, TrustedText>,
}

/// The rules of a trusted project.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TrustedText {
    text: String,
    /// Its file is gone: what it allows counts no longer, what it denies does until the trust is taken back. An
    /// agent could have removed it.
    is_gone: bool,
}

impl Rulebook {
    /// A policy that cannot be read stops the start: what it forbids must not be allowed meanwhile.
    pub(crate) fn open(paths: &Paths, catalogue: &Catalog) -> Result<Rulebook, RulesError> {
        let seen = look(paths)?;
        let mut policies = read(paths, &seen)?;
        policies.unenforced_modes = unasking(catalogue);
        Ok(Rulebook { paths: paths.clone(), seen, policies: Arc::new(policies) })
    }

    pub(crate) fn policies(&self) -> Arc<PolicySet> {
        self.policies.clone()
    }

    /// The rules that hold for these folders, if they have changed. Those that cannot be read leave the last ones in
    /// force.
    pub(crate) fn refresh<'a>(
        &mut self,
        folders: impl Iterator<Item = &'a str>,
    ) -> Option<Arc<PolicySet>> {
        let read_again = self.read_again();
        let moved = self.find_real_folders(folders);
        (read_again || moved).then(|| self.policies())
    }

    /// Finds out where folders are that are reached through symbolic links; returns whether that has changed.
    fn find_real_folders<'a>(&mut self, folders: impl Iterator<Item = &'a str>) -> bool {
        let known = &self.policies.real_folders;
        let mut changed = BTreeMap::new();
        // Only rules of projects depend on where a folder is.
        for folder in folders.filter(|_| !self.policies.projects.is_empty()).map(Path::new) {
            let real = fs::canonicalize(folder).ok();
            if real.as_deref() != Some(known.get(folder).map_or(folder, PathBuf::as_path)) {
                changed.insert(folder.to_owned(), real.unwrap_or_else(|| folder.to_owned()));
            }
        }
        if changed.is_empty() {
            return false;
        }
        let mut real_folders = known.clone();
        if REAL_FOLDERS_MAX < real_folders.len() {
            real_folders.clear();
        }
        real_folders.extend(changed);
        self.policies = Arc::new(PolicySet { real_folders, ..(*self.policies).clone() });
        true
    }

    fn read_again(&mut self) -> bool {
        let seen = match look(&self.paths) {
            Ok(seen) if seen == self.seen => return false,
            Ok(seen) => seen,
            Err(error) => {
                tracing::error!(%error, "the rules cannot be read; the last ones stay");
                return false;
            }
        };
        let read = read(&self.paths, &seen);
        self.seen = seen; // Once: a broken file is complained about when it breaks.
        match read {
            Ok(policies) => {
                let unenforced_modes = self.policies.unenforced_modes.clone();
                let real_folders = self.policies.real_folders.clone();
                self.policies = Arc::new(PolicySet { unenforced_modes, real_folders, ..policies });
                true
            }
            Err(error) => {
                tracing::error!(%error, "the rules are not valid; the last ones stay");
                false
            }
        }
    }
}

/// Trusts a project's file as it is now; returns its rules.
pub fn trust(paths: &Paths, project: &Path) -> Result<Policy, RulesError> {
    let path = project.join(PROJECT_FILE);
    let unreadable = |source| RulesError::Unreadable { path: path.clone(), source };
    let text = fs::read_to_string(&path).map_err(unreadable)?;
    let policy = parse_project_policy(&text, &path.display().to_string());
    let policy = policy.map_err(|flaws| RulesError::Flawed { path: path.clone(), flaws })?;
    let mut trusted = trusted(paths)?;
    trusted.insert(project.to_owned(), text);
    keep(paths, &trusted)?;
    Ok(policy)
}

/// Takes the trust back; false if there was none.
pub fn distrust(paths: &Paths, project: &Path) -> Result<bool, RulesError> {
    let mut trusted = trusted(paths)?;
    let was = trusted.remove(project).is_some();
    if was {
        keep(paths, &trusted)?;
    }
    Ok(was)
}

/// The projects that are trusted, and the text that is.
pub fn trusted(paths: &Paths) -> Result<BTreeMap<PathBuf, String>, RulesError> {
    let path = paths.trusted();
    let Some(text) = text_of(&path)? else { return Ok(BTreeMap::new()) };
    let damaged = |error: serde_json::Error| RulesError::Unreadable {
        path: path.clone(),
        source: io::Error::other(error.to_string()),
    };
    serde_json::from_str(&text).map_err(damaged)
}

fn keep(paths: &Paths, trusted: &BTreeMap<PathBuf, String>) -> Result<(), RulesError> {
    let path = paths.trusted();
    let unwritable = |source| RulesError::Unwritable { path: path.clone(), source };
    let text = serde_json::to_string_pretty(trusted).expect("paths and texts are JSON");
    jackfield_private_files::replace_file(&path, text.as_bytes()).map_err(unwritable)
}

fn look(paths: &Paths) -> Result<Texts, RulesError> {
    let user = text_of(&paths.policy_file())?;
    let with_file = |(project, text): (PathBuf, String)| {
        let is_gone = !project.join(PROJECT_FILE).exists();
        (project, TrustedText { text, is_gone })
    };
    Ok(Texts { user, projects: trusted(paths)?.into_iter().map(with_file).collect() })
}

fn text_of(path: &Path) -> Result<Option<String>, RulesError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RulesError::Unreadable { path: path.to_owned(), source }),
    }
}

fn read(paths: &Paths, texts: &Texts) -> Result<PolicySet, RulesError> {
    let path = paths.policy_file();
    let user = parse_policy(texts.user.as_deref().unwrap_or_default(), &path.display().to_string());
    let user = user.map_err(|flaws| RulesError::Flawed { path, flaws })?;
    let mut projects = BTreeMap::new();
    for (project, trusted) in &texts.projects {
        let path = project.join(PROJECT_FILE);
        let policy = parse_project_policy(&trusted.text, &path.display().to_string());
        let mut policy = policy.map_err(|flaws| RulesError::Flawed { path, flaws })?;
        if trusted.is_gone {
            policy.rules.retain(|it| it.effect != RuleEffect::Allow);
        }
        projects.insert(project.clone(), policy);
    }
    let home = std::env::var("HOME").ok();
    Ok(PolicySet { user, projects, home, ..PolicySet::default() })
}

/// In which modes which agent asks nothing, as the catalogue has it.
fn unasking(catalogue: &Catalog) -> BTreeMap<String, Vec<String>> {
    let of = |spec: &AgentSpec| {
        let modes = spec.launch.iter().flat_map(|it| &it.modes);
        let silent: Vec<String> = modes.filter(|it| !it.asks).map(|it| it.id.clone()).collect();
        (!silent.is_empty()).then(|| (spec.id.clone(), silent))
    };
    catalogue.iter().filter_map(of).collect()
}

fn listed(flaws: &[PolicyError]) -> String {
    let flaws: Vec<String> = flaws.iter().map(ToString::to_string).collect();
    flaws.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_FOLDERS: std::iter::Empty<&str> = std::iter::empty();
    const DENY: &str = "[[rule]]\ndo = \"deny\"\nrun = \"rm\"\n";

    fn world() -> (tempfile::TempDir, Paths, Rulebook) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::below(dir.path());
        fs::create_dir_all(&paths.config).unwrap();
        fs::write(paths.policy_file(), DENY).unwrap();
        let book = Rulebook::open(&paths, &crate::roster::catalogue(&paths)).unwrap();
        (dir, paths, book)
    }

    #[test]
    fn a_changed_file_counts_and_a_broken_one_leaves_the_last_rules() {
        let (_dir, paths, mut book) = world();
        assert_eq!(book.policies().user.rules.len(), 1);
        assert!(book.refresh(NO_FOLDERS).is_none());
        fs::write(paths.policy_file(), DENY.repeat(2)).unwrap();
        assert_eq!(book.refresh(NO_FOLDERS).unwrap().user.rules.len(), 2);
        fs::write(paths.policy_file(), "[[rule]]\ndo = \"maybe\"\n").unwrap();
        assert!(book.refresh(NO_FOLDERS).is_none());
        assert_eq!(book.policies().user.rules.len(), 2);
        let broken = Rulebook::open(&paths, &crate::roster::catalogue(&paths)).unwrap_err();
        assert!(broken.to_string().contains("line 2"), "{broken}");
    }

    #[test]
    fn a_project_is_inert_until_trusted_and_then_only_as_it_was() {
        let (dir, paths, mut book) = world();
        let project = dir.path().join("project");
        let file = project.join(PROJECT_FILE);
        fs::create_dir_all(&project).unwrap();
        fs::write(&file, DENY).unwrap();
        assert!(book.refresh(NO_FOLDERS).is_none());
        assert_eq!(trust(&paths, &project).unwrap().rules.len(), 1);
        assert_eq!(book.refresh(NO_FOLDERS).unwrap().projects[&project].rules.len(), 1);
        fs::write(&file, "[[rule]]\ndo = \"allow\"\n").unwrap();
        assert!(book.refresh(NO_FOLDERS).is_none());
        assert_eq!(book.policies().projects[&project].rules[0].run, ["rm"]);
        assert!(distrust(&paths, &project).unwrap());
        assert!(book.refresh(NO_FOLDERS).unwrap().projects.is_empty());
        assert!(!distrust(&paths, &project).unwrap());
    }

    #[test]
    fn denies_of_a_trusted_project_stay_when_its_file_is_removed_and_allows_do_not() {
        let (dir, paths, mut book) = world();
        let project = dir.path().join("project");
        fs::create_dir_all(&project).unwrap();
        let rules = format!("{DENY}[[rule]]\ndo = \"allow\"\nrun = \"ls\"\n");
        fs::write(project.join(PROJECT_FILE), rules).unwrap();
        assert_eq!(trust(&paths, &project).unwrap().rules.len(), 2);
        assert_eq!(book.refresh(NO_FOLDERS).unwrap().projects[&project].rules.len(), 2);
        fs::rename(project.join(PROJECT_FILE), project.join("elsewhere")).unwrap();
        let policies = book.refresh(NO_FOLDERS).unwrap();
        let effects: Vec<RuleEffect> =
            policies.projects[&project].rules.iter().map(|it| it.effect).collect();
        assert_eq!(effects, [RuleEffect::Deny]);
        assert!(distrust(&paths, &project).unwrap());
        assert!(book.refresh(NO_FOLDERS).unwrap().projects.is_empty());
    }

    #[test]
    fn project_is_recognized_behind_a_symbolic_link_also_when_the_link_changes() {
        let (dir, paths, mut book) = world();
        let (project, other) = (dir.path().join("project"), dir.path().join("other"));
        let link = dir.path().join("link");
        for folder in [&project, &other] {
            fs::create_dir_all(folder.join("src")).unwrap();
        }
        fs::write(project.join(PROJECT_FILE), DENY).unwrap();
        trust(&paths, &project).unwrap();
        book.refresh(NO_FOLDERS).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let folder = link.join("src");
        let folder = folder.to_str().unwrap();
        let policies = book.refresh([folder].into_iter()).unwrap();
        assert_eq!(policies.real_folders[Path::new(folder)], other.join("src"));
        assert!(book.refresh([folder].into_iter()).is_none());
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&project, &link).unwrap();
        let policies = book.refresh([folder].into_iter()).unwrap();
        assert_eq!(policies.real_folders[Path::new(folder)], project.join("src"));
    }

    #[test]
    fn the_catalogue_says_which_modes_ask_nothing() {
        let (_dir, _paths, book) = world();
        let modes = &book.policies().unenforced_modes["claude"];
        assert_eq!(modes, &["bypassPermissions"]);
    }
}
