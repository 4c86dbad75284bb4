//! Reads events from a stream that arrives in chunks of any size, as the standard requires
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>).
//!
//! Own code because the event must have a size limit, and because the crate has no I/O.

use memchr::memchr2;
use std::mem;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event. What is no UTF-8 arrives as replacement characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Empty unless the stream named it.
    pub name: &'a str,
    pub data: &'a str,
    /// The last id the stream told, with this event or before it; empty if there was none.
    pub id: &'a str,
}

/// An event, or one line of it, outgrew the reader's limit. The rest of the stream is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {limit} bytes")]
pub struct EventTooLong {
    pub limit: usize,
}

/// Receives each completed event.
pub type OnEvent<'a> = dyn FnMut(Event<'_>) + 'a;

/// Holds at most one event, and of a chunk only the line that it cuts in two.
#[derive(Debug)]
pub struct EventReader {
    limit: usize,
    /// The start of a line whose end has not come yet.
    partial: Vec<u8>,
    /// Each line with a LF, so that one empty line is not the same as none.
    data: Vec<u8>,
    name: Vec<u8>,
    id: Vec<u8>,
    /// No line has ended yet.
    first: bool,
    /// The last chunk ended with a CR: a LF that follows belongs to it.
    after_cr: bool,
    failed: bool,
}

impl EventReader {
    /// No event may be longer than this, nor a line.
    pub fn new(limit: usize) -> EventReader {
        EventReader {
            limit,
            partial: Vec::new(),
            data: Vec::new(),
            name: Vec::new(),
            id: Vec::new(),
            first: true,
            after_cr: false,
            failed: false,
        }
    }

    /// Takes the next chunk and hands on every event it completes. After an error there are none.
    pub fn push(
        &mut self,
        mut chunk: &[u8],
        on_event: &mut OnEvent<'_>,
    ) -> Result<(), EventTooLong> {
        if self.failed {
            return Err(EventTooLong { limit: self.limit });
        }
        if !chunk.is_empty() && mem::take(&mut self.after_cr) {
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(end) = memchr2(b'\r', b'\n', chunk) {
            self.end_line(&chunk[..end], on_event)?;
            let tail = &chunk[end + 1..];
            let is_cr = chunk[end] == b'\r';
            self.after_cr = is_cr && tail.is_empty();
            chunk = if is_cr { tail.strip_prefix(b"\n").unwrap_or(tail) } else { tail };
        }
        self.check(self.partial.len() + chunk.len())?;
        self.partial.extend_from_slice(chunk);
        Ok(())
    }

    /// The stream ended. The standard discards an event that no blank line ended; servers of models
    /// end so, and what is pending counts.
    pub fn finish(mut self, on_event: &mut OnEvent<'_>) -> Result<(), EventTooLong> {
        if self.failed {
            return Err(EventTooLong { limit: self.limit });
        }
        if !self.partial.is_empty() {
            self.end_line(b"", on_event)?;
        }
        self.dispatch(on_event);
        Ok(())
    }

    /// The current line ends with `end`.
    fn end_line(&mut self, end: &[u8], on_event: &mut OnEvent<'_>) -> Result<(), EventTooLong> {
        self.check(self.partial.len() + end.len())?;
        if self.partial.is_empty() {
            return self.line(end, on_event);
        }
        let mut line = mem::take(&mut self.partial);
        line.extend_from_slice(end);
        let read = self.line(&line, on_event);
        line.clear();
        self.partial = line;
        read
    }

    fn line(&mut self, line: &[u8], on_event: &mut OnEvent<'_>) -> Result<(), EventTooLong> {
        let is_first = mem::take(&mut self.first);
        let line = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(line);
        if line.is_empty() {
            self.dispatch(on_event);
            return Ok(());
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                self.check(self.data.len() + value.len())?;
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => value.clone_into(&mut self.name),
            b"id" if !value.contains(&0) => value.clone_into(&mut self.id),
            // Comments, `retry`, and what the standard does not know.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, on_event: &mut OnEvent<'_>) {
        if let Some(data) = self.data.strip_suffix(b"\n") {
            let [name, data, id] = [&self.name, data, &self.id].map(String::from_utf8_lossy);
            on_event(Event { name: &name, data: &data, id: &id });
        }
        self.name.clear();
        self.data.clear();
    }

    fn check(&mut self, bytes: usize) -> Result<(), EventTooLong> {
        self.failed = self.limit < bytes;
        if self.failed { Err(EventTooLong { limit: self.limit }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{EventReader, EventTooLong};
    use crate::sse::oracle::{self, Event};
    use proptest::prelude::*;

    type Read = (Vec<Event>, Result<(), EventTooLong>);

    fn read(limit: usize, chunks: &[&[u8]]) -> Read {
        let mut events = Vec::new();
        let mut on_event = |it: super::Event<'_>| {
            events.push(Event { id: it.id.into(), name: it.name.into(), data: it.data.into() });
        };
        let mut reader = EventReader::new(limit);
        let pushed = chunks.iter().try_for_each(|it| reader.push(it, &mut on_event));
        let ended = pushed.and_then(|()| reader.finish(&mut on_event));
        (events, ended)
    }

    fn events(chunks: &[&[u8]]) -> Vec<Event> {
        let (events, ended) = read(1024, chunks);
        assert_eq!(ended, Ok(()));
        events
    }

    fn data(chunks: &[&[u8]]) -> Vec<String> {
        events(chunks).into_iter().map(|it| it.data).collect()
    }

    /// Streams of what matters to a reader, and of what does not.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "data",
            "data:",
            "data: ",
            "event: ",
            "id:",
            "id: 7",
            "retry: 9",
            ":",
            " ",
            "é",
            "\u{feff}",
            "x",
            "\0",
            "\n",
            "\n",
            "\n\n",
            "\r",
            "\r\n",
            "\r\n\r\n",
            "{\"a\":1}",
            "[DONE]",
            "\u{1F9E1}",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|it| it.concat().into_bytes())
    }

    fn cut(stream: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
        let mut cuts: Vec<usize> = cuts.iter().map(|it| it.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|it| stream[it[0]..it[1]].to_vec()).collect()
    }

    fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
        prop::collection::vec(any::<prop::sample::Index>(), 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn how_a_stream_is_cut_never_shows_and_its_events_are_those_of_the_standard(
            stream in stream(), cuts in cuts(),
        ) {
            let chunks = cut(&stream, &cuts);
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            // The oracle follows the standard to the letter, so it is shown an end.
            let ended = String::from_utf8(stream.clone()).unwrap() + "\n\n";
            let expected = oracle::decode(&ended);
            prop_assert_eq!(&events(&chunks), &expected);
            prop_assert_eq!(&events(&[&stream]), &expected);
            prop_assert_eq!(&events(&bytes), &expected);
        }

        #[test]
        fn a_limit_is_met_at_the_same_place_however_the_stream_is_cut(
            stream in stream(), cuts in cuts(), limit in 0_usize..30,
        ) {
            let chunks = cut(&stream, &cuts);
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let whole = read(limit, &[&stream]);
            prop_assert_eq!(&read(limit, &chunks), &whole);
            prop_assert!(whole.0.iter().all(|it| it.data.len() <= limit));
        }
    }

    #[test]
    fn every_kind_of_line_break_ends_a_line_also_across_chunks() {
        let expected = ["a", "b", "c", "d"];
        assert_eq!(data(&[b"data:a\n\ndata: b\r\r", b"data:c\r\n\r\ndata: d\n\r\n"]), expected);
        assert_eq!(data(&[b"data:a\r", b"\n", b"\r", b"\n", b"data:b\r", b"\r", b""]), ["a", "b"]);
    }

    #[test]
    fn an_event_is_told_the_moment_its_blank_line_comes() {
        let mut seen = 0;
        let mut reader = EventReader::new(64);
        reader.push(b"data: a\r\n\r", &mut |_| seen += 1).unwrap();
        assert_eq!(seen, 1);
    }

    #[test]
    fn lines_of_data_are_joined_and_one_space_is_dropped() {
        assert_eq!(data(&[b"data: a\ndata:  b\ndata\ndata:\n\n"]), ["a\n b\n\n"]);
        assert_eq!(data(&[b"event: x\n\n: comment\n\nretry: 5\nwhat: ever\n\n"]), [""; 0]);
    }

    #[test]
    fn a_name_lasts_for_its_event_and_an_id_until_the_next() {
        let events = events(&[b"id: 1\nevent: e\ndata: a\n\nid: 2\0\ndata: b\n\nid\ndata: c\n\n"]);
        let told: Vec<_> = events.iter().map(|it| (&*it.id, &*it.name, &*it.data)).collect();
        assert_eq!(told, [("1", "e", "a"), ("1", "", "b"), ("", "", "c")]);
    }

    #[test]
    fn a_byte_order_mark_counts_at_the_start_only() {
        assert_eq!(data(&[b"\xEF\xBB", b"\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"]), ["a"]);
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        assert_eq!(data(&[b"data: \xC3", b"\xA9 \xFF\n\n"]), ["\u{e9} \u{fffd}"]);
    }

    #[test]
    fn what_is_pending_at_the_end_counts() {
        assert_eq!(data(&[b"data: a\n\ndata: b"]), ["a", "b"]);
        assert_eq!(data(&[b"data: a\n"]), ["a"]);
    }

    #[test]
    fn a_stream_without_ends_does_not_grow_and_is_not_read_on() {
        let too_long = Err(EventTooLong { limit: 8 });
        let (mut reader, mut seen) = (EventReader::new(8), 0);
        assert_eq!(reader.push(b"data: 1\n\ndata: 23456", &mut |_| seen += 1), too_long);
        assert_eq!((seen, reader.push(b"\n\ndata: 1\n\n", &mut |_| seen += 1)), (1, too_long));
        assert_eq!(read(8, &[b"data:12\ndata:345\n", b"data:6\n"]).1, Ok(()));
        assert_eq!(read(8, &[b"data:12\ndata:345\n", b"data:67\n"]).1, too_long);
    }
}
