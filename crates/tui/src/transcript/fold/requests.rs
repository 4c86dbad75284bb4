//! Requests to the user and their answers.

use super::{EventPlace, TranscriptFold};
use crate::transcript::{
    ItemContent, RequestAnswer, RequestItem,
    content::{list, text},
    tool_call::tool_call_id,
};
use jackfield_events::{UserAnswered, UserAsked};
use serde_json::Value;

/// An option of a request, as the agent names it.
#[derive(Debug, Clone, Default)]
pub(super) struct OptionName {
    name: String,
    kind: String,
}

impl TranscriptFold {
    pub(super) fn on_asked(&mut self, place: EventPlace, asked: &UserAsked<Value>) {
        let params = &asked.frame["params"];
        let call = &params["toolCall"];
        let call_id = if call.is_object() { tool_call_id(call) } else { String::new() };
        for it in list(params, "options") {
            let (name, kind) = (text(it, "name").to_owned(), text(it, "kind").to_owned());
            let key = (asked.ask, text(it, "optionId").to_owned());
            self.option_names.insert(key, OptionName { name, kind });
        }
        let known_title = self.describe_requested_call(place, &call_id, call);
        let titles = [text(params, "message"), text(call, "title"), &known_title];
        let title = titles.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
        let why = asked.decision.as_ref().map(|it| text(it, "why")).unwrap_or_default();
        let request = RequestItem {
            number: asked.ask,
            call_id,
            title: title.to_owned(),
            why: why.to_owned(),
            answer: None,
            is_always: false,
        };
        let index = self.push(place, ItemContent::Request(Box::new(request)));
        self.requests.insert(asked.ask, index);
    }

    /// Adds the description of a call to the call, or keeps it until the call is made. Returns the title that is known.
    fn describe_requested_call(&mut self, place: EventPlace, id: &str, call: &Value) -> String {
        if id.is_empty() {
            return String::new();
        }
        let Some(index) = self.calls.get(id).copied() else {
            self.requested_calls.insert(id.to_owned(), call.clone());
            return String::new();
        };
        let Some(known) = self.change_call(index, place) else { return String::new() };
        known.merge_description(call);
        known.title.clone()
    }

    pub(super) fn on_answered(&mut self, place: EventPlace, answered: &UserAnswered<Value>) {
        let result = &answered.answer["result"];
        let id = text(&result["outcome"], "optionId");
        let option = self.option_names.get(&(answered.ask, id.to_owned())).cloned();
        let OptionName { name, kind } = option.unwrap_or_default();
        let choices = [text(&answered.answer, "void"), &name, id, text(result, "action")];
        let choice = choices.into_iter().find(|it| !it.is_empty()).unwrap_or("no option chosen");
        let (by, choice) = (answered.by.to_string(), choice.to_owned());
        let Some(index) = self.requests.get(&answered.ask).copied() else {
            let notice = format!("A request was answered by {by}: {choice}");
            self.push(place, ItemContent::notice(notice));
            return;
        };
        if let ItemContent::Request(request) = &mut self.change(index, place).content {
            request.answer = Some(RequestAnswer { by, choice, option_kind: kind });
        }
    }

    pub(super) fn on_learned(&mut self, place: EventPlace, number: u64) {
        let Some(index) = self.requests.get(&number).copied() else { return };
        if let ItemContent::Request(request) = &mut self.change(index, place).content {
            request.is_always = true;
        }
    }
}
