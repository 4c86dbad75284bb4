//! The key of a request that may be repeated, `params._meta.jackfield.key`, and beside it a hash of the
//! request, `params._meta.jackfield.fingerprint`.

use crate::limits::{FINGERPRINT_BYTES_MAX, KEY_BYTES_MAX};
use jackfield_protocol::Frame;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Identifies a `session/new` or a `session/prompt` when it is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    pub key: Arc<str>,
    /// Differs if the requests differ. A key without it is valid in its session only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Arc<str>>,
}

impl RequestKey {
    /// The key of a request, or the reason why it is invalid.
    pub fn from_frame(request: &Frame) -> Result<Option<RequestKey>, String> {
        let Some(meta) = request.meta() else { return Ok(None) };
        RequestKey::from_meta(&serde_json::from_str(meta).unwrap_or_default())
    }

    /// The key in the params of `session/new`.
    pub(crate) fn from_params(params: &str) -> Option<RequestKey> {
        let params: Value = serde_json::from_str(params).ok()?;
        RequestKey::from_meta(params.get("_meta")?).ok()?
    }

    fn from_meta(meta: &Value) -> Result<Option<RequestKey>, String> {
        let extension = &meta["jackfield"];
        let Some(key) = extension.get("key") else { return Ok(None) };
        let key = short_text(key, "key", KEY_BYTES_MAX)?;
        let fingerprint = extension.get("fingerprint");
        let fingerprint =
            fingerprint.map(|it| short_text(it, "fingerprint", FINGERPRINT_BYTES_MAX));
        Ok(Some(RequestKey { key, fingerprint: fingerprint.transpose()? }))
    }

    /// Whether both may belong to one request: the keys are equal and the fingerprints do not differ.
    pub fn matches(&self, other: &RequestKey) -> bool {
        let fingerprints = self.fingerprint.as_ref().zip(other.fingerprint.as_ref());
        self.key == other.key && fingerprints.is_none_or(|(one, other)| one == other)
    }
}

fn short_text(value: &Value, name: &str, max: usize) -> Result<Arc<str>, String> {
    let text = value.as_str().filter(|it| (1..=max).contains(&it.len()));
    let why = || format!("`_meta.jackfield.{name}` must be a text of 1 to {max} bytes");
    text.map(Into::into).ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(ours: &str) -> Result<Option<RequestKey>, String> {
        let params = format!(r#"{{"_meta":{{"jackfield":{{{ours}}}}}}}"#);
        let text = format!(r#"{{"id":1,"method":"session/prompt","params":{params}}}"#);
        RequestKey::from_frame(&Frame::parse_str(&text).unwrap())
    }

    #[test]
    fn keys_and_fingerprints_are_texts_of_bounded_length() {
        let plain = RequestKey { key: "a".into(), fingerprint: None };
        assert_eq!(parse(r#""key":"a""#), Ok(Some(plain.clone())));
        let whole = RequestKey { fingerprint: Some("f".into()), ..plain };
        assert_eq!(parse(r#""key":"a","fingerprint":"f""#), Ok(Some(whole)));
        assert_eq!(parse(r#""fingerprint":"f""#), Ok(None));
        let longest = "x".repeat(255);
        assert!(parse(&format!(r#""key":"{longest}""#)).is_ok());
        for bad in ["1", "\"\"", "null", &format!("\"{longest}x\"")] {
            let why = parse(&format!(r#""key":{bad}"#)).unwrap_err();
            assert!(why.contains("1 to 255 bytes"), "{why}");
        }
        let why = parse(r#""key":"a","fingerprint":7"#).unwrap_err();
        assert!(why.contains("`_meta.jackfield.fingerprint`"), "{why}");
    }

    #[test]
    fn requests_differ_only_if_both_have_a_fingerprint() {
        let key = |fingerprint: Option<&str>| RequestKey {
            key: "a".into(),
            fingerprint: fingerprint.map(Into::into),
        };
        assert!(key(None).matches(&key(Some("f"))) && key(Some("f")).matches(&key(Some("f"))));
        assert!(!key(Some("f")).matches(&key(Some("g"))));
    }
}
