//! Swaps ids in a frame's text, and adds our own member; every other byte is kept.
//!
//! A splice never parses the frame again: it writes the new text once and moves the spans along.

use crate::{
    frame::{Frame, FrameShape},
    quote::quote,
    scan::{TextSpan, is_id, is_value, jackfield_in},
};
use bytes::Bytes;

/// What to put in place of a frame's ids. A field the frame does not have is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Splice<'a> {
    /// JSON text.
    pub id: Option<&'a str>,
    /// Plain text; it is quoted and escaped here.
    pub session_id: Option<&'a str>,
    /// JSON text.
    pub request_id: Option<&'a str>,
}

/// A frame has three ids that can be swapped.
const EDITS_MAX: usize = 3;

/// One replaced span of the text.
#[derive(Clone, Copy)]
pub(crate) struct TextEdit<'a> {
    pub(crate) at: TextSpan,
    pub(crate) new: EditContent<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum EditContent<'a> {
    /// Written as it is, one piece after the other.
    Json(&'a [&'a str]),
    /// Written as a JSON string.
    Plain(&'a str),
}

impl EditContent<'_> {
    /// Exact unless the text needs escapes, so that the copy is one allocation of the right size.
    fn len(self) -> usize {
        match self {
            EditContent::Json(pieces) => pieces.iter().map(|it| it.len()).sum(),
            EditContent::Plain(text) => text.len() + 2,
        }
    }

    /// Says whether a name was written with escapes.
    fn write(self, out: &mut Vec<u8>) -> bool {
        match self {
            EditContent::Json(pieces) => {
                for piece in pieces {
                    out.extend_from_slice(piece.as_bytes());
                }
                false
            }
            EditContent::Plain(text) => quote(out, text),
        }
    }
}

impl Frame {
    /// The same message under another id (JSON text); a notification stays as it is.
    #[must_use]
    pub fn with_id(&self, id: &str) -> Frame {
        self.spliced(Splice { id: Some(id), ..Splice::default() })
    }

    /// The same message about another session (plain text); no change if it names none.
    #[must_use]
    pub fn with_session_id(&self, id: &str) -> Frame {
        self.spliced(Splice { session_id: Some(id), ..Splice::default() })
    }

    /// Several ids in one copy.
    #[must_use]
    pub fn spliced(&self, splice: Splice<'_>) -> Frame {
        assert!(splice.id.is_none_or(is_id), "{:?} is no JSON-RPC id", splice.id);
        // What a peer wrote there may be anything, and must find its way back.
        let request_id = splice.request_id;
        assert!(request_id.is_none_or(is_value), "{request_id:?} is no bare JSON value");
        let fields = &self.fields;
        let wanted = [
            splice.id.map(|_| (fields.id, EditContent::Json(splice.id.as_slice()))),
            splice.session_id.map(|text| (fields.session_id, EditContent::Plain(text))),
            splice
                .request_id
                .map(|_| (fields.request_id, EditContent::Json(splice.request_id.as_slice()))),
        ];
        let mut edits =
            [TextEdit { at: TextSpan::default(), new: EditContent::Json(&[]) }; EDITS_MAX];
        let mut count = 0;
        for (at, new) in wanted.into_iter().flatten().filter(|(at, _)| at.is_some()) {
            edits[count] = TextEdit { at, new };
            count += 1;
        }
        edits[..count].sort_unstable_by_key(|edit| edit.at.start);
        self.rewrite(&edits[..count])
    }

    /// Puts `"jackfield":<member>` into `params._meta`, in place of one that is there; `member` is
    /// JSON text. A `_meta` that is missing, or no object, is made one. No change if params is no
    /// object.
    #[must_use]
    pub fn with_meta(&self, member: &str) -> Frame {
        assert!(is_value(member), "`{member}` is no bare JSON value on one line");
        let is_call = matches!(self.fields.shape, FrameShape::Request | FrameShape::Notification);
        let params = self.fields.body;
        let Some(b'{') = params.of(&self.text).filter(|_| is_call).map(|it| it[0]) else {
            return self.clone();
        };
        let Some(meta) = self.json(self.fields.meta) else {
            return self.with_new_meta(member);
        };
        let at = self.fields.meta.start as usize;
        if !meta.starts_with('{') {
            let pieces = [r#"{"jackfield":"#, member, "}"];
            return self
                .rewrite(&[TextEdit { at: self.fields.meta, new: EditContent::Json(&pieces) }]);
        }
        let old = jackfield_in(meta);
        if old.is_some() {
            let span = TextSpan::new(at + old.start as usize, at + old.end as usize);
            return self.rewrite(&[TextEdit { at: span, new: EditContent::Json(&[member]) }]);
        }
        let pieces = [r#""jackfield":"#, member, separator(meta)];
        self.rewrite(&[TextEdit {
            at: TextSpan::new(at + 1, at + 1),
            new: EditContent::Json(&pieces),
        }])
    }

    /// As the first member of params, which has no `_meta` yet.
    fn with_new_meta(&self, member: &str) -> Frame {
        const KEY: &str = r#""_meta":"#;
        let params = self.json(self.fields.body).expect("with_meta has seen an object there");
        let pieces = [KEY, r#"{"jackfield":"#, member, "}", separator(params)];
        let at = self.fields.body.start as usize + 1;
        let mut frame = self
            .rewrite(&[TextEdit { at: TextSpan::new(at, at), new: EditContent::Json(&pieces) }]);
        let start = at + KEY.len();
        let length: usize = pieces[1..4].iter().map(|it| it.len()).sum();
        frame.fields.meta = TextSpan::new(start, start + length);
        frame
    }

    /// Writes the text anew with `edits`, which are in order and do not overlap.
    pub(crate) fn rewrite(&self, edits: &[TextEdit<'_>]) -> Frame {
        if edits.is_empty() {
            return self.clone();
        }
        let added: usize = edits.iter().map(|edit| edit.new.len()).sum();
        let removed: usize = edits.iter().map(|edit| (edit.at.end - edit.at.start) as usize).sum();
        let mut out = Vec::with_capacity(self.text.len() + added - removed);
        // Where each edit ended in the old text, and where it ends in the new one.
        let mut ends = [(0, 0); EDITS_MAX];
        let mut fields = self.fields;
        let mut copied = 0;
        for (edit, end) in edits.iter().zip(&mut ends) {
            out.extend_from_slice(&self.text[copied..edit.at.start as usize]);
            fields.has_escapes |= edit.new.write(&mut out);
            copied = edit.at.end as usize;
            *end = (edit.at.end, TextSpan::new(0, out.len()).end);
        }
        out.extend_from_slice(&self.text[copied..]);
        assert!(u32::try_from(out.len()).is_ok(), "a frame is shorter than 4 GiB");
        for span in fields.spans_mut() {
            span.start = moved(span.start, &ends[..edits.len()]);
            span.end = moved(span.end, &ends[..edits.len()]);
        }
        Frame { text: Bytes::from(out), fields }
    }
}

/// A place in the old text, as a place in the new one: it moved as far as the last edit before it.
fn moved(place: u32, ends: &[(u32, u32)]) -> u32 {
    match ends.iter().rev().find(|(old, _)| *old <= place) {
        Some((old, new)) => place - old + new,
        None => place,
    }
}

/// What follows a member put at the start of `object`.
fn separator(object: &str) -> &'static str {
    if object[1..].trim_start().starts_with('}') { "" } else { "," }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Splice;
    use crate::{
        frame::{Frame, RoutingFields},
        scan::TextSpan,
        strategy,
    };
    use proptest::prelude::*;
    use serde_json::{Value, json};

    pub(crate) fn parse(text: &str) -> Frame {
        Frame::parse_str(text).unwrap()
    }

    /// A splice never parses again: what it says must be what parsing again would say.
    pub(crate) fn assert_sound(frame: &Frame) {
        let again = Frame::parse(frame.bytes().clone()).unwrap();
        // Escapes that were spliced away are looked for in vain, which is harmless.
        assert!(frame.fields.has_escapes || !again.fields.has_escapes, "{frame:?}");
        let fields = RoutingFields { has_escapes: again.fields.has_escapes, ..frame.fields };
        assert_eq!(fields, again.fields, "{frame:?}");
    }

    /// The text with the spans cut out, to compare what is left.
    fn without(frame: &Frame, spans: &[TextSpan]) -> String {
        let mut spans: Vec<_> = spans.iter().filter(|span| span.is_some()).collect();
        spans.sort_by_key(|span| span.start);
        let mut rest = frame.text().to_owned();
        for span in spans.iter().rev() {
            rest.replace_range(span.start as usize..span.end as usize, "");
        }
        rest
    }

    fn ids(frame: &Frame) -> [TextSpan; 3] {
        [frame.fields.id, frame.fields.session_id, frame.fields.request_id]
    }

    pub(crate) fn valid_message() -> impl Strategy<Value = Frame> {
        strategy::message().prop_filter_map("a frame", |text| Frame::parse_str(&text).ok())
    }

    proptest! {
        #[test]
        fn splice_changes_only_the_ids(
            frame in valid_message(),
            id in prop::option::of(prop_oneof![strategy::number(), strategy::string()]),
            session_id in prop::option::of(any::<String>()),
            request_id in prop::option::of(strategy::number()),
        ) {
            let splice = Splice {
                id: id.as_deref(),
                session_id: session_id.as_deref(),
                request_id: request_id.as_deref(),
            };
            let spliced = frame.spliced(splice);
            assert_sound(&spliced);
            prop_assert_eq!(without(&spliced, &ids(&spliced)), without(&frame, &ids(&frame)));
            let there = frame.id().is_some();
            prop_assert_eq!(spliced.id(), id.as_deref().filter(|_| there).or(frame.id()));
            let there = frame.session_id().is_some();
            let expected = session_id.map(Into::into).filter(|_| there).or(frame.session_id());
            prop_assert_eq!(spliced.session_id(), expected);
            let there = frame.request_id().is_some();
            let expected = request_id.as_deref().filter(|_| there).or(frame.request_id());
            prop_assert_eq!(spliced.request_id(), expected);
        }

        #[test]
        fn splicing_back_restores_every_byte(frame in valid_message()) {
            let away = frame.spliced(Splice {
                id: Some("1234567890"),
                session_id: Some("s-\"7f3a\""),
                request_id: Some("\"elsewhere\""),
            });
            let back = away.spliced(Splice {
                id: frame.id(),
                session_id: frame.session_id().as_deref(),
                request_id: frame.request_id(),
            });
            // A session id comes back in our own spelling.
            prop_assert_eq!(back, frame.with_session_id(&frame.session_id().unwrap_or_default()));
        }

        #[test]
        fn with_meta_adds_our_member_and_leaves_every_other(frame in valid_message()) {
            let ours = frame.with_meta(r#"{"seq":12}"#);
            assert_sound(&ours);
            let is_object = frame.params().is_some_and(|params| params.starts_with('{'));
            if !is_object {
                prop_assert_eq!(&ours, &frame);
                return Ok(());
            }
            prop_assert_eq!(ours.with_meta("7").with_meta(r#"{"seq":12}"#), ours.clone());
            // `Value` has no room for such a number.
            let lenient = |text: &str| text.replace("e999", "e1");
            let read = |frame: &Frame| serde_json::from_str::<Value>(&lenient(frame.text()));
            let (mut before, after) = (read(&frame).unwrap(), read(&ours).unwrap());
            let meta = &mut before["params"]["_meta"];
            if !meta.is_object() {
                *meta = json!({});
            }
            meta["jackfield"] = json!({ "seq": 12 });
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn an_id_inside_params_is_left_alone() {
        let text = r#"{"params":{"id":7,"z":1.50},"jsonrpc":"2.0","id":7,"method":"m"}"#;
        assert_eq!(
            parse(text).with_id("42").text(),
            r#"{"params":{"id":7,"z":1.50},"jsonrpc":"2.0","id":42,"method":"m"}"#
        );
    }

    #[test]
    fn three_ids_are_swapped_in_one_copy_whatever_their_order() {
        let text = r#"{"params":{"requestId":"r","sessionId":"\u0061"},"id":7,"method":"m"}"#;
        let frame = parse(text).spliced(Splice {
            id: Some("\"long id\""),
            session_id: Some("é\"\n"),
            request_id: Some("1"),
        });
        assert_eq!(
            frame.text(),
            r#"{"params":{"requestId":1,"sessionId":"é\"\n"},"id":"long id","method":"m"}"#
        );
        assert_sound(&frame);
    }

    #[test]
    fn a_frame_without_ids_is_handed_back_as_it_is() {
        let frame = parse(r#"{"method":"m","params":{"sessionId":7}}"#);
        assert_eq!(frame.with_id("1"), frame);
        assert_eq!(frame.with_session_id("s"), frame);
        assert_eq!(frame.with_session_id("s").bytes().as_ptr(), frame.bytes().as_ptr());
    }

    #[test]
    fn the_session_of_an_answer_stands_in_its_result() {
        let frame = parse(r#"{"id":1,"params":{"sessionId":"x"},"result":{"sessionId":"a"}}"#);
        assert_eq!(
            frame.with_session_id("b").text(),
            r#"{"id":1,"params":{"sessionId":"x"},"result":{"sessionId":"b"}}"#
        );
    }

    #[test]
    fn our_member_finds_its_place_in_every_kind_of_params() {
        for (params, expected) in [
            ("{}", r#"{"_meta":{"jackfield":1}}"#),
            ("{ }", r#"{"_meta":{"jackfield":1} }"#),
            (r#"{"a":1}"#, r#"{"_meta":{"jackfield":1},"a":1}"#),
            (r#"{"_meta":{}}"#, r#"{"_meta":{"jackfield":1}}"#),
            (r#"{"_meta":{"b":2}}"#, r#"{"_meta":{"jackfield":1,"b":2}}"#),
            (r#"{"_meta":{"jackfield":{"x":0}}}"#, r#"{"_meta":{"jackfield":1}}"#),
            (r#"{"_meta":{"jack\u0066ield":0}}"#, r#"{"_meta":{"jack\u0066ield":1}}"#),
            (r#"{"_meta":null}"#, r#"{"_meta":{"jackfield":1}}"#),
            ("[]", "[]"),
            ("null", "null"),
        ] {
            let frame = Frame::notification("m", params).with_meta("1");
            assert_eq!(frame.params(), Some(expected));
            assert_sound(&frame);
        }
        let bare = parse(r#"{"method":"m"}"#);
        assert_eq!(bare.with_meta("1"), bare);
        let answer = parse(r#"{"id":1,"result":{}}"#);
        assert_eq!(answer.with_meta("1"), answer);
    }

    #[test]
    #[should_panic(expected = "no JSON-RPC id")]
    fn an_id_that_is_no_id_is_our_own_mistake() {
        let _ = parse(r#"{"id":1,"method":"m"}"#).with_id("7,\"method\":\"n\"");
    }

    #[test]
    #[should_panic(expected = "no bare JSON value")]
    fn a_member_that_breaks_the_line_is_our_own_mistake() {
        let _ = parse(r#"{"id":1,"method":"m"}"#).with_meta("{\n}");
    }
}
