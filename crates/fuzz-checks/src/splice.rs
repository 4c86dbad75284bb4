//! Splices: what a spliced frame says of itself is what parsing its text again says, splicing back
//! restores the text, and our own member can always be added.
//!
//! Input: a session id, a newline, and a frame.

use jackfield_protocol::{Frame, Splice};

type Reading = [Option<String>; 7];

fn read(frame: &Frame) -> Reading {
    [
        frame.id().map(Into::into),
        frame.method().map(Into::into),
        frame.params().map(Into::into),
        frame.result().or(frame.error()).map(Into::into),
        frame.session_id().map(Into::into),
        frame.request_id().map(Into::into),
        frame.update().map(Into::into),
    ]
}

fn assert_sound(frame: &Frame) {
    let again = Frame::parse(frame.bytes().clone()).expect("a splice leaves a frame");
    assert_eq!(frame.kind(), again.kind());
    assert_eq!(read(frame), read(&again));
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((session, text)) = text.split_once('\n') else { return };
    let Ok(frame) = Frame::parse_str(text) else { return };

    let away = frame.spliced(Splice {
        id: Some("\"\\u0007 long id\""),
        session_id: Some(session),
        request_id: Some("-1.5e3"),
    });
    assert_sound(&away);
    assert_eq!(away.session_id().is_some(), frame.session_id().is_some());
    assert!(away.session_id().is_none_or(|id| id == session));

    // A session id comes back in our own spelling, everything else as it was.
    let back = away.spliced(Splice {
        id: frame.id(),
        session_id: frame.session_id().as_deref(),
        request_id: frame.request_id(),
    });
    assert_eq!(back, frame.with_session_id(&frame.session_id().unwrap_or_default()));

    for frame in [&frame, &away] {
        let with_meta = frame.with_meta(r#"{"seq":7}"#);
        assert_sound(&with_meta);
        assert_eq!(with_meta.with_meta(r#"{"seq":7}"#), with_meta);
        assert_sound(&with_meta.with_id("7"));
        let is_object = frame.params().is_some_and(|params| params.starts_with('{'));
        assert_eq!(is_object, with_meta.params().is_some_and(|it| it.contains(r#"{"seq":7}"#)));
    }
}
