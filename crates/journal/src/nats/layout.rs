//! Where things are in a cell: the names of JetStream's streams and subjects, and how the streams are
//! kept. Nothing here talks to a server.
//!
//! A cell has a fixed number of *shards*, each one JetStream stream that holds the logs of many of our
//! streams, a subject each; and one stream of summaries, of which only the last of each is kept. A
//! JetStream stream for each of ours would be the end of a cluster at a few thousand.

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use sha2::{Digest as _, Sha256};
use std::{fmt::Write as _, time::Duration};

/// How a cell is laid out. It is the same for ever, for all who use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The first token of every subject: letters and digits.
    pub name: String,
    pub shards: u16,
    pub replicas: usize,
}

impl Default for Cell {
    fn default() -> Cell {
        Cell { name: "jackfield".into(), shards: 64, replicas: 3 }
    }
}

/// The shortest that a server takes: appends are told apart by what they expect, not by an id.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(100);

/// A file's name may have 255, an object's key 1,024.
const FOLDER_BYTES_MAX: usize = 200;

impl Cell {
    pub(super) fn shard(&self, stream: &str) -> u16 {
        u16::try_from(fnv1a(stream.as_bytes()) % u64::from(self.shards)).expect("less than a u16")
    }

    /// The JetStream stream that holds the log of this one.
    pub(super) fn log(&self, stream: &str) -> String {
        self.shard_log(self.shard(stream))
    }

    pub(super) fn shard_log(&self, shard: u16) -> String {
        format!("{}-log-{shard}", self.name)
    }

    pub(super) fn summaries(&self) -> String {
        format!("{}-summaries", self.name)
    }

    pub(super) fn owned(&self) -> String {
        format!("{}-owned", self.name)
    }

    /// Where the cell says which archive it has. No owner has such a name.
    pub(super) fn archive_subject(&self) -> String {
        format!("{}.own.=archive", self.name)
    }

    /// The entry of a stream in the list of those that an owner has.
    pub(super) fn owned_subject(&self, owner: &str, stream: &str) -> String {
        format!("{}.own.{}.{}", self.name, family(owner), token(stream))
    }

    /// All entries of an owner, or of a family of them.
    pub(super) fn all_owned(&self, owner: &str) -> String {
        format!("{}.own.{}.>", self.name, family(owner))
    }

    pub(super) fn named_by_entry(subject: &str) -> Option<String> {
        name(subject.rsplit('.').next()?)
    }

    /// The subject of a log.
    pub(super) fn subject(&self, stream: &str) -> String {
        format!("{}.log.{}.{}", self.name, self.shard(stream), token(stream))
    }

    /// All logs of a shard.
    pub(super) fn all_logs(&self, shard: u16) -> String {
        format!("{}.log.{shard}.*", self.name)
    }

    /// The last token is a stream's name.
    pub(super) fn named_by_log(subject: &str) -> Option<String> {
        Cell::named_by_entry(subject)
    }

    /// Where the segments of a stream are in an archive. Names there are not as long as they may be here.
    pub(super) fn folder(stream: &str) -> String {
        let token = token(stream);
        if token.len() <= FOLDER_BYTES_MAX {
            return token;
        }
        let digest = Sha256::digest(stream);
        let hex = digest.iter().map(|it| format!("{it:02x}"));
        // No name begins with `=` and a letter that is no hex digit.
        format!("=sha256-{}", hex.collect::<String>())
    }

    pub(super) fn summary_subject(&self, stream: &str) -> String {
        format!("{}.sum.{}", self.name, token(stream))
    }

    /// The parts of one large event. The epoch is in it, so that two writers never mix theirs.
    pub(super) fn blob_subject(&self, stream: &str, epoch: u64, seq: u64, part: usize) -> String {
        format!("{}.{epoch}.{seq}.{part}", self.blobs(stream))
    }

    /// All large events of a stream.
    pub(super) fn blobs_subject(&self, stream: &str) -> String {
        format!("{}.>", self.blobs(stream))
    }

    fn blobs(&self, stream: &str) -> String {
        format!("{}.blob.{}.{}", self.name, self.shard(stream), token(stream))
    }

    /// The stream whose summary has this subject.
    pub(super) fn named_by_summary(&self, subject: &str) -> Option<String> {
        let rest = subject.strip_prefix(&self.name)?;
        name(rest.strip_prefix(".sum.")?)
    }

    /// Everything that must be there before the cell can be used.
    pub(super) fn streams(&self) -> Vec<Config> {
        let log = |shard| {
            let subjects =
                ["log", "blob"].map(|it| format!("{}.{it}.{shard}.>", self.name)).to_vec();
            // For what says that a stream was deleted.
            let allow_message_ttl = true;
            Config { name: self.shard_log(shard), subjects, allow_message_ttl, ..self.kept() }
        };
        let summaries = Config {
            name: self.summaries(),
            subjects: vec![format!("{}.sum.>", self.name)],
            max_messages_per_subject: 1,
            ..self.kept()
        };
        let owned = Config {
            name: self.owned(),
            subjects: vec![format!("{}.own.>", self.name)],
            max_messages_per_subject: 1,
            ..self.kept()
        };
        (0..self.shards).map(log).chain([summaries, owned]).collect()
    }

    fn kept(&self) -> Config {
        Config {
            num_replicas: self.replicas,
            storage: StorageType::File,
            // Full is full: what is there is never given up for what comes.
            discard: DiscardPolicy::New,
            duplicate_window: DUPLICATE_WINDOW,
            allow_direct: true,
            ..Config::default()
        }
    }
}

/// The name of an owner as tokens: its family comes first.
fn family(owner: &str) -> String {
    owner.split('/').map(token).collect::<Vec<_>>().join(".")
}

/// Any name as one token of a subject: what has a meaning there is written as `=` and two hex digits.
fn token(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            token.push(char::from(byte));
        } else {
            write!(token, "={byte:02x}").expect("a string takes everything");
        }
    }
    token
}

fn name(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        if first == b'=' {
            let (hex, more) = more.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = more;
        } else {
            bytes.push(first);
            rest = more;
        }
    }
    String::from_utf8(bytes).ok()
}

/// FNV-1a, fixed for ever: it says in which shard a log is.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shard_is_the_same_for_ever() {
        let cell = Cell::default();
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(cell.subject("s-1"), "jackfield.log.36.s-1");
        assert_eq!(cell.log("s-1"), "jackfield-log-36");
    }

    #[test]
    fn a_folder_is_the_same_for_ever_and_never_too_long() {
        assert_eq!(Cell::folder("s-1.x"), "s-1=2ex");
        let long = Cell::folder(&"x".repeat(201));
        assert!(long.starts_with("=sha256-84a0678c90937f5d"), "{long}");
        assert_ne!(long, Cell::folder(&"x".repeat(202)));
        assert!(long.len() <= FOLDER_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn every_name_is_one_token_and_comes_back(given in "\\PC{1,40}|[ .*>=\0\n]{1,8}") {
            let token = token(&given);
            prop_assert!(!token.contains(['.', ' ', '*', '>', '\n', '\0']), "{token}");
            let subject = Cell::default().summary_subject(&given);
            prop_assert_eq!(Cell::default().named_by_summary(&subject), Some(given));
        }
    }
}
