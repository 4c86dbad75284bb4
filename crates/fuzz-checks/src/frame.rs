//! The frame parser beside `serde_json`: the same texts are JSON to both, and both find the same
//! fields in them.

use bytes::Bytes;
use jackfield_protocol::{Frame, Kind, MalformedFrame};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// An object as its members in order; keys may repeat.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

fn members(json: Option<&str>) -> BTreeMap<String, &str> {
    let Some(json) = json.filter(|json| json.trim_start().starts_with('{')) else {
        return BTreeMap::new();
    };
    match serde_json::from_str::<Members<'_>>(json) {
        Ok(Members(members)) => members.into_iter().map(|(key, raw)| (key, raw.get())).collect(),
        // Half a surrogate pair in a key, which we carry and `String` cannot hold.
        Err(_) => BTreeMap::new(),
    }
}

fn text(json: Option<&&str>) -> Option<String> {
    json.and_then(|json| serde_json::from_str(json).ok())
}

fn depth(json: &str) -> usize {
    let (mut open, mut most, mut in_string, mut escape) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escape => escape = false,
            b'\\' if in_string => escape = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => open += 1,
            b'}' | b']' if !in_string => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let parsed = Frame::parse(Bytes::copy_from_slice(data));
    let Ok(json) = std::str::from_utf8(data) else {
        assert!(matches!(parsed, Err(MalformedFrame::NotUtf8 { .. })));
        return;
    };
    let is_json = serde_json::from_str::<IgnoredAny>(json).is_ok() && depth(json) <= 128;
    let is_json_here =
        !matches!(parsed, Err(MalformedFrame::NotJson { .. } | MalformedFrame::TooDeep));
    assert_eq!(is_json_here, is_json, "{parsed:?}");
    let Ok(frame) = parsed else { return };
    assert_eq!(frame.text(), json.replace(['\r', '\n'], " "));

    let envelope = members(Some(frame.text()));
    if envelope.is_empty() {
        return;
    }
    assert_eq!(frame.id(), envelope.get("id").copied());
    assert_eq!(frame.method().map(Into::into), text(envelope.get("method")));
    let body = match frame.kind() {
        Kind::Request | Kind::Notification => {
            assert_eq!(frame.params(), envelope.get("params").copied());
            members(frame.params())
        }
        Kind::Response => {
            let (result, error) = (envelope.get("result"), envelope.get("error"));
            assert_eq!(
                frame.result().or(frame.error()),
                match (result, error) {
                    (Some(&"null") | None, Some(error)) if *error != "null" => Some(*error),
                    _ => result.copied(),
                }
            );
            members(frame.result())
        }
    };
    if body.is_empty() {
        return;
    }
    assert_eq!(frame.session_id().map(Into::into), text(body.get("sessionId")));
    if frame.kind() != Kind::Response {
        assert_eq!(frame.request_id(), body.get("requestId").copied());
        let update = members(body.get("update").copied());
        if !update.is_empty() {
            assert_eq!(frame.update().map(Into::into), text(update.get("sessionUpdate")));
        }
    }
}
