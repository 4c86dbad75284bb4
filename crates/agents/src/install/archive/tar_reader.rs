//! Reads the entries of a tar file in the formats ustar, pax and GNU.
//!
//! Everything is bounded: names have a limit, and the content of an entry is read in parts.

use std::{
    io::{self, Read, Write},
    mem,
};

const BLOCK_BYTES: usize = 512;
/// The size of a long name or of a pax header. Paths of systems end at 4 KiB.
const EXTENSION_BYTES_MAX: u64 = 64 * 1024;

/// One entry. Its content, if any, is read with [`TarReader::copy_content`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TarEntry {
    pub(super) path: String,
    pub(super) kind: EntryKind,
    pub(super) size: u64,
    pub(super) is_executable: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Directory,
    /// A symbolic link to this path.
    Symlink(String),
    /// A hard link, a device, or anything else.
    Other,
}

pub(super) struct TarReader<R> {
    input: R,
    /// The bytes of the current entry that were not read yet.
    content_left: u64,
    /// The bytes after the content, up to the end of its last block.
    padding_left: u64,
}

/// What pax headers and long names say about the next entry.
#[derive(Default)]
struct EntryExtension {
    path: Option<String>,
    link: Option<String>,
    size: Option<u64>,
}

impl<R: Read> TarReader<R> {
    pub(super) fn new(input: R) -> TarReader<R> {
        TarReader { input, content_left: 0, padding_left: 0 }
    }

    /// The next entry; `None` at the end. The content of the entry before is skipped.
    pub(super) fn next_entry(&mut self) -> io::Result<Option<TarEntry>> {
        let mut extension = EntryExtension::default();
        loop {
            self.copy_content(&mut io::sink())?;
            let Some(header) = self.read_header()? else { return Ok(None) };
            let kind = header[156];
            let size = match extension.size {
                Some(size) if !b"xgLK".contains(&kind) => size,
                _ => parse_number(&header[124..136])?,
            };
            let blocks = BLOCK_BYTES as u64;
            (self.content_left, self.padding_left) = (size, (blocks - size % blocks) % blocks);
            match kind {
                b'L' => extension.path = Some(parse_text(&self.read_extension()?)?),
                b'K' => extension.link = Some(parse_text(&self.read_extension()?)?),
                b'x' => extension.parse_records(&self.read_extension()?)?,
                b'g' => {
                    self.read_extension()?;
                }
                _ => return extension.into_entry(&header, size).map(Some),
            }
        }
    }

    /// Copies what is left of the content of the current entry.
    pub(super) fn copy_content(&mut self, output: &mut impl Write) -> io::Result<()> {
        let content = mem::take(&mut self.content_left);
        let padding = mem::take(&mut self.padding_left);
        let copied = io::copy(&mut (&mut self.input).take(content), output)?;
        let skipped = io::copy(&mut (&mut self.input).take(padding), &mut io::sink())?;
        if copied == content && skipped == padding {
            Ok(())
        } else {
            Err(invalid("it is incomplete".to_owned()))
        }
    }

    /// The header of the next entry; `None` at the end, which is a block of zeros.
    fn read_header(&mut self) -> io::Result<Option<[u8; BLOCK_BYTES]>> {
        let mut header = [0; BLOCK_BYTES];
        self.input.read_exact(&mut header).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => invalid("it is incomplete".to_owned()),
            _ => error,
        })?;
        if header.iter().all(|it| *it == 0) {
            return Ok(None);
        }
        // The checksum counts its own field as spaces.
        let sum = |range: &[u8]| range.iter().map(|it| u64::from(*it)).sum::<u64>();
        let actual = sum(&header[..148]) + 8 * u64::from(b' ') + sum(&header[156..]);
        if parse_number(&header[148..156])? != actual {
            return Err(invalid("it is not a tar file, or damaged".to_owned()));
        }
        Ok(Some(header))
    }

    fn read_extension(&mut self) -> io::Result<Vec<u8>> {
        if EXTENSION_BYTES_MAX < self.content_left {
            let size = self.content_left;
            return Err(invalid(format!("a name or a header of it has {size} bytes")));
        }
        let mut bytes = Vec::new();
        self.copy_content(&mut bytes)?;
        Ok(bytes)
    }
}

impl EntryExtension {
    /// Reads the records of a pax header: `LENGTH KEY=VALUE`, each with its length and a line break at its end.
    fn parse_records(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let damaged = || invalid("a header of it is damaged".to_owned());
        while !bytes.is_empty() {
            let space = bytes.iter().position(|it| *it == b' ').ok_or_else(damaged)?;
            let length: usize = parse_text(&bytes[..space])?.parse().map_err(|_| damaged())?;
            if length <= space + 1 || bytes.len() < length {
                return Err(damaged());
            }
            let record = &bytes[space + 1..length - 1];
            bytes = &bytes[length..];
            let equals = record.iter().position(|it| *it == b'=').ok_or_else(damaged)?;
            let value = &record[equals + 1..];
            match &record[..equals] {
                b"path" => self.path = Some(parse_text(value)?),
                b"linkpath" => self.link = Some(parse_text(value)?),
                b"size" => self.size = Some(parse_text(value)?.parse().map_err(|_| damaged())?),
                _ => {}
            }
        }
        Ok(())
    }

    fn into_entry(self, header: &[u8; BLOCK_BYTES], size: u64) -> io::Result<TarEntry> {
        let path = self.path.map_or_else(|| parse_path(header), Ok)?;
        let link = self.link.map_or_else(|| parse_text(&header[157..257]), Ok)?;
        let kind = match header[156] {
            b'0' | b'7' | 0 if path.ends_with('/') => EntryKind::Directory,
            b'0' | b'7' | 0 => EntryKind::File,
            b'5' => EntryKind::Directory,
            b'2' => EntryKind::Symlink(link),
            _ => EntryKind::Other,
        };
        let is_executable = parse_number(&header[100..108])? & 0o100 != 0;
        Ok(TarEntry { path, kind, size, is_executable })
    }
}

/// The path in a header, which is in two parts if it is long.
fn parse_path(header: &[u8; BLOCK_BYTES]) -> io::Result<String> {
    let name = parse_text(&header[..100])?;
    // GNU tar uses the field of the first part for something else, and says so in the magic number.
    let has_prefix = &header[257..263] == b"ustar\0" && header[345] != 0;
    if !has_prefix {
        return Ok(name);
    }
    Ok(format!("{}/{name}", parse_text(&header[345..500])?))
}

/// A number in octal digits, which spaces or zeros end. Numbers of more digits, which GNU tar writes in another form, are
/// refused.
fn parse_number(field: &[u8]) -> io::Result<u64> {
    let digits = field.iter().skip_while(|it| **it == b' ');
    let digits: Vec<u8> = digits.take_while(|it| !b" \0".contains(it)).copied().collect();
    let is_octal = digits.iter().all(|it| (b'0'..=b'7').contains(it));
    if !is_octal {
        return Err(invalid("a number in it is too large or damaged".to_owned()));
    }
    Ok(digits.iter().fold(0, |number, it| number * 8 + u64::from(it - b'0')))
}

/// A text up to the first zero.
fn parse_text(bytes: &[u8]) -> io::Result<String> {
    let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
    let text = String::from_utf8(bytes[..end].to_vec());
    text.map_err(|_| invalid("a name in it is not UTF-8".to_owned()))
}

pub(super) fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
