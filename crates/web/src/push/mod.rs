//! Web Push: what is sent to the push service of a browser. Sending it is up to the daemon.
//!
//! Read in this order: [`PushSubscription`] is what a browser gives to its page, `endpoint` says
//! which push services are accepted, `encryption` encrypts a message for one subscription
//! (RFC 8291), [`PushKey`] signs requests (VAPID, RFC 8292). [`PushRequest`] is the result.

mod encryption;
mod endpoint;
mod vapid;

pub use endpoint::{EndpointPolicy, InvalidSubscription, is_public_ip};
pub use vapid::{PushKey, PushKeyError};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use encryption::{AUTH_SECRET_BYTES, encrypt_message};
use endpoint::PushEndpoint;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Push services accept bodies of 4096 bytes; this leaves room for header, padding and tag.
pub const PUSH_PAYLOAD_BYTES_MAX: usize = 3800;

/// Where and for whom messages are encrypted, as `PushSubscription.toJSON()` of a browser has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushSubscription {
    pub endpoint: String,
    /// The public key of the browser: 65 bytes in base64url.
    pub p256dh: String,
    /// The secret of the subscription: 16 bytes in base64url.
    pub auth: String,
}

/// How urgent a message is for a phone that saves power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushUrgency {
    Normal,
    High,
}

/// A request to a push service.
#[derive(Debug, PartialEq, Eq)]
pub struct PushRequest {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// Why a message cannot be encrypted: the browser's key is not a point of the curve, or the message
/// is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message cannot be encrypted for this subscription")]
pub struct EncryptionFailed;

impl PushSubscription {
    /// Checks that messages can be encrypted for it, and that its push service may be used.
    pub fn check(&self, policy: EndpointPolicy) -> Result<(), InvalidSubscription> {
        PushEndpoint::parse(&self.endpoint)?.check(policy)?;
        let (key, auth) = self.keys().ok_or(InvalidSubscription::Keys)?;
        encrypt_message(b"", &key, &auth).map_err(|_| InvalidSubscription::Keys)?;
        Ok(())
    }

    /// The request that delivers a message. Undelivered messages with the same topic replace each
    /// other.
    pub fn to_request(
        &self,
        message: &[u8],
        topic: &str,
        urgency: PushUrgency,
        key: &PushKey,
        unix_time: Duration,
    ) -> Result<PushRequest, EncryptionFailed> {
        if PUSH_PAYLOAD_BYTES_MAX < message.len() {
            return Err(EncryptionFailed);
        }
        let endpoint = PushEndpoint::parse(&self.endpoint).map_err(|_| EncryptionFailed)?;
        let (browser_key, auth) = self.keys().ok_or(EncryptionFailed)?;
        let body = encrypt_message(message, &browser_key, &auth)?;
        let urgency = if urgency == PushUrgency::High { "high" } else { "normal" };
        let headers = vec![
            ("authorization", key.authorization(&endpoint.origin(), unix_time)),
            ("content-encoding", "aes128gcm".to_owned()),
            ("content-type", "application/octet-stream".to_owned()),
            ("ttl", LIFETIME.as_secs().to_string()),
            ("topic", topic_name(topic)),
            ("urgency", urgency.to_owned()),
        ];
        Ok(PushRequest { url: self.endpoint.clone(), headers, body })
    }

    fn keys(&self) -> Option<(Vec<u8>, [u8; AUTH_SECRET_BYTES])> {
        let decode = |text: &str| BASE64.decode(text.trim_end_matches('=')).ok();
        let auth = decode(&self.auth)?.try_into().ok()?;
        Some((decode(&self.p256dh)?, auth))
    }
}

/// How long a push service keeps a message for a phone that is off.
const LIFETIME: Duration = Duration::from_hours(24);

/// A topic has at most 32 characters of base64url, and the push service learns nothing from it.
fn topic_name(topic: &str) -> String {
    use sha2::{Digest as _, Sha256};
    BASE64.encode(&Sha256::digest(topic.as_bytes())[..24])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The subscription of the example in RFC 8291.
    fn subscription(endpoint: &str) -> PushSubscription {
        PushSubscription {
            endpoint: endpoint.to_owned(),
            p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4".into(),
            auth: "BTBZMqHH6r4Tts7J_aSIgg".into(),
        }
    }

    #[test]
    fn request_has_what_push_services_require() {
        let dir = tempfile::tempdir().unwrap();
        let key = PushKey::create_or_read(&dir.path().join("key")).unwrap();
        let subscription =
            subscription("https://push.example.net/p/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV");
        assert_eq!(subscription.check(EndpointPolicy::PublicOnly), Ok(()));
        let time = Duration::from_secs(1_700_000_000);
        let make =
            |text: &[u8]| subscription.to_request(text, "s-1", PushUrgency::High, &key, time);
        let request = make(b"hello").unwrap();
        let header = |name: &str| {
            request.headers.iter().find(|it| it.0 == name).map(|it| it.1.as_str()).unwrap()
        };
        assert_eq!((header("ttl"), header("urgency")), ("86400", "high"));
        assert_eq!((header("content-encoding"), header("topic").len()), ("aes128gcm", 32));
        assert!(header("authorization").starts_with("vapid t="));
        assert!(request.body.len() < 200);
        assert_eq!(make(&[0; PUSH_PAYLOAD_BYTES_MAX]).unwrap().body.len(), 86 + 3800 + 17);
        assert_eq!(make(&[0; PUSH_PAYLOAD_BYTES_MAX + 1]), Err(EncryptionFailed));
    }

    #[test]
    fn subscription_with_invalid_keys_is_refused() {
        let good = subscription("https://push.example.net/x");
        let check = |it: PushSubscription| it.check(EndpointPolicy::PublicOnly);
        for p256dh in ["", "AAAA", &"A".repeat(87), "not base64!"] {
            let bad = PushSubscription { p256dh: p256dh.to_owned(), ..good.clone() };
            assert_eq!(check(bad), Err(InvalidSubscription::Keys), "{p256dh}");
        }
        let bad = PushSubscription { auth: "AAAA".to_owned(), ..good };
        assert_eq!(check(bad), Err(InvalidSubscription::Keys));
    }
}
