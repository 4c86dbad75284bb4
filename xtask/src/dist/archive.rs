//! The archive `jackfield-PLATFORM.tar.gz`, which `install.sh` and the Homebrew formula download.
//!
//! The tar file is written here: GNU tar and the tar of macOS have different options for owners, order and times.

use super::{DistOptions, call, platform, stage::PackageFiles};
use anyhow::{Context as _, Result, ensure};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt as _,
    process::Command,
};

const BLOCK_BYTES: usize = 512;

pub(super) fn write(options: &DistOptions, files: &PackageFiles) -> Result<()> {
    let name = format!("jackfield-{}", platform());
    let path = options.out.join(format!("{name}.tar"));
    let file =
        File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    let mut tar = BufWriter::new(file);
    for file in files.list()? {
        let source = files.prefix().join(&file);
        let mode = fs::metadata(&source)?.permissions().mode();
        let content =
            fs::read(&source).with_context(|| format!("failed to read {}", source.display()))?;
        let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
        append_file(&mut tar, &format!("{name}/{file}"), mode, options.time, &content)?;
    }
    tar.write_all(&[0; 2 * BLOCK_BYTES])?;
    tar.flush().with_context(|| format!("failed to write {}", path.display()))?;
    let level = if options.is_fast { "-1" } else { "-9" };
    call(Command::new("gzip").args(["--force", "--no-name", level]).arg(path))
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
    use std::process::Stdio;

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
