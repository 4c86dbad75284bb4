//! A part of a transcript while it goes on: what was said and done, in the order in which it began.
//! A call or an ask stands where it was first heard of, with what became of it.

use super::{
    call::Call,
    item::{Among, Ask, Item},
};
use crate::text::facts::{text, words_of};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Section {
    items: Vec<Item>,
    /// Where the calls and the asks stand.
    calls: BTreeMap<String, usize>,
    asks: BTreeMap<u64, usize>,
    plan: Option<usize>,
}

impl Section {
    /// One `session/update`.
    pub(super) fn update(&mut self, update: &Value) {
        let words = || words_of(&update["content"]);
        match text(update, "sessionUpdate") {
            "agent_message_chunk" => self.say(text(update, "messageId"), words()),
            "agent_thought_chunk" => match self.items.last_mut() {
                Some(Item::Thought(thought)) => thought.push_str(&words()),
                _ => self.items.push(Item::Thought(words())),
            },
            "user_message_chunk" => match self.items.last_mut() {
                Some(Item::User(said)) => said.push_str(&words()),
                _ => self.items.push(Item::User(words())),
            },
            "tool_call" | "tool_call_update" => {
                let call = self.call(text(update, "toolCallId"));
                call.learn(update);
                call.made = true;
            }
            "plan" => self.plan(update["entries"].clone()),
            "current_mode_update" => {
                self.remark(format!("mode: {}", text(update, "currentModeId")));
            }
            _ => {}
        }
    }

    pub(super) fn remark(&mut self, text: String) {
        self.items.push(Item::Remark(text));
    }

    /// The last lines that an agent printed.
    pub(super) fn print(&mut self, lines: &[&str]) {
        self.items.push(Item::Printed(lines.join("\n")));
    }

    /// The agent asks something.
    pub(super) fn ask(&mut self, number: u64, ask: Ask, call: &Value) {
        self.asks.insert(number, self.items.len());
        let id = ask.call.clone();
        self.items.push(Item::Ask(ask));
        if let Some(id) = id {
            self.call(&id).learn(call);
        }
    }

    pub(super) fn asked(&mut self, number: u64) -> Option<&mut Ask> {
        match self.items.get_mut(*self.asks.get(&number)?) {
            Some(Item::Ask(ask)) => Some(ask),
            _ => None,
        }
    }

    /// Markdown of all of it. What a user said is left out where it is the prompt, said back.
    pub(super) fn render(&self, prompt: &str) -> Vec<String> {
        let among = Among::of(&self.items);
        let said_back =
            |it: &&Item| matches!(it, Item::User(words) if words.trim() == prompt.trim());
        let shown = self.items.iter().filter(|it| !said_back(it)).map(|it| it.render(&among));
        shown.filter(|it| !it.is_empty()).collect()
    }

    fn say(&mut self, id: &str, words: String) {
        match self.items.last_mut() {
            Some(Item::Words { message, text }) if message == id => text.push_str(&words),
            _ => self.items.push(Item::Words { message: id.to_owned(), text: words }),
        }
    }

    fn call(&mut self, id: &str) -> &mut Call {
        let at = *self.calls.entry(id.to_owned()).or_insert(self.items.len());
        if at == self.items.len() {
            self.items.push(Item::Call(Box::new(Call::new(id))));
        }
        let Item::Call(call) = &mut self.items[at] else {
            unreachable!("calls stay where they are")
        };
        call
    }

    /// A plan is told again whenever a step is done: the last one stands where the first was.
    fn plan(&mut self, entries: Value) {
        let at = *self.plan.get_or_insert(self.items.len());
        match self.items.get_mut(at) {
            Some(known) => *known = Item::Plan(entries),
            None => self.items.push(Item::Plan(entries)),
        }
    }
}
