//! A reader as the standard describes it, for the tests: it has the whole stream, and knows nothing
//! of the encoder or the real reader.

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) data: String,
}

/// The events of a stream. Its last one, if no blank line ended it, is the standard's to discard:
/// end the stream with one to see it.
pub(super) fn decode(stream: &str) -> Vec<Event> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let (mut id, mut name, mut data) = (String::new(), String::new(), None::<String>);
    let mut events = Vec::new();
    for line in stream.split_terminator('\n') {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() => {
                let name = std::mem::take(&mut name);
                if let Some(data) = data.take() {
                    events.push(Event { id: id.clone(), name, data });
                }
            }
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            "event" => value.clone_into(&mut name),
            "data" => data = Some(data.map_or(value.to_owned(), |data| data + "\n" + value)),
            _ => {}
        }
    }
    events
}
