//! Limits repeated warnings and errors: the first ones of a kind are written, the others are
//! counted, and the count is written every few seconds. Unauthenticated clients can cause warnings
//! and must not be able to fill the disk with them.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};
use tracing::{
    Event, Level, Metadata,
    callsite::Identifier,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::layer::{Context, Filter};

/// Lines of one kind that are written within [`WINDOW`].
const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(5);
/// The length of the message beside a count.
const MESSAGE_CHARS_MAX: usize = 200;
/// The target of lines with counts, which are never suppressed.
const COUNT_TARGET: &str = "jackfield_daemon::log_repeats::count";

/// Messages of one statement that are kinds of their own. Further messages share one kind, because
/// a peer could create messages that are all different.
const MESSAGES_MAX: usize = 16;

/// A filter of log lines. Lines of the same statement with the same message are of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct RepeatLimit(Arc<Mutex<LineKinds>>);

#[derive(Debug, Default)]
struct LineKinds {
    by_message: HashMap<(Identifier, String), LineKind>,
    /// Whether a thread will write the counts.
    is_reported: bool,
}

#[derive(Debug)]
struct LineKind {
    since: Instant,
    lines: u32,
    suppressed: u64,
    /// The message of the first suppressed line.
    example: String,
}

/// The number of suppressed lines, and the message of the first of them.
#[derive(Debug, PartialEq, Eq)]
struct SuppressedLines(u64, String);

impl LineKinds {
    /// Returns whether a line is written; otherwise it is counted.
    fn admit(&mut self, id: Identifier, now: Instant, message: String) -> bool {
        let new_kind = || LineKind { since: now, lines: 0, suppressed: 0, example: String::new() };
        let mut key = (id, message.clone());
        if MESSAGES_MAX <= self.messages_of(&key.0) && !self.by_message.contains_key(&key) {
            let is_current =
                |it: &LineKind| 0 < it.suppressed || now.duration_since(it.since) < WINDOW;
            self.by_message.retain(|_, kind| is_current(kind));
            if MESSAGES_MAX <= self.messages_of(&key.0) {
                key.1.clear();
            }
        }
        let kind = self.by_message.entry(key).or_insert_with(new_kind);
        if kind.suppressed == 0 && WINDOW <= now.duration_since(kind.since) {
            *kind = new_kind();
        }
        if kind.lines < LINES_MAX {
            kind.lines += 1;
            return true;
        }
        if kind.suppressed == 0 {
            kind.example = message;
        }
        kind.suppressed += 1;
        false
    }

    fn messages_of(&self, id: &Identifier) -> usize {
        self.by_message.keys().filter(|it| it.0 == *id).count()
    }

    /// Takes all counts. A kind that continues is only counted from now on; one that has paused is
    /// written again.
    fn take_suppressed(&mut self, now: Instant) -> Vec<SuppressedLines> {
        let mut taken = Vec::new();
        self.by_message.retain(|_, kind| {
            if 0 < kind.suppressed {
                let example = std::mem::take(&mut kind.example);
                taken.push(SuppressedLines(std::mem::take(&mut kind.suppressed), example));
                kind.since = now;
                return true;
            }
            kind.lines < LINES_MAX
        });
        taken
    }
}

impl RepeatLimit {
    fn kinds(&self) -> MutexGuard<'_, LineKinds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_reports(&self, kinds: &mut LineKinds) {
        if !kinds.is_reported {
            let this = self.clone();
            let thread = thread::Builder::new().name("log counts".into());
            // If no thread can be started, the next line tries again.
            kinds.is_reported = thread.spawn(move || this.report()).is_ok();
        }
    }

    /// Writes the counts until no line was suppressed for a while.
    fn report(&self) {
        loop {
            thread::sleep(WINDOW);
            let taken = {
                let mut kinds = self.kinds();
                let taken = kinds.take_suppressed(Instant::now());
                kinds.is_reported = !taken.is_empty();
                taken
            };
            if taken.is_empty() {
                return;
            }
            for SuppressedLines(count, message) in taken {
                let seconds = WINDOW.as_secs();
                tracing::warn!(target: COUNT_TARGET, "{count} more like this within {seconds} s: {message}");
            }
        }
    }
}

impl<S> Filter<S> for RepeatLimit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if Level::WARN < *metadata.level() || metadata.target() == COUNT_TARGET {
            return true;
        }
        let mut kinds = self.kinds();
        let is_written =
            kinds.admit(metadata.callsite(), Instant::now(), MessageVisitor::of(event));
        if !is_written {
            self.start_reports(&mut kinds);
        }
        is_written
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }
}

/// The message of a line, without its other fields.
#[derive(Default)]
struct MessageVisitor(String);

impl MessageVisitor {
    fn of(event: &Event<'_>) -> String {
        let mut message = MessageVisitor::default();
        event.record(&mut message);
        message.0.chars().take(MESSAGE_CHARS_MAX).collect()
    }
}

impl Visit for MessageVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tracing_subscriber::{Layer as _, layer::SubscriberExt as _};

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A statement that is never executed.
    struct TestCallsite;

    static STATEMENT: TestCallsite = TestCallsite;

    impl tracing::Callsite for TestCallsite {
        fn set_interest(&self, _: tracing::subscriber::Interest) {}

        fn metadata(&self) -> &Metadata<'_> {
            unreachable!("only its identity is used")
        }
    }

    #[test]
    fn repeated_lines_are_counted_and_written_again_after_a_pause() {
        let (id, start) = (Identifier(&STATEMENT), Instant::now());
        let mut kinds = LineKinds::default();
        let admit = |kinds: &mut LineKinds, times: usize, at: Duration| {
            let one = |_| kinds.admit(id.clone(), start + at, "refused".to_owned());
            (0..times).map(one).filter(|it| *it).count()
        };
        let written = LINES_MAX as usize;
        assert_eq!(admit(&mut kinds, 1_000, Duration::ZERO), written);
        let count = SuppressedLines(1_000 - u64::from(LINES_MAX), "refused".to_owned());
        assert_eq!(kinds.take_suppressed(start + WINDOW), [count]);
        assert_eq!(admit(&mut kinds, 7, WINDOW), 0, "it goes on");
        assert_eq!(
            kinds.take_suppressed(start + 2 * WINDOW),
            [SuppressedLines(7, "refused".to_owned())]
        );
        assert!(kinds.take_suppressed(start + 3 * WINDOW).is_empty());
        assert_eq!(admit(&mut kinds, 3, 3 * WINDOW), 3, "it had paused");
        assert_eq!(admit(&mut kinds, 1_000, 4 * WINDOW), written, "a window of its own");
    }

    #[test]
    fn messages_of_one_statement_are_limited_separately_up_to_a_maximum() {
        let (id, now) = (Identifier(&STATEMENT), Instant::now());
        let mut kinds = LineKinds::default();
        let admitted =
            (0..1_000).filter(|it| kinds.admit(id.clone(), now, format!("message {it}")));
        assert_eq!(admitted.count(), MESSAGES_MAX + LINES_MAX as usize);
        let again = (0..50).filter(|_| kinds.admit(id.clone(), now, "message 0".to_owned()));
        assert_eq!(again.count(), LINES_MAX as usize - 1);
    }

    #[test]
    fn only_warnings_and_errors_of_the_same_statement_are_suppressed() {
        let written = LogBuffer::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let lines = tracing_subscriber::registry().with(lines.with_filter(RepeatLimit::default()));
        tracing::subscriber::with_default(lines, || {
            for number in 0..100 {
                tracing::warn!(number, "flood");
                tracing::info!(number, "event");
            }
            tracing::warn!("another");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let count = |word: &str| text.matches(word).count();
        assert_eq!([count("flood"), count("event"), count("another")], [10, 100, 1], "{text}");
    }
}
