//! Removes the member that a hub has added to a frame: a client that did not ask for it gets the agent's bytes.

use bytes::Bytes;
use jackfield_protocol::Frame;

const META_MEMBER: &str = r#""_meta":"#;
const OWN_MEMBER: &str = r#""jackfield":"#;

/// The frame without `params._meta.jackfield`, which the hub adds as the first member. A `_meta` that the hub has created
/// is removed, too; in place of one without members there is `null` afterwards.
pub(super) fn without_hub_meta(frame: &Frame) -> Bytes {
    let text = frame.text();
    let Some(meta) = frame.meta().filter(|it| it.starts_with(&format!("{{{OWN_MEMBER}"))) else {
        return frame.bytes().clone();
    };
    let meta_start = meta.as_ptr().addr() - text.as_ptr().addr();
    let value_start = meta_start + 1 + OWN_MEMBER.len();
    let Some(value_length) = first_value_length(&text[value_start..]) else {
        return frame.bytes().clone();
    };
    let value_end = value_start + value_length;
    let meta_end = meta_start + meta.len();
    let before = &text[..meta_start];
    let (start, end) = match before.strip_suffix(META_MEMBER) {
        _ if value_end + 1 != meta_end => (meta_start + 1, value_end),
        Some(before) if before.ends_with('{') => (before.len(), meta_end),
        // The hub creates `_meta` as the first member. This one was there, and most often it was null.
        _ => return format!("{before}null{}", &text[meta_end..]).into(),
    };
    let rest = text[end..].strip_prefix(',').unwrap_or(&text[end..]);
    format!("{}{rest}", &text[..start]).into()
}

/// The length of the JSON value at the start of a text.
fn first_value_length(text: &str) -> Option<usize> {
    let mut values =
        serde_json::Deserializer::from_str(text).into_iter::<&serde_json::value::RawValue>();
    values.next()?.ok().map(|it| it.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_of_the_hub_is_removed_and_all_other_bytes_are_kept() {
        for params in [
            r#"{"sessionId":"s-1","update":{ "n":1.50 }}"#,
            "{}",
            r#"{"_meta":{"a": 1},"sessionId":"s-1"}"#,
            r#"{"sessionId":"s-1","_meta":{"a": 1, "b":{"jackfield":2}}}"#,
            r#"{"sessionId":"s-1","_meta":null}"#,
            r#"{"sessionId":"s-1","_meta":null,"update":{"_meta":null}}"#,
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#);
            let frame = Frame::parse_str(&text).unwrap();
            let marked = frame.with_meta(r#"{"seq":7,"at":1,"turn":1,"key":"a}\"b"}"#);
            assert_ne!(marked, frame);
            assert_eq!(without_hub_meta(&marked), text);
            assert_eq!(without_hub_meta(&frame), text, "nothing to remove");
        }
    }
}
