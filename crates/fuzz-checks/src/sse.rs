//! Server-sent events: a reader by the standard gets back what was put in.
//!
//! Input: an id, an event name, a comment and the data, each ended by a NUL.

use jackfield_protocol::sse::{encode_comment, encode_event};

#[derive(Debug, Default, PartialEq)]
struct Event {
    id: Option<String>,
    name: Option<String>,
    data: String,
}

fn decode(stream: &str) -> Vec<Event> {
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut event, mut data) = (Vec::new(), Event::default(), None::<String>);
    for line in stream.split_terminator('\n') {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() => {
                let finished = std::mem::take(&mut event);
                if let Some(data) = data.take() {
                    events.push(Event { data, ..finished });
                }
            }
            "id" if !value.contains('\0') => event.id = Some(value.to_owned()),
            "event" => event.name = Some(value.to_owned()),
            "data" => data = Some(data.map_or(value.to_owned(), |data| data + "\n" + value)),
            _ => {}
        }
    }
    events
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(4, '\0');
    let mut part = || parts.next().unwrap_or_default();
    let (id, name, comment, data) = (part(), part(), part(), part());
    let mut stream = Vec::new();
    encode_comment(&mut stream, comment);
    encode_event(&mut stream, Some(id), Some(name), data);
    encode_event(&mut stream, None, None, comment);
    let stream = String::from_utf8(stream).expect("text in, text out");

    let bare = |field: &str| Some(field.replace(['\r', '\n', '\0'], ""));
    let lines = |data: &str| data.replace("\r\n", "\n").replace('\r', "\n");
    let expected = [
        Event { id: bare(id), name: bare(name), data: lines(data) },
        Event { data: lines(comment), ..Event::default() },
    ];
    assert_eq!(decode(&stream), expected);
}
