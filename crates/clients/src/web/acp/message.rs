//! What the front reads in a message, and what it writes into one.

use bytes::Bytes;
use jackfield_wire::{Frame, Kind, acp};
use serde_json::{Map, Value, json, value::RawValue};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The seq of the event that a frame of the hub tells, if it tells one.
pub(super) fn seq(frame: &Frame) -> Option<u64> {
    if frame.method().is_some_and(|it| it.starts_with("_jackfield/")) {
        let params: BTreeMap<String, &RawValue> = serde_json::from_str(frame.params()?).ok()?;
        return params.get("seq")?.get().parse().ok();
    }
    let meta: Value = serde_json::from_str(frame.meta()?).ok()?;
    meta.pointer("/jackfield/seq")?.as_u64()
}

/// How far the log reached when a session was entered, if an answer says so.
pub(super) fn reached(answer: &Frame) -> Option<u64> {
    let result = answer.result().filter(|it| it.contains("jackfield"))?;
    let result: Value = serde_json::from_str(result).ok()?;
    result.pointer("/_meta/jackfield/seq")?.as_u64()
}

/// The client's hello, which asks for seqs as well if the client itself knows nothing of them: the
/// ids of events are made of them.
pub(super) fn with_seqs(hello: Frame) -> Frame {
    let params: Option<Value> = hello.params().and_then(|it| serde_json::from_str(it).ok());
    let Some(Value::Object(mut params)) = params else { return hello };
    let Some(capabilities) = object(&mut params, "clientCapabilities") else { return hello };
    let Some(meta) = object(capabilities, "_meta") else { return hello };
    if meta.contains_key("jackfield") {
        return hello;
    }
    meta.insert("jackfield".into(), json!({ "notices": false }));
    with_params(&hello, &Value::from(params).to_string()).unwrap_or(hello)
}

/// A member that is an object, or becomes one if it is not there; `None` if it is something else.
fn object<'a>(
    parent: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    parent.entry(name).or_insert_with(|| json!({})).as_object_mut()
}

/// The session a message of the client is about, which the header may say instead of the message;
/// then the message says it too when it is passed on. An error is what the client did wrong.
pub(super) fn about(
    frame: Frame,
    header: Option<&str>,
) -> Result<(Frame, Option<String>), &'static str> {
    let method = frame.method().map(Cow::into_owned).unwrap_or_default();
    // What is about a request, and what is an answer, names no session.
    if frame.kind() == Kind::Response || method.starts_with("$/") {
        return Ok((frame, None));
    }
    let named = frame.session_id().map(Cow::into_owned);
    match (header, named) {
        (None, None) if needs_session(&method) => Err("the header Acp-Session-Id is missing"),
        (None, None) => Ok((frame, None)),
        (Some(header), Some(named)) if header != named => {
            Err("Acp-Session-Id and params.sessionId are not the same")
        }
        (_, Some(named)) => Ok((frame, Some(named))),
        (Some(header), None) => {
            let params = frame.params().unwrap_or("{}").trim();
            let rest = params.strip_prefix('{').ok_or("Acp-Session-Id needs params of names")?;
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            let params = format!(r#"{{"sessionId":{}{comma}{rest}"#, Value::from(header));
            let named = with_params(&frame, &params).ok_or("params.sessionId is no string")?;
            Ok((named, Some(header.to_owned())))
        }
    }
}

fn needs_session(method: &str) -> bool {
    acp::method(method).is_some_and(|row| row.scope == acp::Scope::Session)
}

/// The same call with other params; `None` if they do not go together.
fn with_params(frame: &Frame, params: &str) -> Option<Frame> {
    let id = frame.id().map(|it| format!(r#""id":{it},"#)).unwrap_or_default();
    let method = Value::from(frame.method()?.as_ref());
    let text = format!(r#"{{"jsonrpc":"2.0",{id}"method":{method},"params":{params}}}"#);
    Frame::parse(text.into()).ok()
}

/// A notice that the stream goes on, and that something is missing before it.
pub(super) fn gap(session: Option<&str>, last: &str, why: &str) -> Bytes {
    let mut params = Map::new();
    if let Some(session) = session {
        params.insert("sessionId".into(), session.into());
    }
    params.insert("lastEventId".into(), last.into());
    params.insert("why".into(), why.into());
    Frame::notification("_jackfield/gap", &Value::from(params).to_string()).bytes().clone()
}

#[cfg(test)]
mod tests {
    use super::{about, reached, seq, with_seqs};
    use jackfield_wire::Frame;

    fn parse(text: &str) -> Frame {
        Frame::parse_str(text).unwrap()
    }

    #[test]
    fn the_seq_of_an_event_is_found_where_the_hub_writes_it() {
        for (text, expected) in [
            (r#"{"method":"session/update","params":{"_meta":{"jackfield":{"seq":7}}}}"#, Some(7)),
            (r#"{"method":"session/update","params":{"_meta":{"other":{"seq":7}}}}"#, None),
            (r#"{"method":"session/update","params":{"_meta":7,"seq":7}}"#, None),
            (r#"{"method":"_jackfield/event","params":{"seq":8,"frame":[{"seq":9}]}}"#, Some(8)),
            (r#"{"method":"_jackfield/gap","params":{}}"#, None),
            (r#"{"id":1,"result":{"_meta":{"jackfield":{"seq":7}}}}"#, None),
        ] {
            assert_eq!(seq(&parse(text)), expected, "{text}");
        }
        let answer = parse(r#"{"id":1,"result":{"modes":{},"_meta":{"jackfield":{"seq":7}}}}"#);
        assert_eq!(reached(&answer), Some(7));
        assert_eq!(reached(&parse(r#"{"id":1,"result":{"sessionId":"jackfield"}}"#)), None);
    }

    #[test]
    fn a_hello_asks_for_seqs_unless_it_says_what_it_wants() {
        let plain =
            parse(r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"x":1.50}}"#);
        let told = with_seqs(plain);
        let expected = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"x":1.5,"clientCapabilities":{"_meta":{"jackfield":{"notices":false}}}}}"#;
        assert_eq!(told.text(), expected);
        for params in [
            r#"{"clientCapabilities":{"_meta":{"jackfield":{}}}}"#,
            r#"{"clientCapabilities":7}"#,
            r#"{"clientCapabilities":{"_meta":[]}}"#,
            "[]",
        ] {
            let hello = Frame::request("1", "initialize", params);
            assert_eq!(with_seqs(hello.clone()), hello);
        }
    }

    #[test]
    fn the_header_names_the_session_of_a_message_that_does_not() {
        let of = |text: &str, header| about(parse(text), header);
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
    fn what_contradicts_itself_or_names_no_session_is_refused() {
        let named = r#"{"method":"session/cancel","params":{"sessionId":"s1"}}"#;
        assert!(about(parse(named), Some("s2")).is_err());
        assert!(about(parse(r#"{"id":1,"method":"session/fork","params":{}}"#), None).is_err());
        assert!(about(parse(r#"{"method":"session/cancel","params":[]}"#), Some("s1")).is_err());
        let odd = r#"{"method":"session/cancel","params":{"sessionId":7}}"#;
        assert!(about(parse(odd), Some("s1")).is_err());
    }

    #[test]
    fn what_is_about_a_request_or_an_answer_is_left_alone() {
        for text in [
            r#"{"method":"$/cancel_request","params":{"requestId":1}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":1,"method":"session/new","params":{}}"#,
        ] {
            let header = Some("s1").filter(|_| !text.contains("session/new"));
            assert_eq!(about(parse(text), header).unwrap(), (parse(text), None));
        }
    }
}
