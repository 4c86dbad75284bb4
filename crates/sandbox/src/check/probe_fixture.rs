//! A home directory with planted secrets, a project and Jackfield's own folder, for one run of the probes.

use crate::os::probes::OutsideFixture;
use crate::plan::EnforcementLayer;
use crate::planning::LaunchFacts;
use crate::probes::{KEY_LINK, ProbeTargets, SETTINGS_LINK, SOCKET_LINK};
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Files with the secret. An attempt that changes a file has one of its own.
const FILES: &[&str] = &[
    "home/.ssh/id_ed25519",
    "home/.aws/credentials",
    "home/.cargo/credentials.toml",
    "home/.bash_history",
    "home/.bashrc",
    "home/.gitconfig",
    "home/.config/git/attributes",
    "home/.config/git/config",
    "home/.config/git/ignore",
    "home/other-project/notes.txt",
    "own/journal.db",
    "own/token",
    "project/.envrc",
    "project/.git/config",
    "project/.git/hooks/pre-commit",
    "project/.jackfield.toml",
    "project/.vscode/tasks.json",
    "project/src/main.rs",
];
/// The folder in which an agent would keep its settings.
const AGENT_FOLDER: &str = "home/.agent";

/// It is deleted with this value. Each run needs a new one, because attempts that work change it.
pub(super) struct ProbeFixture {
    folder: PathBuf,
    pub(super) targets: ProbeTargets,
    _outside: OutsideFixture,
}

impl ProbeFixture {
    pub(super) fn create(program: &Path) -> io::Result<ProbeFixture> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("jackfield-check-{}-{number}", std::process::id());
        // A short path: those of sockets are limited.
        let folder = std::env::temp_dir().canonicalize()?.join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let filled = fill_folder(program, &folder);
        filled.inspect_err(|_| {
            let _gone = fs::remove_dir_all(&folder);
        })
    }

    pub(super) fn proxy_socket(&self) -> PathBuf {
        self.targets.own_folder.join("proxy.sock")
    }

    /// The facts of a session in the project.
    pub(super) fn launch_facts(&self, layer: EnforcementLayer, program: &Path) -> LaunchFacts {
        LaunchFacts {
            layer,
            session_directories: vec![self.targets.project.clone()],
            home: self.targets.home.clone(),
            search_path: Vec::new(),
            temporary_directory: std::env::temp_dir(),
            agent_folders: vec![self.folder.join(AGENT_FOLDER)],
            program_folders: vec![program.to_owned()],
            agent_env: Vec::new(),
            agent_hosts: Vec::new(),
            own_folders: vec![self.targets.own_folder.clone()],
            proxy_socket: Some(self.proxy_socket()),
        }
    }
}

impl Drop for ProbeFixture {
    fn drop(&mut self) {
        // What a killed check leaves is in the directory for temporary files.
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

fn fill_folder(program: &Path, folder: &Path) -> io::Result<ProbeFixture> {
    // Not secret: it only has to be found again.
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let secret = format!("planted-by-{name}");
    for file in FILES {
        let path = folder.join(file);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, format!("{secret}\n"))?;
    }
    fs::create_dir(folder.join(AGENT_FOLDER))?;
    let (home, project, own) = (folder.join("home"), folder.join("project"), folder.join("own"));
    symlink(home.join(".ssh/id_ed25519"), project.join(KEY_LINK))?;
    symlink(home.join(".gitconfig"), project.join(SETTINGS_LINK))?;
    let outside = OutsideFixture::start(program, &own, &own.join("token"), &secret)?;
    symlink(&outside.targets.unix_socket, project.join(SOCKET_LINK))?;
    let targets =
        ProbeTargets { home, project, own_folder: own, outside: outside.targets.clone(), secret };
    Ok(ProbeFixture { folder: folder.to_owned(), targets, _outside: outside })
}
