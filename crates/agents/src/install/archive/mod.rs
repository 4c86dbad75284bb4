//! Archives whose checksum is in the agent's file: the command that downloads one, and what is done with it.

mod tar_reader;
#[cfg(test)]
mod tests;
mod unpack;

use super::{InstallCommand, InstallError, command::PackageTools};
use crate::installed::{PackageRecord, PackageSource, StoreError, is_version_name};
use jackfield_catalog::{AgentPackage, AgentSpec, PackageArchive};
use sha2::{Digest as _, Sha256};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};
use unpack::{UNPACK_LIMITS, unpack_archive};

/// The archive while it is installed.
const DOWNLOAD_FILE: &str = "download.tar.gz";
/// The folder with the files of the archive.
pub(super) const FILES_FOLDER: &str = "files";
/// One gigabyte.
const DOWNLOAD_BYTES_MAX: &str = "1000000000";
const CURL_HINT: &str = "install curl with your system's packages";

/// curl, and the archive for this machine.
pub(super) struct ArchiveTools {
    curl: PathBuf,
    archive: PackageArchive,
    version: String,
}

impl ArchiveTools {
    pub(super) fn find(
        tools: &PackageTools<'_>,
        spec: &AgentSpec,
        package: &AgentPackage,
    ) -> Result<ArchiveTools, InstallError> {
        let missing = |_| InstallError::MissingTool {
            tool: "curl".to_owned(),
            agent: spec.name.clone(),
            hint: CURL_HINT.to_owned(),
        };
        let archive = package.find_archive().ok_or_else(|| InstallError::NotOffered {
            agent: spec.id.clone(),
            reason: "it has no archive for this machine".to_owned(),
            hint: String::new(),
        })?;
        let curl = tools.find("curl").map_err(missing)?.path;
        let version = package.version.clone().unwrap_or_default();
        Ok(ArchiveTools { curl, archive: archive.clone(), version })
    }

    /// The record of the only version that there is.
    pub(super) fn resolve(
        &self,
        spec: &AgentSpec,
        version: Option<&str>,
    ) -> Result<PackageRecord, InstallError> {
        if !is_version_name(&self.version) {
            return Err(InstallError::InvalidVersion { version: self.version.clone() });
        }
        match version.filter(|it| *it != self.version && *it != "latest") {
            Some(version) => Err(InstallError::OtherVersion {
                agent: spec.id.clone(),
                version: version.to_owned(),
                offered: self.version.clone(),
            }),
            None => Ok(PackageRecord {
                source: PackageSource::Archive,
                name: self.archive.url.clone(),
                version: self.version.clone(),
                integrity: format_checksum(&self.archive.sha256),
            }),
        }
    }

    /// The command that downloads the archive into a folder. It reads no settings of the user, follows redirects, and
    /// never to an unencrypted address.
    pub(super) fn commands(&self, folder: &Path) -> Vec<InstallCommand> {
        let file = folder.join(DOWNLOAD_FILE);
        let is_encrypted = self.archive.url.starts_with("https://");
        let protocol = if is_encrypted { "=https" } else { "=http" };
        let options =
            ["--disable", "--fail", "--silent", "--show-error", "--location", "--globoff"];
        let limits = ["--proto", protocol, "--max-filesize", DOWNLOAD_BYTES_MAX, "--retry", "2"];
        let place = ["--output", &*file.to_string_lossy(), "--", &*self.archive.url];
        vec![InstallCommand::new(&self.curl, &[&options[..], &limits, &place].concat())]
    }
}

/// Compares the checksum of the download with the announced one, and only then unpacks it.
pub(super) fn unpack_download(folder: &Path, package: &PackageRecord) -> Result<(), InstallError> {
    let download = folder.join(DOWNLOAD_FILE);
    let files = folder.join(FILES_FOLDER);
    let folder_error = |source| StoreError::Folder { path: folder.to_owned(), source };
    let actual = hash_file(&download).map_err(folder_error)?;
    if actual != package.integrity {
        let (package, expected) = (package.name.clone(), package.integrity.clone());
        return Err(InstallError::NotAsAnnounced { package, expected, actual });
    }
    jackfield_private_files::ensure_private_dir(&files).map_err(folder_error)?;
    unpack_archive(&download, &files, UNPACK_LIMITS)
        .map_err(|source| InstallError::UnusableArchive { url: package.name.clone(), source })?;
    Ok(fs::remove_file(&download).map_err(folder_error)?)
}

fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut hasher, mut part) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        let count = file.read(&mut part)?;
        if count == 0 {
            break;
        }
        hasher.update(&part[..count]);
    }
    Ok(format_checksum(&format!("{:x}", hasher.finalize())))
}

/// The form in which records have checksums.
fn format_checksum(digits: &str) -> String {
    format!("sha256={}", digits.to_lowercase())
}
