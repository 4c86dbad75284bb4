//! The browser's side of a push subscription: its keys, and decryption as RFC 8291 describes it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use ring::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{ECDH_P256, EphemeralPrivateKey, PublicKey, UnparsedPublicKey, agree_ephemeral},
    hmac,
    rand::SystemRandom,
};
use serde_json::{Value, json};

const AUTH_SECRET: [u8; 16] = *b"an auth secret..";

/// A browser whose key can be used once.
pub(super) struct TestBrowser {
    private: EphemeralPrivateKey,
    public: PublicKey,
}

impl TestBrowser {
    pub(super) fn new() -> TestBrowser {
        let private = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
        let public = private.compute_public_key().unwrap();
        TestBrowser { private, public }
    }

    /// What `PushSubscription.toJSON()` gives.
    pub(super) fn subscription(&self, endpoint: &str) -> Value {
        let keys =
            json!({ "p256dh": BASE64.encode(&self.public), "auth": BASE64.encode(AUTH_SECRET) });
        json!({ "endpoint": endpoint, "expirationTime": null, "keys": keys })
    }

    pub(super) fn decrypt(self, body: &[u8]) -> String {
        let (salt, server_key, record) = (&body[..16], &body[21..86], &body[86..]);
        let peer = UnparsedPublicKey::new(&ECDH_P256, server_key);
        let shared = agree_ephemeral(self.private, &peer, <[u8]>::to_vec).unwrap();
        let info = [b"WebPush: info\0", self.public.as_ref(), server_key, &[1]].concat();
        let input = hmac_sha256(&hmac_sha256(&AUTH_SECRET, &shared), &info);
        let secret = hmac_sha256(salt, &input);
        let key = hmac_sha256(&secret, b"Content-Encoding: aes128gcm\0\x01");
        let nonce = hmac_sha256(&secret, b"Content-Encoding: nonce\0\x01");
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key[..16]).unwrap());
        let nonce = Nonce::try_assume_unique_for_key(&nonce[..12]).unwrap();
        let mut record = record.to_vec();
        let text = key.open_in_place(nonce, Aad::empty(), &mut record).expect("it decrypts");
        String::from_utf8(text.strip_suffix(&[2]).expect("one record").to_vec()).unwrap()
    }
}

fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}
