//! The reader of server-sent events: how a stream is cut into chunks never shows, and no event
//! outgrows the limit.
//!
//! Input: the limit, the length of a chunk, and the stream.

use jackfield_protocol::sse::{EventReader, EventTooLong};

type Read = (Vec<[String; 3]>, Result<(), EventTooLong>);

fn read<'a>(limit: usize, mut chunks: impl Iterator<Item = &'a [u8]>) -> Read {
    let mut events = Vec::new();
    let mut on_event = |it: jackfield_protocol::sse::Event<'_>| {
        events.push([it.name, it.data, it.id].map(str::to_owned));
    };
    let mut reader = EventReader::new(limit);
    let pushed = chunks.try_for_each(|it| reader.push(it, &mut on_event));
    let ended = pushed.and_then(|()| reader.finish(&mut on_event));
    (events, ended)
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let [limit, step, stream @ ..] = data else { return };
    let (limit, step) = (usize::from(*limit), usize::from(*step) + 1);
    let whole = read(limit, std::iter::once(stream));
    assert_eq!(whole, read(limit, stream.chunks(step)));
    // A byte that is no text becomes the three of a replacement character.
    let all_fit = whole.0.iter().flatten().all(|it| it.len() <= 3 * limit);
    assert!(all_fit, "{whole:?}");
}
