//! The layout of a cell: the names of its JetStream streams and subjects, and the stream
//! configurations. This file does not access the servers.
//!
//! A cell has a fixed number of *shards*. Each shard is one JetStream stream with the logs of many
//! of our streams, one subject each. A further JetStream stream contains the last summary of each
//! stream. One JetStream stream per journal stream would overload a cluster at a few thousand
//! streams.

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use sha2::{Digest as _, Sha256};
use std::{fmt::Write as _, time::Duration};

/// The layout of a cell. It never changes and is the same for all users of the cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellConfig {
    /// The first token of every subject: letters and digits.
    pub name: String,
    pub shards: u16,
    pub replicas: usize,
}

impl Default for CellConfig {
    fn default() -> CellConfig {
        CellConfig { name: "jackfield".into(), shards: 64, replicas: 3 }
    }
}

/// The shortest window that a server accepts. Appends are deduplicated by their expected position,
/// not by message id.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(100);

/// A file name may have 255 bytes and an object key 1,024.
const FOLDER_BYTES_MAX: usize = 200;

impl CellConfig {
    pub(super) fn shard_index(&self, stream: &str) -> u16 {
        u16::try_from(fnv1a_hash(stream.as_bytes()) % u64::from(self.shards))
            .expect("less than a u16")
    }

    /// The name of the JetStream stream with the log of this stream.
    pub(super) fn log_name(&self, stream: &str) -> String {
        self.shard_log_name(self.shard_index(stream))
    }

    pub(super) fn shard_log_name(&self, shard: u16) -> String {
        format!("{}-log-{shard}", self.name)
    }

    pub(super) fn summaries_name(&self) -> String {
        format!("{}-summaries", self.name)
    }

    pub(super) fn owned_name(&self) -> String {
        format!("{}-owned", self.name)
    }

    /// The subject of the archive record. No owner can have this name.
    pub(super) fn archive_subject(&self) -> String {
        format!("{}.own.=archive", self.name)
    }

    /// The subject of a stream's entry in the list of an owner's streams.
    pub(super) fn owned_subject(&self, owner: &str, stream: &str) -> String {
        format!("{}.own.{}.{}", self.name, owner_tokens(owner), encode_token(stream))
    }

    /// The pattern of all entries of an owner, or of all owners with this first name part.
    pub(super) fn all_owned_subjects(&self, owner: &str) -> String {
        format!("{}.own.{}.>", self.name, owner_tokens(owner))
    }

    pub(super) fn stream_from_owned_subject(subject: &str) -> Option<String> {
        decode_token(subject.rsplit('.').next()?)
    }

    /// The subject of a stream's log.
    pub(super) fn log_subject(&self, stream: &str) -> String {
        format!("{}.log.{}.{}", self.name, self.shard_index(stream), encode_token(stream))
    }

    /// The pattern of all logs of a shard.
    pub(super) fn all_log_subjects(&self, shard: u16) -> String {
        format!("{}.log.{shard}.*", self.name)
    }

    /// The stream whose log has this subject. The last token is its name, as in an owner's list.
    pub(super) fn stream_from_log_subject(subject: &str) -> Option<String> {
        CellConfig::stream_from_owned_subject(subject)
    }

    /// The folder of a stream in an archive. Folder names are shorter than stream names may be.
    pub(super) fn archive_folder(stream: &str) -> String {
        let token = encode_token(stream);
        if token.len() <= FOLDER_BYTES_MAX {
            return token;
        }
        let digest = Sha256::digest(stream);
        let hex = digest.iter().map(|it| format!("{it:02x}"));
        // An encoded name never starts with `=` and a letter that is not a hex digit.
        format!("=sha256-{}", hex.collect::<String>())
    }

    pub(super) fn summary_subject(&self, stream: &str) -> String {
        format!("{}.sum.{}", self.name, encode_token(stream))
    }

    /// The subject of one part of a large event. It contains the epoch, so that the parts of two
    /// writers never mix.
    pub(super) fn blob_subject(&self, stream: &str, epoch: u64, seq: u64, part: usize) -> String {
        format!("{}.{epoch}.{seq}.{part}", self.blob_prefix(stream))
    }

    /// The pattern of all parts of large events of a stream.
    pub(super) fn all_blob_subjects(&self, stream: &str) -> String {
        format!("{}.>", self.blob_prefix(stream))
    }

    fn blob_prefix(&self, stream: &str) -> String {
        format!("{}.blob.{}.{}", self.name, self.shard_index(stream), encode_token(stream))
    }

    /// The stream whose summary has this subject.
    pub(super) fn stream_from_summary_subject(&self, subject: &str) -> Option<String> {
        let rest = subject.strip_prefix(&self.name)?;
        decode_token(rest.strip_prefix(".sum.")?)
    }

    /// The JetStream streams that must exist before the cell can be used.
    pub(super) fn stream_configs(&self) -> Vec<Config> {
        let log = |shard| {
            let subjects =
                ["log", "blob"].map(|it| format!("{}.{it}.{shard}.>", self.name)).to_vec();
            // For tombstones of deleted streams.
            let allow_message_ttl = true;
            Config {
                name: self.shard_log_name(shard),
                subjects,
                allow_message_ttl,
                ..self.stream_defaults()
            }
        };
        let summaries = Config {
            name: self.summaries_name(),
            subjects: vec![format!("{}.sum.>", self.name)],
            max_messages_per_subject: 1,
            ..self.stream_defaults()
        };
        let owned = Config {
            name: self.owned_name(),
            subjects: vec![format!("{}.own.>", self.name)],
            max_messages_per_subject: 1,
            ..self.stream_defaults()
        };
        (0..self.shards).map(log).chain([summaries, owned]).collect()
    }

    fn stream_defaults(&self) -> Config {
        Config {
            num_replicas: self.replicas,
            storage: StorageType::File,
            // A full stream refuses new messages instead of discarding old ones.
            discard: DiscardPolicy::New,
            duplicate_window: DUPLICATE_WINDOW,
            allow_direct: true,
            ..Config::default()
        }
    }
}

/// The name of an owner as subject tokens, one for each part between slashes.
fn owner_tokens(owner: &str) -> String {
    owner.split('/').map(encode_token).collect::<Vec<_>>().join(".")
}

/// Encodes any name as one subject token: special characters become `=` and two hex digits.
fn encode_token(name: &str) -> String {
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

fn decode_token(token: &str) -> Option<String> {
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

/// The FNV-1a hash. It must never change, because it selects the shard of a log.
pub fn fnv1a_hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shard_of_a_stream_never_changes() {
        let cell = CellConfig::default();
        assert_eq!(fnv1a_hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_hash(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(cell.log_subject("s-1"), "jackfield.log.36.s-1");
        assert_eq!(cell.log_name("s-1"), "jackfield-log-36");
    }

    #[test]
    fn archive_folder_never_changes_and_is_never_too_long() {
        assert_eq!(CellConfig::archive_folder("s-1.x"), "s-1=2ex");
        let long = CellConfig::archive_folder(&"x".repeat(201));
        assert!(long.starts_with("=sha256-84a0678c90937f5d"), "{long}");
        assert_ne!(long, CellConfig::archive_folder(&"x".repeat(202)));
        assert!(long.len() <= FOLDER_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn every_name_is_encoded_as_one_token_and_decoded_back(given in "\\PC{1,40}|[ .*>=\0\n]{1,8}") {
            let token = encode_token(&given);
            prop_assert!(!token.contains(['.', ' ', '*', '>', '\n', '\0']), "{token}");
            let subject = CellConfig::default().summary_subject(&given);
            prop_assert_eq!(CellConfig::default().stream_from_summary_subject(&subject), Some(given));
        }
    }
}
