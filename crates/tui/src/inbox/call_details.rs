//! The content of the tool call that a permission request is about: its text and diffs, which only the log has.

use crate::hub::{HubRequest, LogPage, LogRange, OpenRequest};
use jackfield_events::{EventBody, ReceivedEvent};
use serde_json::Value;

/// An open request is near the end of the log; further back than these pages it is not searched.
const PAGES_MAX: usize = 5;
const PAGE_EVENTS: u64 = 200;

/// A piece of the content of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallContent {
    Text(String),
    Diff { path: String, old: Option<String>, new: String },
}

/// Reads the log backwards until the tool call is found.
#[derive(Debug)]
pub(crate) struct CallDetails {
    session: String,
    number: u64,
    call_id: Option<String>,
    events: Vec<ReceivedEvent>,
    pages: usize,
    /// The range that the hub was asked for.
    awaited: Option<LogRange>,
    content: Vec<CallContent>,
}

impl CallDetails {
    /// `None` if the request is not about a tool call.
    pub(crate) fn load(request: &OpenRequest) -> Option<(CallDetails, HubRequest)> {
        if request.is_form() {
            return None;
        }
        let details = CallDetails {
            session: request.session_id.clone(),
            number: request.number,
            call_id: request.tool_call_id.clone(),
            events: Vec::new(),
            pages: 0,
            awaited: Some(LogRange::End),
            content: Vec::new(),
        };
        let read = details.read(LogRange::End);
        Some((details, read))
    }

    fn read(&self, range: LogRange) -> HubRequest {
        HubRequest::ReadLog { session: self.session.clone(), range, limit: PAGE_EVENTS }
    }

    pub(crate) fn awaits(&self, page: &LogPage) -> bool {
        self.awaited == Some(page.range) && self.session == page.session
    }

    pub(crate) fn content(&self) -> &[CallContent] {
        &self.content
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.awaited.is_some()
    }

    /// The page could not be read. The request can be answered without it.
    pub(crate) fn stop(&mut self) {
        self.awaited = None;
    }

    /// A page that was awaited. Returns the request for the page before it, if that is needed.
    pub(crate) fn on_page(&mut self, page: &LogPage) -> Option<HubRequest> {
        self.pages += 1;
        self.awaited = None;
        self.events.splice(0..0, page.events.iter().cloned());
        self.content = self.merge_content();
        let has_start = self.events.iter().any(|it| self.is_start(it));
        let first = page.bounds.map(|it| it.0).filter(|it| *it > 1)?;
        if has_start || PAGES_MAX <= self.pages {
            self.events.clear();
            return None;
        }
        self.awaited = Some(LogRange::Before(first));
        Some(self.read(LogRange::Before(first)))
    }

    /// The content of the call up to the request, which may replace it.
    fn merge_content(&self) -> Vec<CallContent> {
        let mut content = Vec::new();
        for event in &self.events {
            let update = match &event.body {
                EventBody::Asked(it) if it.ask == self.number => &it.frame["params"]["toolCall"],
                EventBody::Said(it) => &it.frame["params"]["update"],
                _ => continue,
            };
            let is_request = matches!(event.body, EventBody::Asked(_));
            if !is_request && !self.is_of_call(update) {
                continue;
            }
            if let Some(parts) = update["content"].as_array().filter(|it| !it.is_empty()) {
                content = parts.iter().filter_map(parse_content).collect();
            }
            if is_request {
                break;
            }
        }
        content
    }

    /// Whether the event begins the call; without a call, the request is all there is.
    fn is_start(&self, event: &ReceivedEvent) -> bool {
        match (&event.body, &self.call_id) {
            (EventBody::Asked(it), None) => it.ask == self.number,
            (EventBody::Said(it), Some(_)) => {
                let update = &it.frame["params"]["update"];
                update["sessionUpdate"] == "tool_call" && self.is_of_call(update)
            }
            _ => false,
        }
    }

    fn is_of_call(&self, update: &Value) -> bool {
        self.call_id.is_some() && update["toolCallId"].as_str() == self.call_id.as_deref()
    }
}

fn parse_content(part: &Value) -> Option<CallContent> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if part["type"] == "diff" {
        return Some(CallContent::Diff {
            path: text(&part["path"]).unwrap_or_default(),
            old: text(&part["oldText"]),
            new: text(&part["newText"]).unwrap_or_default(),
        });
    }
    text(&part["content"]["text"]).filter(|it| !it.trim().is_empty()).map(CallContent::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::test_log::TestLog;
    use serde_json::json;

    fn request() -> OpenRequest {
        OpenRequest {
            session_id: "s-1".into(),
            number: 1,
            method: "session/request_permission".into(),
            tool_call_id: Some("call-1".into()),
            ..OpenRequest::default()
        }
    }

    fn page(events: &[ReceivedEvent], range: LogRange, first: u64) -> LogPage {
        let last = first + events.len() as u64 - 1;
        LogPage {
            session: "s-1".into(),
            range,
            events: events.to_vec(),
            bounds: Some((first, last)),
            end: last,
        }
    }

    #[test]
    fn content_of_the_request_replaces_that_of_the_call() {
        let diff = json!([{ "type": "diff", "path": "a.rs", "oldText": "x", "newText": "y" }]);
        let text = json!([{ "type": "content", "content": { "type": "text", "text": "old" } }]);
        let mut log = TestLog::default();
        log.opened().call("call-1", json!({ "content": text }));
        log.call("other", json!({ "content": text }));
        log.ask(&json!({ "toolCallId": "call-1", "content": diff }));
        let (mut details, _) = CallDetails::load(&request()).unwrap();
        assert_eq!(details.on_page(&page(&log.events, LogRange::End, 1)), None);
        let (path, old, new) = ("a.rs".into(), Some("x".into()), "y".into());
        assert_eq!(details.content(), [CallContent::Diff { path, old, new }]);
    }

    #[test]
    fn pages_are_read_until_the_call_begins() {
        let text = json!([{ "type": "content", "content": { "type": "text", "text": "plan" } }]);
        let mut log = TestLog::default();
        log.call("call-1", json!({ "content": text })).message("between");
        log.ask(&json!({ "toolCallId": "call-1" }));
        let (mut details, read) = CallDetails::load(&request()).unwrap();
        let (session, limit) = ("s-1".to_owned(), PAGE_EVENTS);
        let range = LogRange::End;
        assert_eq!(read, HubRequest::ReadLog { session: session.clone(), range, limit });
        let last = page(&log.events[2..], LogRange::End, 7);
        assert!(details.awaits(&last));
        let range = LogRange::Before(7);
        let before = details.on_page(&last);
        assert_eq!(before, Some(HubRequest::ReadLog { session, range, limit }));
        assert_eq!(details.content(), []);
        assert!(!details.awaits(&last));
        assert_eq!(details.on_page(&page(&log.events[..2], range, 5)), None);
        assert_eq!(details.content(), [CallContent::Text("plan".into())]);
        assert!(!details.is_loading());
    }
}
