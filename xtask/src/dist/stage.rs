//! The files that all packages have, in the layout of an installation prefix: `bin` and `share`.

use super::{call, licenses, output};
use anyhow::{Context as _, Result, ensure};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// Shells with a completion script, and its place below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/jackfield"),
    ("zsh", "share/zsh/site-functions/_jackfield"),
    ("fish", "share/fish/vendor_completions.d/jackfield.fish"),
];

const MAN_PAGES: &str = "share/man/man1";
const DOCUMENTS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];
const UNITS: [&str; 2] = ["jackfield.service", "jackfield.socket"];

/// A directory with the files. It looks like a target directory of cargo, because cargo-deb and cargo-generate-rpm
/// search files there: `release/package` is the prefix.
pub(super) struct PackageFiles {
    pub(super) target: PathBuf,
}

impl PackageFiles {
    /// Copies and generates the files. The manual pages and completions are those that the program prints.
    pub(super) fn stage(binary: &Path, target: &Path) -> Result<PackageFiles> {
        if target.exists() {
            fs::remove_dir_all(target).context("failed to remove the files of an earlier run")?;
        }
        let files = PackageFiles { target: std::path::absolute(target)? };
        let program = files.prefix().join("bin/jackfield");
        copy(binary, &program)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        call(Command::new("strip").arg(&program))?;
        let version = output(Command::new(&program).arg("--version"))?;
        let expected = format!("jackfield {}", super::VERSION);
        ensure!(version.trim() == expected, "{} is `{}`", binary.display(), version.trim());

        let pages = files.prefix().join(MAN_PAGES);
        fs::create_dir_all(&pages)?;
        call(Command::new(&program).args(["man", "--output-dir"]).arg(&pages))?;
        for (shell, path) in COMPLETIONS {
            let script = output(Command::new(&program).args(["completions", shell]))?;
            files.write(path, &script)?;
        }
        for name in DOCUMENTS {
            files.write(&format!("share/doc/jackfield/{name}"), &read(name)?)?;
        }
        files.write("share/doc/jackfield/THIRD-PARTY-LICENSES.txt", &licenses::collect()?)?;
        if cfg!(target_os = "linux") {
            for name in UNITS {
                let unit = read(format!("deploy/{name}"))?;
                files.write(&format!("share/systemd/user/{name}"), &unit)?;
            }
        }
        Ok(files)
    }

    pub(super) fn prefix(&self) -> PathBuf {
        self.target.join("release/package")
    }

    /// Paths below the prefix, sorted.
    pub(super) fn list(&self) -> Result<Vec<String>> {
        list_files(&self.prefix())
    }

    pub(super) fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.target).context("failed to remove the staged files")
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.prefix().join(path);
        create_parent(&path)?;
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
    }
}

pub(super) fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

/// Copies a file with its permissions, and creates the directories of the copy.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    create_parent(to)?;
    fs::copy(from, to).with_context(|| format!("failed to copy {}", from.display()))?;
    Ok(())
}

fn create_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("the path has a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("failed to create {}", parent.display()))
}

/// Paths below a folder, sorted.
pub(super) fn list_files(folder: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    list_below(folder, "", &mut paths)?;
    paths.sort();
    Ok(paths)
}

fn list_below(root: &Path, below: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file name is not UTF-8")?;
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type()?.is_dir() {
            list_below(root, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
