//! Requests to the provider that failed: as notices while they are tried again, as the reason if
//! nothing else ends the turn.

use crate::Failure;
use serde_json::Value;

type Words = (String, Option<u16>);

/// What went wrong so far in this turn.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// What the program said about a failed request, in the words of the agent.
    complaint: Option<Words>,
    /// Why the running request is tried again.
    retry: Option<Words>,
}

impl Trouble {
    /// The program speaks for the provider; its result will say so again.
    pub(super) fn complain(&mut self, words: &str) {
        self.complaint = Some((words.to_owned(), None));
    }

    /// The same in a message that is marked as one.
    pub(super) fn on_message(&mut self, line: &Value, blocks: &[Value]) {
        let words: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let words = words.join("\n");
        let error = line["error"].as_str().unwrap_or("the request failed");
        let words = if words.is_empty() { error.to_owned() } else { words };
        self.complaint = Some((words, status_of(&line["api_error_status"])));
    }

    /// A request is tried again. Returns that in words.
    pub(super) fn on_retry(&mut self, told: &Value) -> String {
        self.retry = told["error"].as_str().filter(|it| *it != "unknown").map(|error| {
            let message = format!("it ended while it tried again after `{error}`");
            (message, status_of(&told["error_status"]))
        });
        in_words(told)
    }

    /// The provider answers.
    pub(super) fn on_answer(&mut self) {
        self.retry = None;
    }

    /// What was complained about in a turn that went well.
    pub(super) fn take_complaint(&mut self) -> Option<String> {
        self.complaint.take().map(|(words, _)| words)
    }

    /// What is known of a failure that the program had no time to report.
    pub(super) fn last_words(&self) -> Option<Failure> {
        let (message, status) = self.complaint.as_ref().or(self.retry.as_ref())?;
        Some(Failure::read(message, *status))
    }
}

fn status_of(status: &Value) -> Option<u16> {
    status.as_u64().and_then(|status| u16::try_from(status).ok())
}

fn in_words(told: &Value) -> String {
    let count = |names: [&str; 2]| names.iter().find_map(|name| told[*name].as_u64());
    let delay = count(["retry_delay_ms", "delayMs"])
        .map(|ms| format!(" in {}.{} s", ms / 1000, ms % 1000 / 100));
    let tries = told["attempt"].as_u64().zip(count(["max_retries", "maxRetries"]));
    let tries = tries.map(|(attempt, max)| format!(", {attempt} of {max}"));
    let error = told["error"].as_str().filter(|error| *error != "unknown");
    let why = match (told["error_status"].as_u64(), error) {
        (Some(status), Some(error)) => format!(": {error} ({status})"),
        (Some(status), None) => format!(": status {status}"),
        (None, Some(error)) => format!(": {error}"),
        (None, None) => String::new(),
    };
    let (delay, tries) = (delay.unwrap_or_default(), tries.unwrap_or_default());
    format!("the request is tried again{delay}{tries}{why}")
}
