//! Failed requests to the provider: notices while they are retried, and the cause of the failure if
//! nothing else ends the turn.

use crate::TurnFailure;
use serde_json::Value;

type ErrorText = (String, Option<u16>);

/// The failed requests of this turn.
#[derive(Debug, Default)]
pub(super) struct RequestErrors {
    /// An error that the program reported as text of the agent.
    error_text: Option<ErrorText>,
    /// The reason for the current retry.
    retry: Option<ErrorText>,
}

impl RequestErrors {
    /// Records an error that is reported as text; the result will repeat it.
    pub(super) fn record_error_text(&mut self, text: &str) {
        self.error_text = Some((text.to_owned(), None));
    }

    /// Records a message that is marked as an error.
    pub(super) fn record_message(&mut self, line: &Value, blocks: &[Value]) {
        let text: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let text = text.join("\n");
        let error = line["error"].as_str().unwrap_or("the request failed");
        let text = if text.is_empty() { error.to_owned() } else { text };
        self.error_text = Some((text, read_status(&line["api_error_status"])));
    }

    /// Records a retry and returns its description.
    pub(super) fn record_retry(&mut self, event: &Value) -> String {
        self.retry = event["error"].as_str().filter(|it| *it != "unknown").map(|error| {
            let message = format!("it exited during a retry after `{error}`");
            (message, read_status(&event["error_status"]))
        });
        describe_retry(event)
    }

    /// The provider has responded.
    pub(super) fn clear_retry(&mut self) {
        self.retry = None;
    }

    /// Takes the error text of a turn that completed.
    pub(super) fn take_error_text(&mut self) -> Option<String> {
        self.error_text.take().map(|(text, _)| text)
    }

    /// The failure of a program that exited before it reported one.
    pub(super) fn last_failure(&self) -> Option<TurnFailure> {
        let (message, status) = self.error_text.as_ref().or(self.retry.as_ref())?;
        Some(TurnFailure::classify(message, *status))
    }
}

fn read_status(status: &Value) -> Option<u16> {
    status.as_u64().and_then(|status| u16::try_from(status).ok())
}

fn describe_retry(event: &Value) -> String {
    let count = |names: [&str; 2]| names.iter().find_map(|name| event[*name].as_u64());
    let delay = count(["retry_delay_ms", "delayMs"])
        .map(|ms| format!(" in {}.{} s", ms / 1000, ms % 1000 / 100));
    let tries = event["attempt"].as_u64().zip(count(["max_retries", "maxRetries"]));
    let tries = tries.map(|(attempt, max)| format!(", {attempt} of {max}"));
    let error = event["error"].as_str().filter(|error| *error != "unknown");
    let why = match (event["error_status"].as_u64(), error) {
        (Some(status), Some(error)) => format!(": {error} ({status})"),
        (Some(status), None) => format!(": status {status}"),
        (None, Some(error)) => format!(": {error}"),
        (None, None) => String::new(),
    };
    let (delay, tries) = (delay.unwrap_or_default(), tries.unwrap_or_default());
    format!("retrying the request{delay}{tries}{why}")
}
