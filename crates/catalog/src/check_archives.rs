//! Checks of `[package.archive.PLATFORM]`: addresses, checksums and the path of the program.

use crate::{
    AgentPackage, PackageArchive,
    error::PathStep::{self, Key},
    violation::{CheckResult, reject},
};

/// The platforms that Jackfield runs on.
const PLATFORMS: [&str; 4] = ["darwin-aarch64", "darwin-x86_64", "linux-aarch64", "linux-x86_64"];
/// Plain HTTP is for tests and mirrors on the same machine.
const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

pub(crate) fn check_archives(path: &[PathStep], package: &AgentPackage) -> CheckResult {
    let at = |key: &'static str| [path, &[Key(key)]].concat();
    if !package.version.as_deref().is_some_and(is_version) {
        return reject(path, "`version` of the archives is missing, or is not a version");
    }
    if package.bins.len() != 1 {
        return reject(path, "archives have one program: name it in `bins`");
    }
    for (platform, archive) in &package.archives {
        if let Err(reason) = check_archive(platform, archive) {
            return reject(&at("archive"), format!("archive for `{platform}`: {reason}"));
        }
    }
    Ok(())
}

/// Whether a version can be the name of a folder.
fn is_version(version: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"._+-".contains(&it);
    version.starts_with(|it: char| it.is_ascii_alphanumeric()) && version.bytes().all(is_plain)
}

/// Why an archive cannot be used.
pub(crate) fn check_archive(platform: &str, archive: &PackageArchive) -> Result<(), String> {
    let PackageArchive { url, sha256, program } = archive;
    if !PLATFORMS.contains(&platform) {
        return Err(format!("the platforms are `{}`", PLATFORMS.join("`, `")));
    }
    if !is_safe_address(url) {
        return Err(format!("`{url}` is not an address that begins with `https://`"));
    }
    if ![".tar.gz", ".tgz"].iter().any(|it| url.ends_with(it)) {
        return Err(format!("`{url}` is not a `.tar.gz`, the only format that is unpacked"));
    }
    if sha256.len() != 64 || !sha256.bytes().all(|it| it.is_ascii_hexdigit()) {
        return Err("`sha256` does not have 64 hexadecimal digits".to_owned());
    }
    let is_name = |it: &str| !it.is_empty() && it != "." && it != ".." && !it.contains('\\');
    if !program.split('/').all(is_name) {
        return Err(format!("`{program}` is not a path in the archive"));
    }
    Ok(())
}

/// Whether a download from this address is encrypted or stays on this machine.
fn is_safe_address(url: &str) -> bool {
    let is_plain = url.bytes().all(|it| it.is_ascii_graphic() && !b"\"'`\\<>".contains(&it));
    match url.split_once("://") {
        Some(("https", rest)) => is_plain && parse_authority(rest).is_some(),
        Some(("http", rest)) => is_plain && parse_authority(rest).is_some_and(is_loopback),
        _ => false,
    }
}

/// The host and the port of an address; `None` if it has a name and a password, which look like a host.
fn parse_authority(rest: &str) -> Option<&str> {
    let authority = rest.split(['/', '?', '#']).next()?;
    (!authority.is_empty() && !authority.contains('@')).then_some(authority)
}

fn is_loopback(authority: &str) -> bool {
    let is_rest = |it: &str| it.is_empty() || is_port(it);
    LOOPBACK_HOSTS.iter().any(|it| authority.strip_prefix(it).is_some_and(is_rest))
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
}
