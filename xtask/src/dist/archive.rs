//! The archive `jackfield-PLATFORM.tar.gz`, which `install.sh` and the Homebrew formula download. Packages of npm have the
//! same format.
//!
//! The tar file is written here: GNU tar and the tar of macOS have different options for owners, order and times.

use super::{
    DistOptions, platform,
    stage::{PackageFiles, list_files},
};
use anyhow::{Context as _, Result, ensure};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

const BLOCK_BYTES: usize = 512;

pub(super) fn write(options: &DistOptions, files: &PackageFiles) -> Result<()> {
    let name = format!("jackfield-{}", platform());
    write_tar_gz(options, &format!("{name}.tar.gz"), &name, &files.prefix())
}

/// Writes an archive into the folder of packages: the files below `folder`, with `top` instead of its path.
pub(super) fn write_tar_gz(
    options: &DistOptions,
    package: &str,
    top: &str,
    folder: &Path,
) -> Result<()> {
    let package = options.out.join(package);
    let level = if options.is_fast { "-1" } else { "-9" };
    let mut gzip = Command::new("gzip");
    gzip.args(["--no-name", level]).stdin(Stdio::piped());
    let file = File::create(&package)
        .with_context(|| format!("failed to create {}", package.display()))?;
    let mut gzip = gzip.stdout(file).spawn().context("failed to start `gzip`")?;
    let mut tar = BufWriter::new(gzip.stdin.take().context("gzip has no stdin")?);
    for path in list_files(folder)? {
        let source = folder.join(&path);
        let mode = fs::metadata(&source)?.permissions().mode();
        let content =
            fs::read(&source).with_context(|| format!("failed to read {}", source.display()))?;
        let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
        append_file(&mut tar, &format!("{top}/{path}"), mode, options.time, &content)?;
    }
    tar.write_all(&[0; 2 * BLOCK_BYTES])?;
    tar.flush().with_context(|| format!("failed to write {}", package.display()))?;
    drop(tar);
    let status = gzip.wait().context("failed to wait for `gzip`")?;
    ensure!(status.success(), "`gzip` failed: {status}");
    Ok(())
}

/// Writes a header in the format `ustar`, and the content, up to the end of a block.
fn append_file(
    tar: &mut impl Write,
    name: &str,
    mode: u32,
    time: u64,
    content: &[u8],
) -> Result<()> {
    ensure!(name.len() <= 100, "`{name}` is too long for the archive");
    let mut header = [0; BLOCK_BYTES];
    put_field(&mut header, 0, name);
    put_field(&mut header, 100, &format!("{mode:07o}"));
    // User and group.
    put_field(&mut header, 108, "0000000");
    put_field(&mut header, 116, "0000000");
    put_field(&mut header, 124, &format!("{:011o}", content.len()));
    put_field(&mut header, 136, &format!("{time:011o}"));
    // The checksum counts its own field as spaces.
    put_field(&mut header, 148, "        ");
    put_field(&mut header, 156, "0");
    put_field(&mut header, 257, "ustar");
    put_field(&mut header, 263, "00");
    let sum: u32 = header.iter().map(|it| u32::from(*it)).sum();
    put_field(&mut header, 148, &format!("{sum:06o}\0 "));
    let padding = content.len().next_multiple_of(BLOCK_BYTES) - content.len();
    write_parts(tar, &[&header, content, &[0; BLOCK_BYTES][..padding]])
        .with_context(|| format!("failed to write {name} into the archive"))
}

fn put_field(header: &mut [u8; BLOCK_BYTES], at: usize, text: &str) {
    header[at..at + text.len()].copy_from_slice(text.as_bytes());
}

fn write_parts(tar: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|it| tar.write_all(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tar_reads_names_modes_times_and_contents() {
        let mut bytes = Vec::new();
        append_file(&mut bytes, "a/bin/program", 0o755, 86400, &[b'x'; 700]).unwrap();
        append_file(&mut bytes, "a/empty", 0o644, 86400, b"").unwrap();
        bytes.extend([0; 2 * BLOCK_BYTES]);
        assert_eq!(bytes.len() % BLOCK_BYTES, 0);
        let mut tar = Command::new("tar");
        tar.args(["--list", "--verbose", "--numeric-owner", "--file", "-"]).env("TZ", "UTC");
        let mut child = tar.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let listed = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let lines: Vec<Vec<&str>> =
            listed.lines().map(|it| it.split_whitespace().collect()).collect();
        assert_eq!(lines[0][0], "-rwxr-xr-x", "{listed}");
        assert_eq!((lines[0][1], lines[0][2], lines[0][3]), ("0/0", "700", "1970-01-02"));
        assert_eq!(lines[0].last(), Some(&"a/bin/program"));
        assert_eq!((lines[1][0], lines[1][2]), ("-rw-r--r--", "0"), "{listed}");
    }
}
