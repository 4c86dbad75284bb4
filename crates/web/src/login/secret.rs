//! Random secrets, their hashes, and the comparison of both in constant time.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use subtle::ConstantTimeEq as _;

/// 128 bits cannot be guessed within the life of a link, and keep its QR code small.
const LINK_CODE_BYTES: usize = 16;
const DEVICE_SECRET_BYTES: usize = 32;

/// The hash of a secret. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SecretHash(String);

impl SecretHash {
    pub(super) fn of(secret: &str) -> SecretHash {
        SecretHash(BASE64.encode(Sha256::digest(secret.as_bytes())))
    }

    /// Whether this is the hash of the secret. The duration does not depend on the first difference.
    pub(super) fn matches(&self, secret: &str) -> bool {
        self.is_same(&SecretHash::of(secret))
    }

    pub(super) fn is_same(&self, other: &SecretHash) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(***)")
    }
}

pub(super) fn random_link_code() -> String {
    random_text::<LINK_CODE_BYTES>()
}

pub(super) fn random_device_secret() -> String {
    random_text::<DEVICE_SECRET_BYTES>()
}

/// An id that is not secret: `prefix` and 40 random bits.
pub(super) fn random_id(prefix: &str) -> String {
    let mut bytes = [0; 5];
    fill_random(&mut bytes);
    bytes.iter().fold(prefix.to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

fn random_text<const N: usize>() -> String {
    let mut bytes = [0; N];
    fill_random(&mut bytes);
    BASE64.encode(bytes)
}

fn fill_random(bytes: &mut [u8]) {
    // The token could not have been created without random bytes either.
    getrandom::fill(bytes).expect("the system provides random bytes");
}
