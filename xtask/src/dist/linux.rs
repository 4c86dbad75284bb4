//! The packages for Debian and for distributions with RPM. What goes where is in `crates/cli/Cargo.toml`.

use super::{
    DistOptions, call,
    stage::{PackageFiles, copy, read},
};
use crate::{cargo::remove_run_variables, tools};
use anyhow::{Context as _, Result};
use std::{fs, path::Path, process::Command};

/// Adds the files that only these packages have: compressed manual pages, and units that start `/usr/bin/jackfield`.
pub(super) fn stage(files: &PackageFiles) -> Result<()> {
    let release = files.target.join("release");
    let prefix = files.prefix();
    for path in files.list()? {
        let name = Path::new(&path).file_name().context("the path has a name")?;
        if path.starts_with("share/man/") {
            let page = release.join("man1").join(name);
            copy(&prefix.join(&path), &page)?;
            call(Command::new("gzip").args(["--best", "--no-name"]).arg(page))?;
        } else if path.starts_with("share/systemd/") {
            let unit = release.join("units").join(name);
            copy(&prefix.join(&path), &unit)?;
            let text = read(&unit)?.replace("/usr/local/bin/jackfield", "/usr/bin/jackfield");
            fs::write(&unit, text)
                .with_context(|| format!("failed to write {}", unit.display()))?;
        }
    }
    Ok(())
}

pub(super) fn write_deb(options: &DistOptions, files: &PackageFiles) -> Result<()> {
    tools::ensure(&["deb"])?;
    let mut cargo = Command::new("cargo");
    remove_run_variables(&mut cargo);
    cargo.args(["deb", "--package", "jackfield", "--no-build", "--no-strip", "--locked"]);
    cargo.args(["--offline", "--quiet", "--output"]).arg(std::path::absolute(&options.out)?);
    if options.is_fast {
        cargo.arg("--fast");
    }
    cargo.env("CARGO_TARGET_DIR", &files.target);
    call(cargo.env("SOURCE_DATE_EPOCH", options.time.to_string()))
}

pub(super) fn write_rpm(options: &DistOptions, files: &PackageFiles) -> Result<()> {
    tools::ensure(&["generate-rpm"])?;
    let mut cargo = Command::new("cargo");
    remove_run_variables(&mut cargo);
    cargo.args(["generate-rpm", "--package", "crates/cli", "--auto-req", "builtin"]);
    cargo.args(["--payload-compress", if options.is_fast { "none" } else { "zstd" }]);
    cargo.arg("--target-dir").arg(&files.target);
    cargo.arg("--output").arg(std::path::absolute(&options.out)?);
    call(cargo.args(["--source-date", &options.time.to_string()]))
}
