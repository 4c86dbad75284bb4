//! The key pair that identifies this daemon to push services (VAPID, RFC 8292).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jackfield_private_files as private_files;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::json;
use std::{fmt, fs, io, path::Path, path::PathBuf, time::Duration};

/// How long a signature is valid; push services accept up to 24 hours.
const SIGNATURE_LIFETIME: Duration = Duration::from_hours(12);
/// Required by some push services. A daemon has no address of its own.
const SUBJECT: &str = "mailto:jackfield@example.org";

/// The key pair. `Debug` does not show it.
pub struct PushKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

#[derive(Debug, thiserror::Error)]
pub enum PushKeyError {
    #[error("the key for Web Push in `{}` cannot be read or written", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` contains no key for Web Push: remove it; a new one is created", path.display())]
    Invalid { path: PathBuf },
}

impl PushKey {
    /// Reads the key in this private file, or creates it. With another key, browsers have to
    /// subscribe again.
    pub fn create_or_read(path: &Path) -> Result<PushKey, PushKeyError> {
        let failed = |source| PushKeyError::Io { path: path.to_owned(), source };
        let invalid = || PushKeyError::Invalid { path: path.to_owned() };
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = match fs::read(path) {
            Ok(document) => document,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let created = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
                let created = created.map_err(|_| failed(io::Error::other("no random bytes")))?;
                private_files::replace_file(path, created.as_ref()).map_err(failed)?;
                created.as_ref().to_vec()
            }
            Err(error) => return Err(failed(error)),
        };
        let pair =
            EcdsaKeyPair::from_pkcs8(algorithm, &document, &random).map_err(|_| invalid())?;
        Ok(PushKey { pair, random })
    }

    /// The public key in base64url, as `applicationServerKey` of a browser.
    pub fn public_key(&self) -> String {
        BASE64.encode(self.pair.public_key())
    }

    /// The value of `Authorization` for a push service with this origin.
    pub(super) fn authorization(&self, origin: &str, unix_time: Duration) -> String {
        let expires = (unix_time + SIGNATURE_LIFETIME).as_secs();
        let head = json!({ "typ": "JWT", "alg": "ES256" }).to_string();
        let claims = json!({ "aud": origin, "exp": expires, "sub": SUBJECT }).to_string();
        let signed = format!("{}.{}", BASE64.encode(head), BASE64.encode(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes());
        let signature = signature.expect("the system provides random bytes");
        format!("vapid t={signed}.{}, k={}", BASE64.encode(signature), self.public_key())
    }
}

impl fmt::Debug for PushKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PushKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn signature_names_the_push_service_and_expires() {
        let dir = tempfile::tempdir().unwrap();
        let key = PushKey::create_or_read(&dir.path().join("key")).unwrap();
        let header = key.authorization("https://push.example.net", Duration::from_secs(1000));
        let (token, public) = header.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        let decode = |text: &str| BASE64.decode(text).unwrap();
        assert_eq!(decode(public).len(), 65);
        let (signed, signature) = token.rsplit_once('.').unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, decode(public))
            .verify(signed.as_bytes(), &decode(signature))
            .unwrap();
        let claims: Value =
            serde_json::from_slice(&decode(signed.split_once('.').unwrap().1)).unwrap();
        assert_eq!(
            (&claims["aud"], &claims["exp"]),
            (&json!("https://push.example.net"), &json!(44_200))
        );
    }

    #[test]
    fn key_is_private_and_stays_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/key");
        let first = PushKey::create_or_read(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(PushKey::create_or_read(&path).unwrap().public_key(), first.public_key());
        fs::write(&path, "no key").unwrap();
        let error = PushKey::create_or_read(&path).unwrap_err().to_string();
        assert!(error.contains("remove it"), "{error}");
    }
}
