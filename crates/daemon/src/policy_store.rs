//! The policy files of this machine: the user's `policy.toml`, and the `.jackfield.toml` of every
//! trusted project. Trust applies to the text, which is stored here: a project file that changed
//! has no effect until it is trusted again, and the trusted text stays in force.

use crate::paths::Paths;
use jackfield_catalog::{AgentSpec, Catalog};
use jackfield_policy::{
    Policy, PolicyError, PolicySet, RuleEffect, parse_policy, parse_project_policy,
};
use jackfield_sandbox::profile::ProfileSet;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The policy file of a project.
pub const PROJECT_FILE: &str = ".jackfield.toml";

/// The sandbox profile that permits everything.
const OPEN_PROFILE: &str = "open";

/// The number of folders behind symbolic links that are cached.
const REAL_FOLDERS_MAX: usize = 1024;

/// The policies, and the texts they were read from.
#[derive(Debug)]
pub(crate) struct PolicyStore {
    paths: Paths,
    texts: PolicyTexts,
    policies: Arc<PolicySet>,
}

#[derive(Debug, thiserror::Error)]
pub enum PolicyStoreError {
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
    #[error("`{}` is not a valid policy: {}", path.display(), join_errors(errors))]
    Invalid { path: PathBuf, errors: Vec<PolicyError> },
}

/// All texts that define the policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PolicyTexts {
    user: Option<String>,
    projects: BTreeMap<PathBuf, TrustedText>,
}

/// The policy text of a trusted project.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TrustedText {
    text: String,
    /// The file was removed: its allow rules and the sandbox profile `open` no longer apply. Its deny rules and other
    /// profiles apply until the trust is revoked, since an agent could have removed the file.
    is_gone: bool,
}

impl PolicyStore {
    /// An unreadable policy stops the start, since its deny rules must not be ignored.
    pub(crate) fn open(paths: &Paths, catalog: &Catalog) -> Result<PolicyStore, PolicyStoreError> {
        let texts = read_texts(paths)?;
        let mut policies = parse_policies(paths, &texts)?;
        policies.unenforced_modes = unasking_modes(catalog);
        Ok(PolicyStore { paths: paths.clone(), texts, policies: Arc::new(policies) })
    }

    pub(crate) fn policies(&self) -> Arc<PolicySet> {
        self.policies.clone()
    }

    /// The policies for these folders, if they have changed. Invalid files leave the last policies
    /// in force.
    pub(crate) fn refresh<'a>(
        &mut self,
        folders: impl Iterator<Item = &'a str>,
    ) -> Option<Arc<PolicySet>> {
        let has_changed = self.reload_if_changed();
        let has_moved = self.find_real_folders(folders);
        (has_changed || has_moved).then(|| self.policies())
    }

    /// Resolves folders behind symbolic links; returns whether any has changed.
    fn find_real_folders<'a>(&mut self, folders: impl Iterator<Item = &'a str>) -> bool {
        let known = &self.policies.real_folders;
        let mut changed = BTreeMap::new();
        // Only policies of projects depend on the location of a folder.
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

    fn reload_if_changed(&mut self) -> bool {
        let texts = match read_texts(&self.paths) {
            Ok(texts) if texts == self.texts => return false,
            Ok(texts) => texts,
            Err(error) => {
                tracing::error!(%error, "failed to read the policy files; keeping the last policies");
                return false;
            }
        };
        let parsed = parse_policies(&self.paths, &texts);
        self.texts = texts; // So that an invalid file is reported once.
        match parsed {
            Ok(policies) => {
                let unenforced_modes = self.policies.unenforced_modes.clone();
                let real_folders = self.policies.real_folders.clone();
                self.policies = Arc::new(PolicySet { unenforced_modes, real_folders, ..policies });
                true
            }
            Err(error) => {
                tracing::error!(%error, "invalid policy files; keeping the last policies");
                false
            }
        }
    }
}

/// Trusts the current file of a project; returns its policy.
pub fn trust(paths: &Paths, project: &Path) -> Result<Policy, PolicyStoreError> {
    let path = project.join(PROJECT_FILE);
    let unreadable = |source| PolicyStoreError::Unreadable { path: path.clone(), source };
    let text = fs::read_to_string(&path).map_err(unreadable)?;
    let policy = parse_project_policy(&text, &path.display().to_string());
    let policy =
        policy.map_err(|errors| PolicyStoreError::Invalid { path: path.clone(), errors })?;
    let mut trusted = trusted(paths)?;
    trusted.insert(project.to_owned(), text);
    store_trusted(paths, &trusted)?;
    Ok(policy)
}

/// Revokes the trust; `false` if there was none.
pub fn distrust(paths: &Paths, project: &Path) -> Result<bool, PolicyStoreError> {
    let mut trusted = trusted(paths)?;
    let was_trusted = trusted.remove(project).is_some();
    if was_trusted {
        store_trusted(paths, &trusted)?;
    }
    Ok(was_trusted)
}

/// The trusted projects, and the trusted texts.
pub fn trusted(paths: &Paths) -> Result<BTreeMap<PathBuf, String>, PolicyStoreError> {
    let path = paths.trusted();
    let Some(text) = read_optional(&path)? else { return Ok(BTreeMap::new()) };
    let damaged = |error: serde_json::Error| PolicyStoreError::Unreadable {
        path: path.clone(),
        source: io::Error::other(error.to_string()),
    };
    serde_json::from_str(&text).map_err(damaged)
}

fn store_trusted(
    paths: &Paths,
    trusted: &BTreeMap<PathBuf, String>,
) -> Result<(), PolicyStoreError> {
    let path = paths.trusted();
    let unwritable = |source| PolicyStoreError::Unwritable { path: path.clone(), source };
    let text = serde_json::to_string_pretty(trusted).expect("paths and texts are JSON");
    jackfield_private_files::replace_file(&path, text.as_bytes()).map_err(unwritable)
}

fn read_texts(paths: &Paths) -> Result<PolicyTexts, PolicyStoreError> {
    let user = read_optional(&paths.policy_file())?;
    let with_file = |(project, text): (PathBuf, String)| {
        let is_gone = !project.join(PROJECT_FILE).exists();
        (project, TrustedText { text, is_gone })
    };
    Ok(PolicyTexts { user, projects: trusted(paths)?.into_iter().map(with_file).collect() })
}

fn read_optional(path: &Path) -> Result<Option<String>, PolicyStoreError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PolicyStoreError::Unreadable { path: path.to_owned(), source }),
    }
}

fn parse_policies(paths: &Paths, texts: &PolicyTexts) -> Result<PolicySet, PolicyStoreError> {
    let path = paths.policy_file();
    let user = parse_policy(texts.user.as_deref().unwrap_or_default(), &path.display().to_string());
    let user = user.map_err(|errors| PolicyStoreError::Invalid { path, errors })?;
    let mut projects = BTreeMap::new();
    for (project, trusted) in &texts.projects {
        let path = project.join(PROJECT_FILE);
        let policy = parse_project_policy(&trusted.text, &path.display().to_string());
        let mut policy = policy.map_err(|errors| PolicyStoreError::Invalid { path, errors })?;
        if trusted.is_gone {
            policy.rules.retain(|it| it.effect != RuleEffect::Allow);
            policy.sandbox = policy.sandbox.filter(|it| it != OPEN_PROFILE);
        }
        projects.insert(project.clone(), policy);
    }
    let home = std::env::var("HOME").ok();
    // With invalid profiles, only agents in the profile `open` are started.
    let profiles = ProfileSet::parse(texts.user.as_deref().unwrap_or_default())
        .unwrap_or_else(|_| ProfileSet::built_in());
    let sandbox_profiles = profiles.names().map(str::to_owned).collect();
    Ok(PolicySet { user, projects, home, sandbox_profiles, ..PolicySet::default() })
}

/// The modes in which agents do not ask for permission, by the catalog.
fn unasking_modes(catalog: &Catalog) -> BTreeMap<String, Vec<String>> {
    let of = |spec: &AgentSpec| {
        let modes = spec.launch.iter().flat_map(|it| &it.modes);
        let unasking: Vec<String> = modes.filter(|it| !it.asks).map(|it| it.id.clone()).collect();
        (!unasking.is_empty()).then(|| (spec.id.clone(), unasking))
    };
    catalog.iter().filter_map(of).collect()
}

fn join_errors(errors: &[PolicyError]) -> String {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    errors.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_FOLDERS: std::iter::Empty<&str> = std::iter::empty();
    const DENY: &str = "[[rule]]\ndo = \"deny\"\nrun = \"rm\"\n";

    fn fixture() -> (tempfile::TempDir, Paths, PolicyStore) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::below(dir.path());
        fs::create_dir_all(&paths.config).unwrap();
        fs::write(paths.policy_file(), DENY).unwrap();
        let store = PolicyStore::open(&paths, &crate::agent_files::load_catalog(&paths)).unwrap();
        (dir, paths, store)
    }

    #[test]
    fn changed_file_applies_and_invalid_file_keeps_the_last_policies() {
        let (_dir, paths, mut store) = fixture();
        assert_eq!(store.policies().user.rules.len(), 1);
        assert!(store.refresh(NO_FOLDERS).is_none());
        fs::write(paths.policy_file(), DENY.repeat(2)).unwrap();
        assert_eq!(store.refresh(NO_FOLDERS).unwrap().user.rules.len(), 2);
        fs::write(paths.policy_file(), "[[rule]]\ndo = \"maybe\"\n").unwrap();
        assert!(store.refresh(NO_FOLDERS).is_none());
        assert_eq!(store.policies().user.rules.len(), 2);
        let broken =
            PolicyStore::open(&paths, &crate::agent_files::load_catalog(&paths)).unwrap_err();
        assert!(broken.to_string().contains("line 2"), "{broken}");
    }

    #[test]
    fn project_policy_applies_only_as_it_was_trusted() {
        let (dir, paths, mut store) = fixture();
        let project = dir.path().join("project");
        let file = project.join(PROJECT_FILE);
        fs::create_dir_all(&project).unwrap();
        fs::write(&file, DENY).unwrap();
        assert!(store.refresh(NO_FOLDERS).is_none());
        assert_eq!(trust(&paths, &project).unwrap().rules.len(), 1);
        assert_eq!(store.refresh(NO_FOLDERS).unwrap().projects[&project].rules.len(), 1);
        fs::write(&file, "[[rule]]\ndo = \"allow\"\n").unwrap();
        assert!(store.refresh(NO_FOLDERS).is_none());
        assert_eq!(store.policies().projects[&project].rules[0].run, ["rm"]);
        assert!(distrust(&paths, &project).unwrap());
        assert!(store.refresh(NO_FOLDERS).unwrap().projects.is_empty());
        assert!(!distrust(&paths, &project).unwrap());
    }

    #[test]
    fn deny_rules_survive_the_removal_of_a_trusted_file_allow_rules_do_not() {
        let (dir, paths, mut store) = fixture();
        let project = dir.path().join("project");
        fs::create_dir_all(&project).unwrap();
        let rules = format!("{DENY}[[rule]]\ndo = \"allow\"\nrun = \"ls\"\n");
        fs::write(project.join(PROJECT_FILE), rules).unwrap();
        assert_eq!(trust(&paths, &project).unwrap().rules.len(), 2);
        assert_eq!(store.refresh(NO_FOLDERS).unwrap().projects[&project].rules.len(), 2);
        fs::rename(project.join(PROJECT_FILE), project.join("elsewhere")).unwrap();
        let policies = store.refresh(NO_FOLDERS).unwrap();
        let effects: Vec<RuleEffect> =
            policies.projects[&project].rules.iter().map(|it| it.effect).collect();
        assert_eq!(effects, [RuleEffect::Deny]);
        assert!(distrust(&paths, &project).unwrap());
        assert!(store.refresh(NO_FOLDERS).unwrap().projects.is_empty());
    }

    #[test]
    fn project_is_recognized_behind_a_changing_symbolic_link() {
        let (dir, paths, mut store) = fixture();
        let (project, other) = (dir.path().join("project"), dir.path().join("other"));
        let link = dir.path().join("link");
        for folder in [&project, &other] {
            fs::create_dir_all(folder.join("src")).unwrap();
        }
        fs::write(project.join(PROJECT_FILE), DENY).unwrap();
        trust(&paths, &project).unwrap();
        store.refresh(NO_FOLDERS).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let folder = link.join("src");
        let folder = folder.to_str().unwrap();
        let policies = store.refresh([folder].into_iter()).unwrap();
        assert_eq!(policies.real_folders[Path::new(folder)], other.join("src"));
        assert!(store.refresh([folder].into_iter()).is_none());
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&project, &link).unwrap();
        let policies = store.refresh([folder].into_iter()).unwrap();
        assert_eq!(policies.real_folders[Path::new(folder)], project.join("src"));
    }

    #[test]
    fn catalog_lists_modes_without_permission_requests() {
        let (_dir, _paths, store) = fixture();
        let modes = &store.policies().unenforced_modes["claude"];
        assert_eq!(modes, &["bypassPermissions"]);
    }
}
