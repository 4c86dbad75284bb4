//! Parses and changes the messages that pass through the web front.

use bytes::Bytes;
use jackfield_protocol::{
    Frame, Kind,
    acp::{Method, MethodStability, Scope},
};
use serde_json::{Map, Value, json, value::RawValue};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The sequence number of a frame of the hub, if it is an event of the log.
pub(super) fn sequence_number(frame: &Frame) -> Option<u64> {
    if frame.is_control() {
        let params: BTreeMap<String, &RawValue> = serde_json::from_str(frame.params()?).ok()?;
        return params.get("seq")?.get().parse().ok();
    }
    let meta: Value = serde_json::from_str(frame.meta()?).ok()?;
    meta.pointer("/jackfield/seq")?.as_u64()
}

/// The last sequence number of the log, if the response to an attach contains it.
pub(super) fn attached_at(answer: &Frame) -> Option<u64> {
    let result = answer.result().filter(|it| it.contains("jackfield"))?;
    let result: Value = serde_json::from_str(result).ok()?;
    result.pointer("/_meta/jackfield/seq")?.as_u64()
}

/// Requests sequence numbers in the client's `initialize`, unless the client sets our capabilities
/// itself. The ids of events consist of them.
pub(super) fn request_sequence_numbers(initialize: Frame) -> Frame {
    let params: Option<Value> = initialize.params().and_then(|it| serde_json::from_str(it).ok());
    let Some(Value::Object(mut params)) = params else { return initialize };
    let Some(capabilities) = object_member(&mut params, "clientCapabilities") else {
        return initialize;
    };
    let Some(meta) = object_member(capabilities, "_meta") else { return initialize };
    if meta.contains_key("jackfield") {
        return initialize;
    }
    meta.insert("jackfield".into(), json!({ "notices": false }));
    with_params(&initialize, &Value::from(params).to_string()).unwrap_or(initialize)
}

/// A member that is an object, or is created if it is missing; `None` if it is something else.
fn object_member<'a>(
    parent: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    parent.entry(name).or_insert_with(|| json!({})).as_object_mut()
}

/// Determines the session of a client's message. If only the header names it, it is added to the
/// message. An error describes the client's mistake.
pub(super) fn resolve_session(
    frame: Frame,
    header: Option<&str>,
) -> Result<(Frame, Option<String>), &'static str> {
    let method = frame.method().map(Cow::into_owned).unwrap_or_default();
    // Responses and messages about a request name no session.
    if frame.kind() == Kind::Response || method.starts_with("$/") {
        return Ok((frame, None));
    }
    let named = frame.session_id().map(Cow::into_owned);
    match (header, named) {
        (None, None) if needs_session(&method) => Err("the header Acp-Session-Id is missing"),
        (None, None) => Ok((frame, None)),
        (Some(header), Some(named)) if header != named => {
            Err("Acp-Session-Id and params.sessionId differ")
        }
        (_, Some(named)) => Ok((frame, Some(named))),
        (Some(header), None) => {
            let params = frame.params().unwrap_or("{}").trim();
            let rest = params.strip_prefix('{').ok_or("Acp-Session-Id requires params by name")?;
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            let params = format!(r#"{{"sessionId":{}{comma}{rest}"#, Value::from(header));
            let named = with_params(&frame, &params).ok_or("params.sessionId is not a string")?;
            Ok((named, Some(header.to_owned())))
        }
    }
}

fn needs_session(method: &str) -> bool {
    // Control methods may name their session in the params alone.
    let row = Method::from_name(method).map(Method::row);
    row.is_some_and(|it| it.scope == Scope::Session && it.stability != MethodStability::Ours)
}

/// The same call with other params; `None` if the result is not a frame.
fn with_params(frame: &Frame, params: &str) -> Option<Frame> {
    let id = frame.id().map(|it| format!(r#""id":{it},"#)).unwrap_or_default();
    let method = Value::from(frame.method()?.as_ref());
    let text = format!(r#"{{"jsonrpc":"2.0",{id}"method":{method},"params":{params}}}"#);
    Frame::parse(text.into()).ok()
}

/// A notification that frames are missing before the next one.
pub(super) fn gap_notification(session: Option<&str>, last: &str, why: &str) -> Bytes {
    let mut params = Map::new();
    if let Some(session) = session {
        params.insert("sessionId".into(), session.into());
    }
    params.insert("lastEventId".into(), last.into());
    params.insert("why".into(), why.into());
    Frame::notification(Method::ControlGap.name(), &Value::from(params).to_string()).bytes().clone()
}

#[cfg(test)]
mod tests {
    use super::{attached_at, request_sequence_numbers, resolve_session, sequence_number};
    use jackfield_protocol::Frame;

    fn parse(text: &str) -> Frame {
        Frame::parse_str(text).unwrap()
    }

    #[test]
    fn sequence_number_is_found_where_the_hub_writes_it() {
        for (text, expected) in [
            (r#"{"method":"session/update","params":{"_meta":{"jackfield":{"seq":7}}}}"#, Some(7)),
            (r#"{"method":"session/update","params":{"_meta":{"other":{"seq":7}}}}"#, None),
            (r#"{"method":"session/update","params":{"_meta":7,"seq":7}}"#, None),
            (r#"{"method":"_jackfield/event","params":{"seq":8,"frame":[{"seq":9}]}}"#, Some(8)),
            (r#"{"method":"_jackfield/gap","params":{}}"#, None),
            (r#"{"id":1,"result":{"_meta":{"jackfield":{"seq":7}}}}"#, None),
        ] {
            assert_eq!(sequence_number(&parse(text)), expected, "{text}");
        }
        let answer = parse(r#"{"id":1,"result":{"modes":{},"_meta":{"jackfield":{"seq":7}}}}"#);
        assert_eq!(attached_at(&answer), Some(7));
        assert_eq!(attached_at(&parse(r#"{"id":1,"result":{"sessionId":"jackfield"}}"#)), None);
    }

    #[test]
    fn initialize_requests_sequence_numbers_unless_it_sets_them() {
        let plain =
            parse(r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"x":1.50}}"#);
        let changed = request_sequence_numbers(plain);
        let expected = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"x":1.5,"clientCapabilities":{"_meta":{"jackfield":{"notices":false}}}}}"#;
        assert_eq!(changed.text(), expected);
        for params in [
            r#"{"clientCapabilities":{"_meta":{"jackfield":{}}}}"#,
            r#"{"clientCapabilities":7}"#,
            r#"{"clientCapabilities":{"_meta":[]}}"#,
            "[]",
        ] {
            let initialize = Frame::request("1", "initialize", params);
            assert_eq!(request_sequence_numbers(initialize.clone()), initialize);
        }
    }

    #[test]
    fn header_names_the_session_of_a_message_without_one() {
        let of = |text: &str, header| resolve_session(parse(text), header);
        let prompt = r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"a":1}}"#;
        let (frame, session) = of(prompt, Some("s\"1")).unwrap();
        assert_eq!(session.as_deref(), Some("s\"1"));
        assert_eq!(frame.params(), Some(r#"{"sessionId":"s\"1","a":1}"#));
        let (frame, _) = of(r#"{"method":"session/cancel"}"#, Some("s1")).unwrap();
        assert_eq!(frame.params(), Some(r#"{"sessionId":"s1"}"#));
        let named = r#"{"method":"session/cancel","params":{"sessionId":"s1"}}"#;
        for header in [None, Some("s1")] {
            let (frame, session) = of(named, header).unwrap();
            assert_eq!((frame.text(), session.as_deref()), (named, Some("s1")));
        }
    }

    #[test]
    fn contradictory_or_missing_session_is_refused() {
        let named = r#"{"method":"session/cancel","params":{"sessionId":"s1"}}"#;
        assert!(resolve_session(parse(named), Some("s2")).is_err());
        assert!(
            resolve_session(parse(r#"{"id":1,"method":"session/fork","params":{}}"#), None)
                .is_err()
        );
        assert!(
            resolve_session(parse(r#"{"method":"session/cancel","params":[]}"#), Some("s1"))
                .is_err()
        );
        let odd = r#"{"method":"session/cancel","params":{"sessionId":7}}"#;
        assert!(resolve_session(parse(odd), Some("s1")).is_err());
    }

    #[test]
    fn responses_and_messages_about_requests_are_unchanged() {
        for text in [
            r#"{"method":"$/cancel_request","params":{"requestId":1}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":1,"method":"session/new","params":{}}"#,
        ] {
            let header = Some("s1").filter(|_| !text.contains("session/new"));
            assert_eq!(resolve_session(parse(text), header).unwrap(), (parse(text), None));
        }
    }
}
