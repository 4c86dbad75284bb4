//! Writing events and comments.

/// Appends one event. Line breaks would end the `id` or `event` field early, and a NUL makes
/// readers ignore an id: both are left out there.
pub fn encode_event(out: &mut Vec<u8>, id: Option<&str>, event: Option<&str>, data: &str) {
    if let Some(id) = id {
        field(out, "id: ", id);
    }
    if let Some(event) = event {
        field(out, "event: ", event);
    }
    for line in lines(data) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Appends a comment, which readers skip: it keeps a quiet connection open.
pub fn encode_comment(out: &mut Vec<u8>, text: &str) {
    for line in lines(text) {
        out.extend_from_slice(b": ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}

fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend(value.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
    out.push(b'\n');
}

/// Cut at CRLF, CR or LF, as the reader cuts.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr::memchr2(b'\r', b'\n', text.as_bytes()) else {
            rest = None;
            return Some(text);
        };
        let tail = &text[end..];
        rest = Some(tail.strip_prefix("\r\n").unwrap_or(&tail[1..]));
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::{encode_comment, encode_event};
    use crate::sse::oracle::{Event, decode};
    use proptest::prelude::*;

    fn encode(id: Option<&str>, event: Option<&str>, data: &str) -> String {
        let mut out = Vec::new();
        encode_event(&mut out, id, event, data);
        String::from_utf8(out).unwrap()
    }

    fn field() -> impl Strategy<Value = Option<String>> {
        prop::option::of(r"([a-z: é]|\r|\n|\x00){0,6}")
    }

    proptest! {
        #[test]
        fn a_reader_gets_back_what_was_put_in(
            id in field(),
            event in field(),
            data in r"([a-z: é]|\r|\n|\r\n|data: |\x00){0,12}",
            comment in r"([a-z:]|\r|\n|data: ){0,6}",
        ) {
            let mut stream = Vec::new();
            encode_comment(&mut stream, &comment);
            encode_event(&mut stream, id.as_deref(), event.as_deref(), &data);
            encode_comment(&mut stream, &comment);
            encode_event(&mut stream, None, None, "next");
            let bare = |field: Option<String>| {
                field.unwrap_or_default().replace(['\r', '\n', '\0'], "")
            };
            let data = data.replace("\r\n", "\n").replace('\r', "\n");
            let id = bare(id);
            let expected = [
                Event { id: id.clone(), name: bare(event), data },
                Event { id, data: "next".to_owned(), ..Event::default() },
            ];
            prop_assert_eq!(decode(std::str::from_utf8(&stream).unwrap()), expected);
        }
    }

    #[test]
    fn an_event_is_written_field_by_field() {
        let text = encode(Some("7"), Some("update"), "{\"a\":1}");
        assert_eq!(text, "id: 7\nevent: update\ndata: {\"a\":1}\n\n");
        assert_eq!(encode(None, None, "a\r\nb\rc\n"), "data: a\ndata: b\ndata: c\ndata: \n\n");
    }

    #[test]
    fn an_id_cannot_smuggle_in_a_field() {
        assert_eq!(encode(Some("7\ndata: x"), None, ""), "id: 7data: x\ndata: \n\n");
    }

    #[test]
    fn a_comment_is_no_event() {
        let mut out = Vec::new();
        encode_comment(&mut out, "still here\ndata: x");
        assert_eq!(out, b": still here\n: data: x\n\n");
    }
}
