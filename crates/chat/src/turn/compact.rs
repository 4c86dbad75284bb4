//! Summing up a conversation that does not fit the model's window any more.

use super::Turn;
use crate::{
    content::text_of,
    history::Entry,
    model::{Ask, Trouble},
    store::StoreError,
};
use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentBlock, SessionUpdate,
};

/// So much of the window may be full before a request: the answer needs room too.
const FULL_PERCENT: u64 = 80;
/// Of text and code, about so many bytes are one token.
const BYTES_PER_TOKEN: usize = 4;
/// What is repeated of the user's last words.
const LAST_WORDS_MAX: usize = 4000;
/// What is told of a result when it is summed up.
const RESULT_MAX: usize = 1000;

const SUM_UP: &str = "Sum up this conversation for yourself, because you will see nothing else of it. \
    Keep what the user wants, in their words where it matters; what was decided and why; which files \
    were read or changed and what is in them that matters; what was tried and did not work; what is \
    left to do. Write plain text, no calls.";

impl Turn<'_> {
    /// How many tokens the model sees at once.
    pub(super) fn window(&self) -> Option<u64> {
        self.settings.window.or_else(|| self.about.as_ref().and_then(|it| it.window))
    }

    /// Whether the next request would not leave room for its answer.
    pub(super) fn is_full(&self) -> bool {
        let limit = self.window().map(|it| it * FULL_PERCENT / 100);
        limit.is_some_and(|limit| limit < used(self.talk)) && 1 < rest_of(self.talk).len()
    }

    /// Has the model sum up all that was said, and goes on with that.
    pub(crate) async fn compact(&mut self) -> Result<Result<(), Trouble>, StoreError> {
        let id = format!("c-{}", self.talk.len());
        let tell = |status, error: Option<String>| {
            if self.hears.compaction {
                let update = CompactionUpdate::new(id.clone(), status);
                let update = match error {
                    Some(error) => update.error(error),
                    None => update,
                };
                self.session.tell(SessionUpdate::CompactionUpdate(update));
            }
        };
        tell(CompactionStatus::InProgress, None);
        let mut short = shortened(rest_of(self.talk), self.window());
        short.push(Entry::Hint { text: SUM_UP.to_owned() });
        let ask = Ask { tools: Vec::new(), ..self.request(&short) };
        let summary = match self.model.ask(&ask, |_| {}).await {
            Ok(answer) => answer.text,
            Err(trouble) => {
                tell(CompactionStatus::Failed, Some(trouble.to_string()));
                return Ok(Err(trouble));
            }
        };
        tell(CompactionStatus::Completed, None);
        let mut text = format!("This is what was said and done so far:\n\n{}\n", summary.trim());
        if let Some(words) = last_words(self.talk) {
            text.push_str("\nThe last thing that the user said:\n\n");
            text.push_str(&words);
            text.push('\n');
        }
        let from = self.talk.len();
        self.session.append(self.talk, vec![Entry::Summary { text, from }])?;
        Ok(Ok(()))
    }
}

/// Whether a server refused a request because of its length. Each says it in its own words.
pub(super) fn is_too_long(trouble: &Trouble) -> bool {
    const WORDS: [&str; 6] = [
        "context_length_exceeded",
        "context length",
        "context window",
        "context size",
        "too many tokens",
        "prompt is too long",
    ];
    let text = trouble.to_string().to_ascii_lowercase();
    WORDS.iter().any(|it| text.contains(it))
}

/// What the model still sees of a conversation.
fn rest_of(talk: &[Entry]) -> &[Entry] {
    let from = talk.iter().rev().find_map(|it| match it {
        Entry::Summary { from, .. } => Some(*from),
        _ => None,
    });
    &talk[from.unwrap_or(0).min(talk.len())..]
}

/// About how many tokens the next request has: what the server counted last, and an estimate of what
/// came since.
fn used(talk: &[Entry]) -> u64 {
    let rest = rest_of(talk);
    let counted = rest.iter().enumerate().rev().find_map(|(at, it)| match it {
        Entry::Answer { tokens: Some(tokens), .. } => Some((at + 1, tokens.input + tokens.output)),
        _ => None,
    });
    let (since, counted) = counted.unwrap_or((0, 0));
    let bytes: usize = rest[since..].iter().map(weight).sum();
    counted + (bytes / BYTES_PER_TOKEN) as u64
}

fn weight(entry: &Entry) -> usize {
    match entry {
        Entry::Prompt { content } => content.iter().filter_map(text_of).map(|it| it.len()).sum(),
        Entry::Answer { text, calls, .. } => {
            text.len() + calls.iter().map(|it| it.name.len() + it.arguments.len()).sum::<usize>()
        }
        Entry::Result(done) => done.text.len(),
        Entry::Hint { text } | Entry::Summary { text, .. } => text.len(),
        Entry::Plan { .. } | Entry::Failed { .. } => 0,
    }
}

/// What is summed up: long results are cut, and what is oldest is left out until the rest surely fits.
fn shortened(talk: &[Entry], window: Option<u64>) -> Vec<Entry> {
    let mut short = talk.to_vec();
    for entry in &mut short {
        if let Entry::Result(done) = entry
            && RESULT_MAX < done.text.len()
        {
            done.text.truncate(done.text.floor_char_boundary(RESULT_MAX));
            done.text.push_str(" […]");
        }
    }
    let limit = window.map_or(usize::MAX, |it| {
        usize::try_from(it / 2).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN)
    });
    let mut bytes: usize = short.iter().map(weight).sum();
    let too_many = short.iter().take_while(|it| {
        let is_too_much = limit < bytes;
        bytes -= weight(it);
        is_too_much
    });
    let too_many = too_many.count();
    short.split_off(too_many)
}

fn last_words(talk: &[Entry]) -> Option<String> {
    let content = talk.iter().rev().find_map(|it| match it {
        Entry::Prompt { content } => Some(content),
        _ => None,
    })?;
    let text: Vec<String> = content
        .iter()
        .filter(|it| !matches!(it, ContentBlock::Image(_)))
        .filter_map(text_of)
        .collect();
    let mut text = text.join("\n");
    if LAST_WORDS_MAX < text.len() {
        text.truncate(text.floor_char_boundary(LAST_WORDS_MAX));
        text.push_str(" […]");
    }
    Some(text)
}
