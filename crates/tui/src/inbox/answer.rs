//! Sends answers, and learns how requests were closed.

use super::{AnsweredRequest, InboxState, RequestKey, key_of, request_text::describe_request};
use crate::{
    hub::{HubRequest, OpenRequest, RequestNumber},
    page::{ActivePage, PageChange, UpdateContext},
    text::sanitize_line,
};
use serde_json::{Value, json};

/// An answer of this interface that the hub has not confirmed.
#[derive(Debug)]
pub(crate) struct SentAnswer {
    key: RequestKey,
    number: RequestNumber,
    pub(crate) label: String,
}

impl InboxState {
    /// Answers the shown request with one of its options; `None` denies it.
    pub(super) fn send_option(
        &mut self,
        cx: &mut UpdateContext<'_>,
        option: Option<String>,
        label: String,
    ) {
        let Some((session, number)) = self.shown.clone() else { return };
        let request = if let Some(option) = option {
            HubRequest::AnswerOption { session, number, option }
        } else {
            let result = json!({ "outcome": { "outcome": "cancelled" } });
            HubRequest::AnswerForm { session, number, result }
        };
        self.send_answer(cx, request, label);
    }

    pub(super) fn send_form(&mut self, cx: &mut UpdateContext<'_>, result: Value, label: String) {
        let Some((session, number)) = self.shown.clone() else { return };
        self.send_answer(cx, HubRequest::AnswerForm { session, number, result }, label);
    }

    fn send_answer(&mut self, cx: &mut UpdateContext<'_>, request: HubRequest, label: String) {
        let Some(key) = self.shown.clone() else { return };
        let number = cx.send(request);
        self.closed = None;
        self.sent = Some(SentAnswer { key, number, label });
    }

    /// The answer that was sent for the shown request and is not confirmed yet.
    pub(crate) fn sent_answer(&self) -> Option<&SentAnswer> {
        self.sent.as_ref().filter(|it| self.shown.as_ref() == Some(&it.key))
    }

    pub(super) fn on_outcome(
        &mut self,
        cx: &mut UpdateContext<'_>,
        number: RequestNumber,
        result: &Result<Value, String>,
    ) {
        let Some(sent) = self.sent.take_if(|it| it.number == number) else { return };
        match result {
            Ok(_) => self.close_answered(cx, &sent),
            Err(why) => {
                self.closed = Some(format!("The answer was not accepted: {why}"));
                // The user decides again.
                self.guard.reset();
            }
        }
    }

    /// Our own answer was accepted.
    fn close_answered(&mut self, cx: &mut UpdateContext<'_>, sent: &SentAnswer) {
        let label = sanitize_line(&sent.label).into_owned();
        self.close_where(cx, |it| key_of(it) == sent.key, "answered");
        self.closed = None;
        cx.show_notice(format!("Answered: {label}"));
        if self.requests.is_empty() && cx.page == ActivePage::Inbox {
            cx.change_page(PageChange::Back);
        }
    }

    /// The hub reports that a request was closed.
    pub(super) fn on_answered(&mut self, cx: &mut UpdateContext<'_>, answered: &AnsweredRequest) {
        let key = (answered.session.clone(), answered.number);
        if let Some(sent) = self.sent.take_if(|it| it.key == key) {
            // The report can come before the outcome. Another client may have been faster.
            let is_ours = answered.by.as_deref().is_none_or(|it| !is_hub(it));
            let request = self.requests.iter().find(|it| key_of(it) == key);
            let chosen = request.and_then(|it| option_name(it, answered));
            if is_ours && chosen.is_none_or(|it| it == sent.label) {
                return self.close_answered(cx, &sent);
            }
        }
        let Some(request) = self.requests.iter().find(|it| key_of(it) == key) else { return };
        let how = describe_answer(request, answered);
        let notice = format!("{how} ({})", describe_request(request));
        let is_shown = self.shown.as_ref() == Some(&key);
        self.close_where(cx, |it| key_of(it) == key, &how);
        if is_shown {
            cx.show_notice(notice);
        }
    }
}

/// The policy and the hub are no clients.
fn is_hub(by: &str) -> bool {
    matches!(by, "policy" | "jackfield")
}

fn option_name(request: &OpenRequest, answered: &AnsweredRequest) -> Option<String> {
    let id = answered.option.as_ref()?;
    let option = request.options.iter().find(|it| it.option_id == *id);
    let name = option.map(|it| &it.name).filter(|it| !it.is_empty()).unwrap_or(id);
    Some(sanitize_line(name).into_owned())
}

/// Who closed a request, and how.
fn describe_answer(request: &OpenRequest, answered: &AnsweredRequest) -> String {
    let by = match answered.by.as_deref() {
        Some("policy") => "Answered by a rule".to_owned(),
        Some("jackfield") => return "Closed without an answer".to_owned(),
        Some(by) => format!("Answered by {}", sanitize_line(by)),
        None => "Answered elsewhere".to_owned(),
    };
    match option_name(request, answered) {
        Some(name) => format!("{by}: {name}"),
        None => by,
    }
}
