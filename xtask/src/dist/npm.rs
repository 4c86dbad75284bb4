//! The npm packages: `jackfield`, which has the launcher, and the package of this platform, which has the program.

use super::{
    DistOptions, VERSION,
    archive::write_tar_gz,
    stage::{PackageFiles, copy, read},
};
use anyhow::{Context as _, Result};
use std::{env, fs, path::Path};

pub(super) fn write(options: &DistOptions, files: &PackageFiles) -> Result<()> {
    let launcher = files.target.join("npm/launcher");
    let paths = files.list()?;
    for path in paths.iter().filter(|it| is_in_launcher(it)) {
        copy(&files.prefix().join(path), &launcher.join(path))?;
    }
    for name in ["README.md", "bin/jackfield.js"] {
        copy(&Path::new("packages/npm").join(name), &launcher.join(name))?;
    }
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(Path::new(name), &launcher.join(name))?;
    }
    let pages = paths.iter().filter(|it| it.starts_with("share/man/")).map(|it| quote(it));
    let pages = pages.collect::<Vec<_>>().join(", ");
    let manifest = read("packages/npm/package.json")?
        .replace("\"0.0.0\"", &quote(VERSION))
        .replace("\"man\": []", &format!("\"man\": [{pages}]"));
    pack(options, &launcher, &manifest, "jackfield-npm.tgz")?;

    let platform = files.target.join("npm/platform");
    copy(&files.prefix().join("bin/jackfield"), &platform.join("bin/jackfield"))?;
    let name = platform_name();
    let package = format!("jackfield-npm-{name}.tgz");
    pack(options, &platform, &platform_manifest(&name), &package)
}

/// The platform of this machine as npm names it: `linux-x64`.
fn platform_name() -> String {
    let system = if env::consts::OS == "macos" { "darwin" } else { env::consts::OS };
    let processor = if env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
    format!("{system}-{processor}")
}

/// Units name the program by its path, which npm decides; the README of the package is another one.
fn is_in_launcher(path: &str) -> bool {
    path.starts_with("share/") && !path.starts_with("share/systemd/") && !path.contains("README")
}

fn platform_manifest(name: &str) -> String {
    let (system, processor) = name.split_once('-').unwrap_or_default();
    let library = if system == "linux" { "  \"libc\": [\"glibc\"],\n" } else { "" };
    format!(
        "{{\n  \"name\": \"@jackfield/{name}\",\n  \"version\": {},\n  \
           \"description\": \"The program of the package jackfield for {name}\",\n  \
           \"license\": \"MIT OR Apache-2.0\",\n  \"os\": [\"{system}\"],\n  \
           \"cpu\": [\"{processor}\"],\n{library}  \
           \"preferUnplugged\": true\n}}\n",
        quote(VERSION)
    )
}

fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

/// A package of npm is an archive with the top folder `package`.
fn pack(options: &DistOptions, folder: &Path, manifest: &str, package: &str) -> Result<()> {
    fs::write(folder.join("package.json"), manifest)
        .with_context(|| format!("failed to write the manifest in {}", folder.display()))?;
    write_tar_gz(options, package, "package", folder)
}
