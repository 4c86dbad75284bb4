//! `cargo xtask dist`: the packages of this platform, in `target/dist`.
//!
//! Read `stage.rs` for the files that every package has, then the file of each kind of package. The same commit gives
//! the same bytes: files are sorted, and their time is `SOURCE_DATE_EPOCH` or that of the commit.

mod archive;
mod formula;
mod glibc;
mod index;
mod licenses;
mod linux;
mod npm;
mod sbom;
mod stage;

use crate::{
    cargo::{cargo, remove_run_variables},
    tools,
};
use anyhow::{Context as _, Result, bail, ensure};
use stage::PackageFiles;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Kinds of packages, in the order in which they are made.
const KINDS: [&str; 6] = ["archive", "deb", "rpm", "npm", "sbom", "index"];

/// Kinds that only Linux has.
const LINUX_KINDS: [&str; 2] = ["deb", "rpm"];

/// Where releases are found, unless `--releases` names another address: below it are `latest/download/FILE` and
/// `download/vVERSION/FILE`.
const RELEASES: &str = "https://downloads.example.org/jackfield";

pub(crate) struct DistOptions {
    /// An existing program; without it, a release is built.
    binary: Option<PathBuf>,
    kinds: Vec<&'static str>,
    pub(crate) out: PathBuf,
    /// Compress quickly, for tests.
    pub(crate) is_fast: bool,
    pub(crate) releases: String,
    /// The time of all files, in seconds since 1970.
    pub(crate) time: u64,
}

/// `None` if the arguments are wrong.
pub(crate) fn run(words: &[&str]) -> Option<Result<()>> {
    let options = parse_options(words)?;
    Some(options.and_then(|it| make_packages(&it)))
}

fn parse_options(words: &[&str]) -> Option<Result<DistOptions>> {
    let (mut binary, mut kinds, mut out) = (None, Vec::new(), PathBuf::from("target/dist"));
    let (mut is_fast, mut releases) = (false, RELEASES.to_owned());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--binary" => binary = Some(PathBuf::from(words.next()?)),
            "--only" => {
                let kind = words.next()?;
                kinds.push(*KINDS.iter().find(|it| *it == kind)?);
            }
            "--out" => out = PathBuf::from(words.next()?),
            "--releases" => words.next()?.trim_end_matches('/').clone_into(&mut releases),
            "--fast" => is_fast = true,
            _ => return None,
        }
    }
    if kinds.is_empty() {
        let is_made = |it: &&str| cfg!(target_os = "linux") || !LINUX_KINDS.contains(it);
        kinds = KINDS.into_iter().filter(is_made).collect();
    }
    Some(read_time().map(|time| DistOptions { binary, kinds, out, is_fast, releases, time }))
}

fn make_packages(options: &DistOptions) -> Result<()> {
    let out = &options.out;
    fs::create_dir_all(out).with_context(|| format!("failed to create {}", out.display()))?;
    let is_wanted = |kind: &str| options.kinds.contains(&kind);
    if is_wanted("sbom") {
        sbom::write(options)?;
    }
    if options.kinds.iter().any(|it| !["sbom", "index"].contains(it)) {
        let binary = match &options.binary {
            Some(binary) => binary.clone(),
            None => build_release()?,
        };
        let files = PackageFiles::stage(&binary, &out.join(".stage"))?;
        if is_wanted("archive") {
            archive::write(options, &files)?;
        }
        if LINUX_KINDS.iter().any(|it| is_wanted(it)) {
            linux::stage(&files)?;
        }
        if is_wanted("deb") {
            linux::write_deb(options, &files)?;
        }
        if is_wanted("rpm") {
            linux::write_rpm(options, &files)?;
        }
        if is_wanted("npm") {
            npm::write(options, &files)?;
        }
        files.remove()?;
    }
    if is_wanted("index") {
        index::write(options)?;
    }
    print_sizes(out)
}

/// On Linux, zig links the program with the symbols of an old C library, so that it runs on every system with that or a
/// newer one.
fn build_release() -> Result<PathBuf> {
    let target_folder = crate::cargo::target_folder();
    if cfg!(not(target_os = "linux")) {
        cargo(&["build", "--release", "--locked", "--package", "jackfield"], &[])?;
        return Ok(target_folder.join("release/jackfield"));
    }
    tools::ensure(&["cargo-zigbuild"])?;
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let mut build = tools::command("cargo-zigbuild");
    remove_run_variables(&mut build);
    build.args(["zigbuild", "--release", "--locked", "--package", "jackfield", "--target"]);
    build.arg(format!("{target}.{}", glibc::GLIBC_VERSION));
    let zig = tools::wheel_file("cargo-zigbuild", "ziglang/zig");
    if zig.is_file() {
        build.env("CARGO_ZIGBUILD_ZIG_PATH", std::path::absolute(zig)?);
    }
    call(&mut build)?;
    let program = target_folder.join(target).join("release/jackfield");
    glibc::check_symbols(&program)?;
    Ok(program)
}

/// The platform of this machine as ACP registries name it: `linux-x86_64`.
pub(crate) fn platform() -> String {
    let system = if env::consts::OS == "macos" { "darwin" } else { env::consts::OS };
    format!("{system}-{}", env::consts::ARCH)
}

fn read_time() -> Result<u64> {
    let text = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => output(Command::new("git").args(["log", "-1", "--format=%ct"]))?,
    };
    text.trim().parse().with_context(|| format!("`{}` is not a time in seconds", text.trim()))
}

/// Runs a program to its end, with its output shown.
pub(crate) fn call(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("failed to start `{name}`"))?;
    ensure!(status.success(), "`{name}` failed: {status}");
    Ok(())
}

/// The stdout of a program that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("failed to start `{name}`"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("`{name}` failed: {}\n{message}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{name}` printed no UTF-8"))
}

fn print_sizes(out: &Path) -> Result<()> {
    for path in index::list_files(out)? {
        let size = fs::metadata(out.join(&path)).map_or(0, |it| it.len());
        println!("dist: {size:>10} {}", out.join(path).display());
    }
    Ok(())
}
