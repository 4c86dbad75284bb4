//! Frames beside an independent reading of the same text by `serde_json`.

use super::{Frame, Kind, RoutingFields};
use crate::{fault::Fault, malformed::MalformedFrame, strategy};
use bytes::Bytes;
use proptest::prelude::*;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

type Raw = Box<RawValue>;

/// A field that is there but `null` is there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    #[serde(default, deserialize_with = "present")]
    id: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    method: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    params: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    session_id: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    pool: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    agent_id: Option<Raw>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default, deserialize_with = "present")]
    session_id: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    request_id: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    update: Option<Raw>,
    #[serde(default, deserialize_with = "present", rename = "_meta")]
    meta: Option<Raw>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Update {
    #[serde(default, deserialize_with = "present")]
    session_update: Option<Raw>,
}

#[derive(Deserialize, Default)]
struct Meta {
    #[expect(dead_code, reason = "only to see whether it stands twice")]
    #[serde(default, deserialize_with = "present")]
    jackfield: Option<Raw>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    #[serde(default, deserialize_with = "present")]
    session_id: Option<Raw>,
}

/// Reads the value if it is an object; `Err` if one of the fields stands twice.
fn object<T: DeserializeOwned + Default>(raw: Option<&Raw>) -> Result<T, serde_json::Error> {
    match raw {
        Some(raw) if raw.get().starts_with('{') => serde_json::from_str(raw.get()),
        _ => Ok(T::default()),
    }
}

fn text(raw: Option<&Raw>) -> Option<String> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// The whole reading, field by field; `None` if it is no message.
#[derive(Debug, PartialEq)]
struct Reading {
    kind: Kind,
    id: Option<String>,
    method: Option<String>,
    params: Option<String>,
    result: Option<String>,
    error: Option<String>,
    session_id: Option<String>,
    request_id: Option<String>,
    update: Option<String>,
    outer_session_id: Option<String>,
    pool: Option<String>,
    agent_id: Option<String>,
}

fn read_by_serde(json: &str) -> Option<Reading> {
    let it: Envelope = serde_json::from_str(json).ok()?;
    let params: Body = object(it.params.as_ref()).ok()?;
    let update: Update = object(params.update.as_ref()).ok()?;
    let _: Meta = object(params.meta.as_ref()).ok()?;
    let outcome: Outcome = object(it.result.as_ref()).ok()?;
    if it.id.as_ref().is_some_and(|id| id.get().starts_with(['t', 'f', '{', '['])) {
        return None;
    }
    if it.method.as_ref().is_some_and(|method| !method.get().starts_with('"')) {
        return None;
    }
    let is_null = |raw: &Option<Raw>| raw.as_ref().is_some_and(|raw| raw.get() == "null");
    let (has_result, has_error) = match (&it.result, &it.error) {
        (Some(_), Some(_)) if is_null(&it.error) => (true, false),
        (Some(_), Some(_)) if is_null(&it.result) => (false, true),
        (result, error) => (result.is_some(), error.is_some() && !is_null(error)),
    };
    let kind = match (&it.id, &it.method) {
        (_, Some(_)) if it.result.is_some() || it.error.is_some() => return None,
        (Some(_), Some(_)) => Kind::Request,
        (None, Some(_)) => Kind::Notification,
        (Some(_), None) if has_result != has_error => Kind::Response,
        _ => return None,
    };
    let raw = |raw: Option<Raw>, wanted| raw.filter(|_| wanted).map(|raw| raw.get().to_owned());
    let is_call = kind != Kind::Response;
    let session_id = if is_call {
        text(params.session_id.as_ref())
    } else {
        text(outcome.session_id.as_ref()).filter(|_| has_result)
    };
    Some(Reading {
        kind,
        id: raw(it.id, true),
        method: text(it.method.as_ref()),
        params: raw(it.params, is_call),
        result: raw(it.result, has_result),
        error: raw(it.error, has_error),
        session_id,
        request_id: raw(params.request_id, is_call),
        update: text(update.session_update.as_ref()).filter(|_| is_call),
        outer_session_id: text(it.session_id.as_ref()),
        pool: text(it.pool.as_ref()),
        agent_id: text(it.agent_id.as_ref()).filter(|_| text(it.pool.as_ref()).is_none()),
    })
}

fn read(frame: &Frame) -> Reading {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Reading {
        kind: frame.kind(),
        id: owned(frame.id()),
        method: owned(frame.method().as_deref()),
        params: owned(frame.params()),
        result: owned(frame.result()),
        error: owned(frame.error()),
        session_id: owned(frame.session_id().as_deref()),
        request_id: owned(frame.request_id()),
        update: owned(frame.update().as_deref()),
        outer_session_id: owned(frame.outer_session_id().as_deref()),
        pool: owned(frame.pool().as_deref()),
        agent_id: owned(frame.agent_id().as_deref()),
    }
}

proptest! {
    #[test]
    fn a_message_is_read_as_serde_reads_it(text in strategy::message()) {
        let frame = Frame::parse_str(&text);
        prop_assert_eq!(frame.as_ref().ok().map(read), read_by_serde(&text), "{:?}", frame);
    }

    #[test]
    fn a_changed_message_is_read_as_serde_reads_it(
        text in strategy::mutated(strategy::message()),
    ) {
        // Serde's struct reader stops at half a surrogate pair in a key; we carry it.
        prop_assume!(!text.contains("\\ud"));
        let frame = Frame::parse_str(&text);
        let on_one_line = text.replace(['\n', '\r'], " ");
        let expected = read_by_serde(&text).and_then(|_| read_by_serde(&on_one_line));
        prop_assert_eq!(frame.as_ref().ok().map(read), expected, "{:?}", frame);
    }

    #[test]
    fn parse_then_print_is_the_identity(text in strategy::message()) {
        if let Ok(frame) = Frame::parse_str(&text) {
            prop_assert_eq!(frame.text(), &text);
            prop_assert_eq!(frame.bytes(), text.as_bytes());
        }
    }

    #[test]
    fn bytes_that_are_no_message_are_refused_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        if let Ok(frame) = Frame::parse(Bytes::from(bytes.clone())) {
            prop_assert!(std::str::from_utf8(&bytes).is_ok());
            prop_assert_eq!(frame.text().len(), bytes.len());
        }
    }
}

fn parse(text: &str) -> Frame {
    Frame::parse_str(text).unwrap()
}

fn refusal(text: &str) -> MalformedFrame {
    Frame::parse_str(text).unwrap_err()
}

#[test]
fn a_number_and_a_string_that_look_alike_are_different_ids() {
    assert_eq!(parse(r#"{"id":7,"method":"m"}"#).id(), Some("7"));
    assert_eq!(parse(r#"{"id":"7","method":"m"}"#).id(), Some(r#""7""#));
    let large = parse(r#"{"id":18446744073709551616,"result":1}"#);
    assert_eq!(large.id(), Some("18446744073709551616"));
    assert_eq!(parse(r#"{"id":null,"method":"m"}"#).kind(), Kind::Request);
}

#[test]
fn an_id_that_is_no_number_string_or_null_is_refused() {
    for id in ["true", "{}", "[1]"] {
        let text = format!(r#"{{"id":{id},"method":"m"}}"#);
        assert!(matches!(refusal(&text), MalformedFrame::WrongType { key: "id", .. }), "{id}");
    }
}

#[test]
fn a_null_beside_an_answer_counts_as_absent() {
    let good = parse(r#"{"id":1,"result":{"sessionId":"s"},"error":null}"#);
    assert_eq!((good.result(), good.error()), (Some(r#"{"sessionId":"s"}"#), None));
    assert_eq!(good.session_id().as_deref(), Some("s"));
    let bad = parse(r#"{"id":1,"result":null,"error":{"code":1}}"#);
    assert_eq!((bad.result(), bad.error()), (None, Some(r#"{"code":1}"#)));
    assert_eq!(parse(r#"{"id":1,"result":null}"#).result(), Some("null"));
    assert_eq!(parse(r#"{"id":1,"result":null,"error":null}"#).result(), Some("null"));
}

#[test]
fn what_is_no_kind_of_message_is_refused() {
    for text in [
        "{}",
        r#"{"id":1}"#,
        r#"{"id":1,"error":null}"#,
        r#"{"result":1}"#,
        r#"{"id":1,"method":"m","result":1}"#,
        r#"{"method":"m","error":null}"#,
        r#"{"id":1,"result":1,"error":{"code":1}}"#,
    ] {
        assert_eq!(refusal(text), MalformedFrame::NoKind, "{text}");
    }
    assert!(matches!(refusal(r#"{"method":7}"#), MalformedFrame::WrongType { key: "method", .. }));
    assert!(matches!(refusal(r#"{"method":"\ud800"}"#), MalformedFrame::WrongType { .. }));
    assert_eq!(refusal("[]"), MalformedFrame::NotAnObject);
}

#[test]
fn a_routing_key_that_stands_twice_is_refused() {
    for (text, key) in [
        (r#"{"id":1,"id":1,"method":"m"}"#, "id"),
        (r#"{"method":"m","meth\u006fd":"n"}"#, "method"),
        (r#"{"method":"m","params":{},"params":{}}"#, "params"),
        (r#"{"id":1,"result":1,"result":1}"#, "result"),
        (r#"{"id":1,"error":1,"error":1}"#, "error"),
        (r#"{"method":"m","params":{"sessionId":"a","sessionId":"b"}}"#, "params.sessionId"),
        (r#"{"method":"m","params":{"requestId":1,"requestId":2}}"#, "params.requestId"),
        (r#"{"method":"m","params":{"update":1,"update":{}}}"#, "params.update"),
        (r#"{"method":"m","params":{"_meta":null,"_meta":{}}}"#, "params._meta"),
        (
            r#"{"method":"m","params":{"update":{"sessionUpdate":"a","sessionUpdate":1}}}"#,
            "params.update.sessionUpdate",
        ),
        (
            r#"{"method":"m","params":{"_meta":{"jackfield":1,"jackfield":2}}}"#,
            "params._meta.jackfield",
        ),
        (r#"{"id":1,"result":{"sessionId":"a","sessionId":"a"}}"#, "result.sessionId"),
    ] {
        assert_eq!(refusal(text), MalformedFrame::Twice { key }, "{text}");
    }
    // Elsewhere the same words mean nothing to us.
    parse(
        r#"{"method":"m","x":1,"x":2,"params":{"id":1,"id":2,"x":{"sessionId":1,"sessionId":2}}}"#,
    );
}

#[test]
fn names_are_unescaped_and_only_strings_count() {
    let text = r#"{"method":"session\/update","params":{"sessionId":"s\u00e9\ud83e\udd80","update":{"sessionUpdate":"a\"b"}}}"#;
    let frame = parse(text);
    assert_eq!(frame.method().as_deref(), Some("session/update"));
    assert_eq!(frame.session_id().as_deref(), Some("sé🦀"));
    assert_eq!(frame.update().as_deref(), Some("a\"b"));
    let frame = parse(r#"{"method":"m","params":{"sessionId":7,"update":{"sessionUpdate":null}}}"#);
    assert_eq!((frame.session_id(), frame.update()), (None, None));
}

#[test]
fn line_breaks_between_tokens_become_spaces_and_nothing_else_changes() {
    let frame = parse("{\r\n  \"method\": \"m\",\n  \"params\": {\"sessionId\":\n\"a\\nb\"}\n}\n");
    assert_eq!(frame.text(), "{    \"method\": \"m\",   \"params\": {\"sessionId\": \"a\\nb\"} } ");
    assert_eq!(frame.session_id().as_deref(), Some("a\nb"));
    assert_eq!(frame.params(), Some("{\"sessionId\": \"a\\nb\"}"));
}

#[test]
fn what_is_no_utf8_is_refused_with_its_place() {
    let bytes = Bytes::from_static(b"{\"method\":\"\xff\"}");
    let refusal = Frame::parse(bytes).unwrap_err();
    assert_eq!(refusal, MalformedFrame::NotUtf8 { at: 11 });
    assert_eq!(Fault::from(refusal), Fault::Parse);
    assert_eq!(Fault::from(MalformedFrame::NotAnObject).code(), -32600);
}

#[test]
fn our_own_frames_say_what_they_were_given() {
    let request = Frame::request("\"a\"", "x/\"y\"", "{\"sessionId\":\"s\"}");
    assert_eq!(
        request.text(),
        r#"{"jsonrpc":"2.0","id":"a","method":"x/\"y\"","params":{"sessionId":"s"}}"#
    );
    assert_eq!(request.method().as_deref(), Some("x/\"y\""));
    assert_eq!(request.session_id().as_deref(), Some("s"));
    let notification = Frame::notification("m", "[]");
    assert_eq!(notification.text(), r#"{"jsonrpc":"2.0","method":"m","params":[]}"#);
    assert_eq!(Frame::result_for("7", "null").result(), Some("null"));
    let error = Frame::error_for("null", &Fault::Parse);
    assert_eq!((error.kind(), error.id()), (Kind::Response, Some("null")));
    assert!(error.error().unwrap().starts_with(r#"{"code":-32700,"#));
}

#[test]
fn a_frame_is_small_and_equal_to_its_text() {
    assert!(size_of::<Frame>() <= 112);
    assert!(size_of::<RoutingFields>() <= 80);
    let (one, other) = (parse(r#"{"method":"m"}"#), parse(r#"{"method":"m"}"#));
    assert_eq!(one, other);
    assert_eq!(format!("{one:?}"), r#"Frame("{\"method\":\"m\"}")"#);
}

#[test]
fn id_that_would_be_expensive_to_keep_is_refused() {
    let frame = |digits: usize| {
        let id = "7".repeat(digits);
        Frame::parse_str(&format!(r#"{{"id":"{id}","method":"m"}}"#))
    };
    assert!(frame(1022).is_ok());
    let expected = "at most 1024 bytes long";
    assert_eq!(frame(1023).unwrap_err(), MalformedFrame::WrongType { key: "id", expected });
}
