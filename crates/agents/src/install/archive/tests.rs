//! Archives that try to write outside of their folder or to fill the disk, and archives as vendors make them.

use super::unpack::{UNPACK_LIMITS, UnpackLimits, unpack_archive};
use flate2::{Compression, write::GzEncoder};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

const FILE: u8 = b'0';
const HARD_LINK: u8 = b'1';
const SYMLINK: u8 = b'2';
const DEVICE: u8 = b'3';
const LONG_NAME: u8 = b'L';
const PAX: u8 = b'x';

/// An entry with this kind, path, link target, claimed size and content.
struct RawEntry<'a>(u8, &'a str, &'a str, u64, &'a [u8]);

fn file<'a>(path: &'a str, content: &'a [u8]) -> RawEntry<'a> {
    RawEntry(FILE, path, "", content.len() as u64, content)
}

fn link<'a>(path: &'a str, target: &'a str) -> RawEntry<'a> {
    RawEntry(SYMLINK, path, target, 0, b"")
}

fn tar_bytes(entries: &[RawEntry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for RawEntry(kind, path, target, size, content) in entries {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, text: &str| {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        };
        put(0, path);
        put(100, "0000755");
        put(124, &format!("{size:011o}"));
        put(148, "        ");
        put(157, target);
        put(257, "ustar");
        put(263, "00");
        header[156] = *kind;
        let sum: u32 = header.iter().map(|it| u32::from(*it)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        bytes.extend(header);
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1024]);
    bytes
}

/// A folder `files` to unpack into, and what is beside it.
struct UnpackPlace {
    dir: TempDir,
}

impl UnpackPlace {
    fn new() -> UnpackPlace {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("files")).unwrap();
        UnpackPlace { dir }
    }

    fn files(&self) -> PathBuf {
        self.dir.path().join("files")
    }

    fn unpack(&self, tar: &[u8], limits: UnpackLimits) -> Result<(), String> {
        let archive = self.dir.path().join("archive.tar.gz");
        let mut gzip = GzEncoder::new(fs::File::create(&archive).unwrap(), Compression::fast());
        gzip.write_all(tar).unwrap();
        gzip.finish().unwrap();
        unpack_archive(&archive, &self.files(), limits).map_err(|it| it.to_string())
    }

    /// Nothing but the archive and the folder is there.
    fn assert_nothing_escaped(&self) {
        let names = fs::read_dir(self.dir.path()).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["archive.tar.gz", "files"]);
    }
}

#[test]
fn archive_of_a_vendor_is_unpacked_with_modes_links_and_long_names() {
    let source = tempfile::tempdir().unwrap();
    let long = "a-long-name-of-a-directory/".repeat(8);
    fs::create_dir_all(source.path().join("top/lib").join(&long)).unwrap();
    fs::write(source.path().join("top/lib").join(&long).join("data"), "deep").unwrap();
    fs::write(source.path().join("top/lib/agent"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(source.path().join("top/lib/agent"), fs::Permissions::from_mode(0o4755))
        .unwrap();
    symlink("lib/agent", source.path().join("top/agent")).unwrap();
    for format in ["gnu", "pax", "ustar"] {
        let place = UnpackPlace::new();
        let mut tar = Command::new("tar");
        tar.args(["--create", "--format", format, "--file", "-", "--directory"]);
        let output = tar.arg(source.path()).arg(".").output().unwrap();
        place.unpack(&output.stdout, UNPACK_LIMITS).unwrap();
        let top = place.files().join("top");
        assert_eq!(fs::read(top.join("lib").join(&long).join("data")).unwrap(), b"deep");
        assert_eq!(fs::read_link(top.join("agent")).unwrap(), Path::new("lib/agent"));
        let mode = fs::metadata(top.join("agent")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7000, 0, "the bit that changes the user is not kept");
        assert_eq!(mode & 0o100, 0o100);
        let data = fs::metadata(top.join("lib").join(&long).join("data")).unwrap();
        assert_eq!(data.permissions().mode() & 0o100, 0);
    }
}

#[test]
fn entry_that_leaves_the_folder_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    let absolute = format!("{}/escaped", outside.path().display());
    let long_name = RawEntry(LONG_NAME, "long", "", 11, b"../escaped\0");
    let record = b"19 path=../escaped\n";
    let pax = RawEntry(PAX, "pax", "", record.len() as u64, record);
    let cases: Vec<(Vec<RawEntry<'_>>, &str)> = vec![
        (vec![file("../escaped", b"x")], "leaves its folder"),
        (vec![file("a/../../escaped", b"x")], "leaves its folder"),
        (vec![file(&absolute, b"x")], "leaves its folder"),
        (vec![long_name, file("harmless", b"x")], "leaves its folder"),
        (vec![pax, file("harmless", b"x")], "leaves its folder"),
        (vec![link("a", "..")], "is a link that leaves its folder"),
        (vec![link("a", "/etc")], "is a link that leaves its folder"),
        (vec![link("a/b", "../../x")], "is a link that leaves its folder"),
        // Read name by name, this target stays inside; with the first link in its middle it would not.
        (vec![link("a/b/c", "../.."), link("d", "a/b/c/../..")], "is a link that leaves"),
        (vec![link("a", "b"), file("a/escaped", b"x")], "has no directory"),
        (vec![file("a", b"x"), file("a/b", b"x")], "has no directory"),
        (vec![link("a", "b"), file("a", b"x")], "failed to create `a`"),
        (vec![RawEntry(HARD_LINK, "a", "/etc/passwd", 0, b"")], "is neither a file"),
        (vec![RawEntry(DEVICE, "a", "", 0, b"")], "is neither a file"),
    ];
    for (entries, expected) in cases {
        let place = UnpackPlace::new();
        let refused = place.unpack(&tar_bytes(&entries), UNPACK_LIMITS).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
        place.assert_nothing_escaped();
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{refused}");
    }
}

#[test]
fn archive_that_becomes_too_large_is_refused_before_it_is_written() {
    let limits = UnpackLimits { bytes_max: 10_000, entries_max: 3 };
    // Compressed, this has less than a kilobyte.
    let zeros = vec![0; 1 << 20];
    let bomb = tar_bytes(&[file("zeros", &zeros)]);
    let claims = tar_bytes(&[RawEntry(FILE, "claims", "", 1 << 32, b"x")]);
    let several = tar_bytes(&[file("a", &zeros[..6000]), file("b", &zeros[..6000])]);
    let many = tar_bytes(&["a", "b", "c", "d"].map(|it| file(it, b"")));
    for tar in [bomb, claims, several, many] {
        let place = UnpackPlace::new();
        let refused = place.unpack(&tar, limits).unwrap_err();
        assert_eq!(refused, "it has more than 10000 bytes or 3 files");
        let written =
            fs::read_dir(place.files()).unwrap().map(|it| it.unwrap().metadata().unwrap());
        assert!(written.map(|it| it.len()).sum::<u64>() <= limits.bytes_max);
    }
    let place = UnpackPlace::new();
    let long = RawEntry(LONG_NAME, "long", "", zeros.len() as u64, &zeros);
    let refused = place.unpack(&tar_bytes(&[long, file("a", b"")]), limits).unwrap_err();
    assert_eq!(refused, "a name or a header of it has 1048576 bytes");
}

#[test]
fn damaged_archive_is_refused() {
    let whole = tar_bytes(&[file("a", &[b'x'; 2000])]);
    let mut changed = whole.clone();
    changed[3] ^= 1;
    let record = b"99 path=a\n";
    let pax = tar_bytes(&[RawEntry(PAX, "pax", "", record.len() as u64, record), file("a", b"")]);
    let incomplete = "it is incomplete";
    for (tar, expected) in [
        (&whole[..1000], incomplete),
        (&whole[..2560], incomplete),
        (&b""[..], incomplete),
        (&changed, "it is not a tar file, or damaged"),
        (&pax, "a header of it is damaged"),
    ] {
        assert_eq!(UnpackPlace::new().unpack(tar, UNPACK_LIMITS).unwrap_err(), expected);
    }
    let place = UnpackPlace::new();
    let archive = place.dir.path().join("archive.tar.gz");
    fs::write(&archive, "<html>not found</html>").unwrap();
    assert!(unpack_archive(&archive, &place.files(), UNPACK_LIMITS).is_err());
}
