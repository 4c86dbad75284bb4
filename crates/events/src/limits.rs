//! Bounds on what the summary of a session keeps, each with its reason.

/// The length of a title or a mode.
pub const TITLE_BYTES_MAX: usize = 4 * 1024;
/// The length of one setting, and their number.
pub const OPTION_BYTES_MAX: usize = 16 * 1024;
pub const OPTIONS_MAX: usize = 256;

/// Prompts with a key and no fingerprint that a session remembers. A client repeats a prompt within
/// moments of losing its connection.
pub const KEYED_PROMPTS_MAX: usize = 32;
/// The length of a key, which is an `Idempotency-Key` of HTTP or made by a gateway, and of a
/// fingerprint, which is a hash.
pub const KEY_BYTES_MAX: usize = 255;
pub const FINGERPRINT_BYTES_MAX: usize = 64;
/// Prompts with a key and a fingerprint that a session remembers, and for how long. They come over
/// HTTP: a program that lost its connection repeats them within a day, also after a restart.
pub const FINGERPRINTED_KEYS_MAX: usize = 256;
pub const KEY_LIFETIME_MS: u64 = 24 * 60 * 60 * 1000;
/// The length of an outcome that is kept with a key. A stop reason and some figures take a few hundred
/// bytes. There are more keys with a fingerprint, so less is kept for each of them.
pub const KEYED_OUTCOME_BYTES_MAX: usize = 4 * 1024;
pub const FINGERPRINTED_OUTCOME_BYTES_MAX: usize = 512;
