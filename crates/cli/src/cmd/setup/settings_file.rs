//! A settings file of the user: read, checked and replaced as a whole. Symbolic links are followed and kept, and the mode
//! stays.

use crate::{exit::CliExitCode, report::CommandError};
use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// More than any settings file has.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
const OWNER_WRITE: u32 = 0o200;
const PERMISSION_BITS: u32 = 0o7777;
const BY_HAND: &str = "`--print` shows what to add";

#[derive(Debug)]
pub(super) struct SettingsFile {
    /// The path as it was named.
    pub(super) path: PathBuf,
    /// The file behind all symbolic links.
    target: PathBuf,
    /// `None` if it does not exist.
    pub(super) text: Option<String>,
    /// Why it cannot be replaced, and the solution.
    refusal: Option<(String, String)>,
    mode: Option<u32>,
}

impl SettingsFile {
    pub(super) fn read(path: &Path) -> Result<SettingsFile, CommandError> {
        let failed = |source| {
            CommandError::local(format!("cannot read the settings `{}`", path.display()), source)
        };
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return SettingsFile::missing(path);
            }
            Err(error) => return Err(failed(error)),
        };
        let metadata = target.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(refuse(
                path,
                "it is not a file",
                "name the settings file with `--settings`",
            ));
        }
        let mut bytes = Vec::new();
        let file = fs::File::open(&target).map_err(failed)?;
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if BYTES_MAX < bytes.len() as u64 {
            return Err(refuse(path, "it has more than 16 MiB", "name another file"));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| refuse(path, "it is not UTF-8", "save it as UTF-8 in the editor"))?;
        let refusal = find_refusal(&target, &metadata);
        let mode = Some(metadata.mode() & PERMISSION_BITS);
        Ok(SettingsFile { path: path.to_owned(), target, text: Some(text), refusal, mode })
    }

    fn missing(path: &Path) -> Result<SettingsFile, CommandError> {
        if let Ok(target) = fs::read_link(path) {
            let reason = format!("it is a link to `{}`, which does not exist", target.display());
            return Err(refuse(path, &reason, "create that file, or remove the link"));
        }
        let (path, target) = (path.to_owned(), path.to_owned());
        Ok(SettingsFile { path, target, text: None, refusal: None, mode: None })
    }

    /// Whether it is reached by a symbolic link.
    pub(super) fn linked_target(&self) -> Option<&Path> {
        let is_link = self.path.symlink_metadata().is_ok_and(|it| it.is_symlink());
        is_link.then_some(&*self.target)
    }

    /// Fails if the file may not be replaced.
    pub(super) fn check_writable(&self) -> Result<(), CommandError> {
        match &self.refusal {
            Some((reason, hint)) => Err(refuse(&self.path, reason, hint)),
            None => Ok(()),
        }
    }

    /// The folders that must be created for it, the innermost last.
    pub(super) fn missing_folders(&self) -> Vec<PathBuf> {
        let ancestors = self.target.ancestors().skip(1);
        let mut folders: Vec<PathBuf> =
            ancestors.take_while(|it| !it.exists()).map(Path::to_owned).collect();
        folders.reverse();
        folders
    }

    /// Replaces the content atomically, or removes the file. Fails if it has changed since it was read.
    pub(super) fn replace(&self, text: Option<&str>) -> Result<(), CommandError> {
        let failed = |source| {
            CommandError::local(
                format!("cannot write the settings `{}`", self.path.display()),
                source,
            )
        };
        self.check_writable()?;
        if SettingsFile::read(&self.path)?.text != self.text {
            let reason = "it was changed in the meantime";
            return Err(refuse(&self.path, reason, "run the command again"));
        }
        let Some(text) = text else { return fs::remove_file(&self.target).map_err(failed) };
        if let Some(folder) = self.target.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let draft = self.target.with_added_extension(format!("jackfield-{}", std::process::id()));
        let replaced =
            self.write_draft(&draft, text).and_then(|()| fs::rename(&draft, &self.target));
        if replaced.is_err() {
            // The first error is reported; an error while the draft is removed would hide the cause.
            let _ = fs::remove_file(&draft);
        }
        replaced.map_err(failed)
    }

    fn write_draft(&self, draft: &Path, text: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if let Some(mode) = self.mode {
            options.mode(mode);
        }
        let mut file = options.open(draft)?;
        if let Some(mode) = self.mode {
            // The umask does not apply to a file that exists already.
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

/// Why an existing file may not be replaced. The mode decides, not the access of this process: root could write anything.
fn find_refusal(target: &Path, metadata: &fs::Metadata) -> Option<(String, String)> {
    let shown = target.display();
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let hint =
            format!("another program or user manages `{shown}`: add the agents there; {BY_HAND}");
        return Some((format!("`{shown}` belongs to another user"), hint));
    }
    if metadata.mode() & OWNER_WRITE == 0 {
        let hint = format!(
            "make it writable with `chmod u+w`, or, if a program such as Nix manages it, add the agents there; {BY_HAND}"
        );
        return Some((format!("`{shown}` is read-only"), hint));
    }
    if 1 < metadata.nlink() {
        let reason = format!("`{shown}` has several hard links, which replacing it would separate");
        return Some((reason, format!("edit it by hand; {BY_HAND}")));
    }
    None
}

fn refuse(path: &Path, reason: &str, hint: &str) -> CommandError {
    CommandError::Local {
        what: format!("cannot change the settings `{}`", path.display()),
        source: reason.into(),
        exit: CliExitCode::Failed,
        hint: hint.to_owned(),
    }
}
