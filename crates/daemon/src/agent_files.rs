//! The agents of the catalog: the built-in ones, and the files of the folder `agents` on top.

use crate::paths::Paths;
use jackfield_catalog::{AgentFileError, Catalog};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
    thread,
    time::SystemTime,
};

/// The folder beside `config.toml`.
const AGENTS_FOLDER: &str = "agents";
/// A longer file is not an agent file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Parsed on first use.
static BUILTIN: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

/// Parses the built-in agents in parallel to the other steps of a start.
pub(crate) fn preload_builtin() {
    // If no thread can be started, they are parsed on first use.
    let _reading =
        thread::Builder::new().name("agent-registry".into()).spawn(|| LazyLock::force(&BUILTIN));
}

/// All agents: the built-in ones, and the user's files on top.
pub fn load_catalog(paths: &Paths) -> Catalog {
    AgentFiles::open(&paths.config).catalog
}

/// The agent files of a configuration directory, and the catalog that results from them.
pub(crate) struct AgentFiles {
    folder: PathBuf,
    versions: Vec<FileVersion>,
    catalog: Catalog,
}

/// Identifies a version of a file, to detect changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileVersion {
    path: PathBuf,
    modified: Option<SystemTime>,
    bytes: u64,
}

impl FileVersion {
    /// The current version; `None` if there is no such file.
    pub(crate) fn read(path: &Path) -> Option<FileVersion> {
        let meta = fs::metadata(path).ok()?;
        Some(FileVersion {
            modified: meta.modified().ok(),
            bytes: meta.len(),
            path: path.to_owned(),
        })
    }
}

impl AgentFiles {
    pub(crate) fn open(config_dir: &Path) -> AgentFiles {
        let folder = config_dir.join(AGENTS_FOLDER);
        let versions = scan_folder(&folder);
        let catalog = read_catalog(&versions);
        AgentFiles { folder, versions, catalog }
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Reads the files again if they have changed, and returns whether they have. Cheap if not.
    pub(crate) fn refresh(&mut self) -> bool {
        let versions = scan_folder(&self.folder);
        if versions == self.versions {
            return false;
        }
        self.catalog = read_catalog(&versions);
        self.versions = versions;
        true
    }

    /// The error in the file of this agent.
    pub(crate) fn find_error(&self, name: &str) -> Option<&AgentFileError> {
        self.catalog.errors().iter().find(|it| agent_name(it) == Some(name))
    }

    /// The names of the agents whose file has an error.
    pub(crate) fn invalid_agents(&self) -> impl Iterator<Item = &str> {
        self.catalog.errors().iter().filter_map(agent_name)
    }
}

fn agent_name(error: &AgentFileError) -> Option<&str> {
    Path::new(&error.file).file_stem().and_then(|it| it.to_str())
}

/// The agent files of a folder.
fn scan_folder(folder: &Path) -> Vec<FileVersion> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files =
        entries.map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "toml"));
    let mut versions: Vec<FileVersion> = files.filter_map(|it| FileVersion::read(&it)).collect();
    versions.sort();
    versions
}

fn read_catalog(versions: &[FileVersion]) -> Catalog {
    let mut catalog = BUILTIN.clone();
    for FileVersion { path, bytes, .. } in versions {
        let text = if *bytes <= FILE_BYTES_MAX { fs::read(path).ok() } else { None };
        // A file that cannot be read is reported like one that is invalid.
        let text = text.map(|it| String::from_utf8_lossy(&it).into_owned());
        catalog.add_file(&path.display().to_string(), &text.unwrap_or_default());
    }
    catalog
}
