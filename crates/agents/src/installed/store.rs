//! Reads and changes the folder with the installed agents.

use super::{AgentLock, InstallRecord, VersionSelection, is_version_name, record::RECORD_FORMAT};
use jackfield_private_files as private_files;
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

const SELECTION_FILE: &str = "current";
const RECORD_FILE: &str = "installed.json";
/// Two version names and their keys; a record lists a few packages.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The folder with the installed agents. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledAgents {
    dir: PathBuf,
}

/// One installed version of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledVersion {
    /// The name of its folder.
    pub name: String,
    pub folder: PathBuf,
}

/// Why the folder of an agent cannot be used or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot use the folder `{}`", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no agent `{agent}` is installed below `{}`", dir.display())]
    NotInstalled { agent: String, dir: PathBuf },
    #[error("`{agent}` has no version before `{current}`")]
    NoPrevious { agent: String, current: String },
}

impl InstalledVersion {
    /// The folder with the links to its programs.
    pub fn bin_dir(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// What it consists of; `None` if the file is missing or damaged.
    pub fn read_record(&self) -> Option<InstallRecord> {
        let record = read_bounded(&self.folder.join(RECORD_FILE)).ok()?;
        let record: InstallRecord = serde_json::from_slice(&record).ok()?;
        (record.format == RECORD_FORMAT).then_some(record)
    }

    pub(crate) fn write_record(&self, record: &InstallRecord) -> Result<(), StoreError> {
        let path = self.folder.join(RECORD_FILE);
        let text = serde_json::to_vec_pretty(record).map_err(io::Error::from);
        let written = text.and_then(|it| private_files::replace_file(&path, &it));
        written.map_err(|source| StoreError::Folder { path, source })
    }
}

impl InstalledAgents {
    pub fn new(dir: PathBuf) -> InstalledAgents {
        InstalledAgents { dir }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn agent_dir(&self, agent: &str) -> PathBuf {
        self.dir.join(agent)
    }

    /// The version of an agent that is used; `None` if Jackfield has not installed it, or if its folder is not ours.
    pub fn find_current(&self, agent: &str) -> Option<InstalledVersion> {
        let selection = self.selection(agent)?;
        self.find_version(agent, &selection.current)
    }

    /// The versions that are used and kept.
    pub fn selection(&self, agent: &str) -> Option<VersionSelection> {
        let dir = self.agent_dir(agent);
        if ![&self.dir, &dir].into_iter().all(|it| private_files::is_own_dir(it).unwrap_or(false)) {
            return None;
        }
        VersionSelection::parse(&read_bounded(&dir.join(SELECTION_FILE)).ok()?)
    }

    /// A version that was installed completely.
    pub fn find_version(&self, agent: &str, version: &str) -> Option<InstalledVersion> {
        let found = self.version(agent, version);
        let is_own = private_files::is_own_dir(&found.folder).unwrap_or(false);
        (is_own && found.folder.join(RECORD_FILE).is_file()).then_some(found)
    }

    fn version(&self, agent: &str, version: &str) -> InstalledVersion {
        let folder = self.agent_dir(agent).join(version);
        InstalledVersion { name: version.to_owned(), folder }
    }

    /// The names of the installed agents.
    pub fn list_agents(&self) -> Vec<String> {
        let mut agents = list_names(&self.dir);
        agents.retain(|it| self.find_current(it).is_some());
        agents
    }

    /// All folders of versions, also those that are not used or incomplete.
    pub fn list_versions(&self, agent: &str) -> Vec<String> {
        let mut versions = list_names(&self.agent_dir(agent));
        versions.retain(|it| is_version_name(it) && self.agent_dir(agent).join(it).is_dir());
        versions
    }

    /// Locks an agent for a change. `on_wait` is called once if another process changes it. If the future is dropped, it
    /// stops waiting.
    pub async fn lock(&self, agent: &str, on_wait: impl FnOnce()) -> Result<AgentLock, StoreError> {
        let mut on_wait = Some(on_wait);
        loop {
            if let Some(lock) = self.try_lock(agent)? {
                return Ok(lock);
            }
            if let Some(on_wait) = on_wait.take() {
                on_wait();
            }
            tokio::time::sleep(LOCK_POLL_INTERVAL).await;
        }
    }

    fn try_lock(&self, agent: &str) -> Result<Option<AgentLock>, StoreError> {
        ensure_private(&self.dir)?;
        let path = self.dir.join(format!("{agent}.lock"));
        AgentLock::try_acquire(&path).map_err(|source| StoreError::Folder { path, source })
    }

    /// An empty folder for a version. What an interrupted installation left there is removed.
    pub(crate) fn create_version(
        &self,
        agent: &str,
        version: &str,
    ) -> Result<InstalledVersion, StoreError> {
        ensure_private(&self.dir)?;
        ensure_private(&self.agent_dir(agent))?;
        let created = self.version(agent, version);
        remove_folder(&created.folder)?;
        ensure_private(&created.folder)?;
        Ok(created)
    }

    /// Uses this version from now on.
    pub(crate) fn select(&self, agent: &str, version: &str) -> Result<(), StoreError> {
        let selection = match self.selection(agent) {
            Some(earlier) => earlier.select(version),
            None => VersionSelection { current: version.to_owned(), previous: None },
        };
        self.write_selection(agent, &selection)
    }

    /// Uses the version before the current one, which then becomes the version before.
    pub fn select_previous(&self, agent: &str) -> Result<VersionSelection, StoreError> {
        let selection = self.selection(agent).ok_or_else(|| self.not_installed(agent))?;
        let is_complete = |it: &String| self.find_version(agent, it).is_some();
        match selection.previous.filter(is_complete) {
            None => {
                let (agent, current) = (agent.to_owned(), selection.current);
                Err(StoreError::NoPrevious { agent, current })
            }
            Some(previous) => {
                let swapped =
                    VersionSelection { current: previous, previous: Some(selection.current) };
                self.write_selection(agent, &swapped)?;
                Ok(swapped)
            }
        }
    }

    fn write_selection(&self, agent: &str, selection: &VersionSelection) -> Result<(), StoreError> {
        let path = self.agent_dir(agent).join(SELECTION_FILE);
        let text = serde_json::to_vec(selection).map_err(io::Error::from);
        let written = text.and_then(|it| private_files::replace_file(&path, &it));
        written.map_err(|source| StoreError::Folder { path, source })
    }

    /// Removes a version that is not used.
    pub(crate) fn remove_version(&self, agent: &str, version: &str) -> Result<(), StoreError> {
        remove_folder(&self.version(agent, version).folder)
    }

    /// Removes all versions but the current one and the one before, and returns their names.
    pub fn remove_unused_versions(&self, agent: &str) -> Result<Vec<String>, StoreError> {
        let selection = self.selection(agent);
        let is_used = |it: &String| selection.as_ref().is_some_and(|all| all.contains(it));
        let unused: Vec<String> =
            self.list_versions(agent).into_iter().filter(|it| !is_used(it)).collect();
        unused.iter().try_for_each(|it| self.remove_version(agent, it))?;
        Ok(unused)
    }

    /// Removes an agent with all its versions.
    pub fn remove_agent(&self, agent: &str) -> Result<(), StoreError> {
        let dir = self.agent_dir(agent);
        if !private_files::is_own_dir(&dir).unwrap_or(false) {
            return Err(self.not_installed(agent));
        }
        // Without this file nothing else in the folder is used.
        let path = dir.join(SELECTION_FILE);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::Folder { path, source })
            }
            _ => remove_folder(&dir),
        }
    }

    pub fn not_installed(&self, agent: &str) -> StoreError {
        StoreError::NotInstalled { agent: agent.to_owned(), dir: self.dir.clone() }
    }
}

fn ensure_private(path: &Path) -> Result<(), StoreError> {
    let folder_error = |source| StoreError::Folder { path: path.to_owned(), source };
    private_files::ensure_private_dir(path).map_err(folder_error)
}

/// Removes a folder with its contents. A symbolic link in its place is removed, not its target.
fn remove_folder(path: &Path) -> Result<(), StoreError> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|source| StoreError::Folder { path: path.to_owned(), source })
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// The names of the entries of a folder, sorted.
fn list_names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|it| it.file_name().into_string().ok()).collect();
    names.sort();
    names
}
