//! Encrypts a message so that only the browser of a subscription can read it (RFC 8291, with the
//! content encoding `aes128gcm` of RFC 8188).

use super::EncryptionFailed;
use ring::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral},
    error::Unspecified,
    hkdf::{HKDF_SHA256, KeyType, Salt},
    rand::{SecureRandom as _, SystemRandom},
};

pub(super) const AUTH_SECRET_BYTES: usize = 16;
const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
/// The size of a record; a message is one record.
const RECORD_BYTES: u32 = 4096;
/// Ends the last record.
const LAST_RECORD_MARK: u8 = 2;

impl From<Unspecified> for EncryptionFailed {
    fn from(_: Unspecified) -> EncryptionFailed {
        EncryptionFailed
    }
}

/// Encrypts a message with a new key pair.
pub(super) fn encrypt_message(
    message: &[u8],
    browser_key: &[u8],
    auth_secret: &[u8; AUTH_SECRET_BYTES],
) -> Result<Vec<u8>, EncryptionFailed> {
    let random = SystemRandom::new();
    let private = EphemeralPrivateKey::generate(&ECDH_P256, &random)?;
    let public = private.compute_public_key()?;
    let mut salt = [0; SALT_BYTES];
    random.fill(&mut salt)?;
    let peer = UnparsedPublicKey::new(&ECDH_P256, browser_key);
    agree_ephemeral(private, &peer, |shared| {
        let keys = MessageKeys::derive(shared, auth_secret, browser_key, public.as_ref(), &salt)?;
        keys.seal(message, public.as_ref(), &salt)
    })?
}

/// The keys of one message.
struct MessageKeys {
    key: [u8; KEY_BYTES],
    nonce: [u8; NONCE_BYTES],
}

impl MessageKeys {
    /// Derives the keys from the secret that both sides share.
    fn derive(
        shared: &[u8],
        auth_secret: &[u8; AUTH_SECRET_BYTES],
        browser_key: &[u8],
        server_key: &[u8],
        salt: &[u8; SALT_BYTES],
    ) -> Result<MessageKeys, EncryptionFailed> {
        let info = [b"WebPush: info\0", browser_key, server_key];
        let input: [u8; 32] = expand(auth_secret, shared, &info)?;
        let key = expand(salt, &input, &[b"Content-Encoding: aes128gcm\0"])?;
        let nonce = expand(salt, &input, &[b"Content-Encoding: nonce\0"])?;
        Ok(MessageKeys { key, nonce })
    }

    /// The body: salt, record size, our public key and the encrypted record.
    fn seal(
        &self,
        message: &[u8],
        server_key: &[u8],
        salt: &[u8; SALT_BYTES],
    ) -> Result<Vec<u8>, EncryptionFailed> {
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &self.key)?);
        let mut record = [message, &[LAST_RECORD_MARK]].concat();
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record)?;
        let key_length = u8::try_from(server_key.len()).map_err(|_| EncryptionFailed)?;
        let size = RECORD_BYTES.to_be_bytes();
        Ok([&salt[..], &size, &[key_length], server_key, &record].concat())
    }
}

/// HKDF with SHA-256.
fn expand<const N: usize>(
    salt: &[u8],
    input: &[u8],
    info: &[&[u8]],
) -> Result<[u8; N], EncryptionFailed> {
    struct OutputLength(usize);
    impl KeyType for OutputLength {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut output = [0; N];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(input);
    extracted.expand(info, OutputLength(N))?.fill(&mut output)?;
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};

    fn bytes(text: &str) -> Vec<u8> {
        BASE64.decode(text).unwrap()
    }

    #[test]
    fn message_is_encrypted_as_in_the_example_of_rfc_8291() {
        let browser_key = bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        );
        let server_key = bytes(
            "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
        );
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let auth_secret = bytes("BTBZMqHH6r4Tts7J_aSIgg").try_into().unwrap();
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap();
        let keys = MessageKeys::derive(&shared, &auth_secret, &browser_key, &server_key, &salt);
        let keys = keys.unwrap();
        assert_eq!(BASE64.encode(keys.key), "oIhVW04MRdy2XN9CiKLxTg");
        assert_eq!(BASE64.encode(keys.nonce), "4h_95klXJ5E_qnoN");
        let message = b"When I grow up, I want to be a watermelon";
        let body = keys.seal(message, &server_key, &salt).unwrap();
        assert_eq!(
            BASE64.encode(body),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn browser_can_decrypt_the_message() {
        let random = SystemRandom::new();
        let private = EphemeralPrivateKey::generate(&ECDH_P256, &random).unwrap();
        let public = private.compute_public_key().unwrap();
        let auth_secret = [7; AUTH_SECRET_BYTES];
        let body = encrypt_message(b"hello", public.as_ref(), &auth_secret).unwrap();
        let salt: [u8; SALT_BYTES] = body[..16].try_into().unwrap();
        let (server_key, record) = (&body[21..86], &body[86..]);
        let peer = UnparsedPublicKey::new(&ECDH_P256, server_key);
        let keys = agree_ephemeral(private, &peer, |shared| {
            MessageKeys::derive(shared, &auth_secret, public.as_ref(), server_key, &salt)
        });
        let keys = keys.unwrap().unwrap();
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &keys.key).unwrap());
        let mut record = record.to_vec();
        let nonce = Nonce::assume_unique_for_key(keys.nonce);
        assert_eq!(key.open_in_place(nonce, Aad::empty(), &mut record).unwrap(), b"hello\x02");
    }
}
