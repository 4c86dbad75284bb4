//! What describes all packages of a release: `install.sh` and the Homebrew formula with the address of the releases, and
//! `SHA256SUMS`. A release of several platforms collects their packages in one folder and runs
//! `cargo xtask dist --only index` there.

use super::{DistOptions, formula, output, stage::read};
use anyhow::{Context as _, Result};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

const CHECKSUMS: &str = "SHA256SUMS";

pub(super) fn write(options: &DistOptions) -> Result<()> {
    let script = options.out.join("install.sh");
    let text = read("packages/install.sh")?.replace("@RELEASES@", &options.releases);
    fs::write(&script, text).with_context(|| format!("failed to write {}", script.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let sums = hash_files(&options.out, &list_files(&options.out)?)?;
    let formula = options.out.join("jackfield.rb");
    let template = read("packages/homebrew/jackfield.rb")?;
    fs::write(&formula, formula::fill_template(&template, &options.releases, &sums))
        .with_context(|| format!("failed to write {}", formula.display()))?;
    let sums = hash_files(&options.out, &list_files(&options.out)?)?;
    let path = options.out.join(CHECKSUMS);
    fs::write(&path, sums).with_context(|| format!("failed to write {}", path.display()))
}

/// The packages by name, without their checksums.
pub(super) fn list_files(out: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out).with_context(|| format!("failed to read {}", out.display()))? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file name is not UTF-8")?;
        if entry.file_type()?.is_file() && name != CHECKSUMS {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Lines that `sha256sum --check` accepts.
pub(super) fn hash_files(folder: &Path, files: &[String]) -> Result<String> {
    // macOS has only the second program.
    let has_sha256sum = Command::new("sha256sum").arg("--version").output().is_ok();
    let mut command =
        if has_sha256sum { Command::new("sha256sum") } else { Command::new("shasum") };
    if !has_sha256sum {
        command.args(["-a", "256"]);
    }
    output(command.args(files).current_dir(folder))
}
