//! Adds and removes `sessionId` beside `params`; every other byte is kept.

use crate::{
    frame::Frame,
    quote::quote,
    scan::TextSpan,
    splice::{EditContent, TextEdit},
};
use std::str;

impl Frame {
    /// The same message with `sessionId` beside `params` (plain text), as its first member; no
    /// change if it has one.
    #[must_use]
    pub fn with_outer_session_id(&self, id: &str) -> Frame {
        const KEY: &str = r#""sessionId":"#;
        if self.fields.outer_session_id.is_some() {
            return self.clone();
        }
        let mut value = Vec::with_capacity(id.len() + 2);
        let has_escapes = quote(&mut value, id);
        let value = str::from_utf8(&value).expect("a quoted text is text");
        let brace = self.text.iter().position(|it| *it == b'{').expect("a frame is an object");
        let at = TextSpan::new(brace + 1, brace + 1);
        let pieces = [KEY, value, ","];
        let mut frame = self.rewrite(&[TextEdit { at, new: EditContent::Json(&pieces) }]);
        let start = brace + 1 + KEY.len();
        frame.fields.outer_session_id = TextSpan::new(start, start + value.len());
        frame.fields.has_escapes |= has_escapes;
        frame
    }

    /// The same message without `sessionId` beside `params`.
    #[must_use]
    pub fn without_outer_session_id(&self) -> Frame {
        let value = self.fields.outer_session_id;
        if !value.is_some() {
            return self.clone();
        }
        let at = self.member_span(value);
        let mut frame = self.rewrite(&[TextEdit { at, new: EditContent::Json(&[]) }]);
        frame.fields.outer_session_id = TextSpan::default();
        frame
    }

    /// The member of the outer object with this value, and one comma beside it. A frame has other
    /// members, too.
    fn member_span(&self, value: TextSpan) -> TextSpan {
        let (before, after) =
            (&self.text[..value.start as usize], &self.text[value.end as usize..]);
        let find_quote = |text: &[u8]| text.iter().rposition(|it| *it == b'"');
        // The key has no quotes inside, however it is escaped.
        let key = find_quote(before).and_then(|closing| find_quote(&before[..closing]));
        let mut start = key.expect("a value has a key");
        let mut end = value.end as usize;
        let is_token = |it: &u8| !it.is_ascii_whitespace();
        match after.iter().position(is_token) {
            Some(at) if after[at] == b',' => end += at + 1,
            _ => start = before[..start].iter().rposition(is_token).expect("a comma is there"),
        }
        TextSpan::new(start, end)
    }
}

#[cfg(test)]
mod tests {
    use crate::splice::tests::{assert_sound, parse, valid_message};
    use proptest::prelude::*;
    use serde_json::Value;

    proptest! {
        #[test]
        fn outer_session_id_can_be_exchanged_in_every_frame(frame in valid_message()) {
            let bare = frame.without_outer_session_id();
            assert_sound(&bare);
            prop_assert_eq!(bare.outer_session_id(), None);
            // One that is not a string stays where it is.
            let lenient = bare.text().replace("e999", "e1");
            let members: Value = serde_json::from_str(&lenient).unwrap();
            prop_assume!(members.get("sessionId").is_none());
            let restored = bare.with_outer_session_id("s\n");
            assert_sound(&restored);
            prop_assert_eq!(restored.without_outer_session_id(), bare);
        }
    }

    #[test]
    fn outer_session_id_is_removed_and_restored() {
        for (text, expected) in [
            (r#"{"sessionId":"s","id":1,"method":"m"}"#, r#"{"id":1,"method":"m"}"#),
            (r#"{ "id":1, "sessionId" : "s" , "method":"m"}"#, r#"{ "id":1,  "method":"m"}"#),
            (r#"{"id":1,"method":"m" , "session\u0049d":"\u0073" }"#, r#"{"id":1,"method":"m"  }"#),
            (r#"{"id":1,"method":"m"}"#, r#"{"id":1,"method":"m"}"#),
        ] {
            let bare = parse(text).without_outer_session_id();
            assert_eq!(bare.text(), expected);
            assert_sound(&bare);
            let restored = bare.with_outer_session_id("é\"");
            assert_eq!(restored.outer_session_id().as_deref(), Some("é\""));
            assert_sound(&restored);
            assert_eq!(restored.with_outer_session_id("other"), restored, "it has one");
        }
    }
}
