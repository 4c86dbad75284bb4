//! Calls that a weak model, or a server without a parser for it, writes into the text.
//!
//! From what may be their beginning on, text is held back: a call is never shown as an answer. What
//! turns out to be none is released in full.

use super::{
    thinking::start_of,
    written::{Reading, Written, read_calls},
};

/// How a call in the text begins, and how it ends; without an end it lasts to the end of the text.
struct Form {
    open: &'static str,
    close: Option<&'static str>,
    /// Nobody begins like this who does not mean a call.
    sure: bool,
}

const FORMS: [Form; 8] = [
    Form { open: "<tool_call>", close: Some("</tool_call>"), sure: true },
    Form { open: "<function_call>", close: Some("</function_call>"), sure: true },
    Form { open: "<function=", close: Some("</function>"), sure: true },
    Form { open: "<|python_tag|>", close: None, sure: true },
    Form { open: "[TOOL_CALLS]", close: None, sure: true },
    Form { open: "```json", close: Some("\n```"), sure: false },
    Form { open: "```tool_call", close: Some("\n```"), sure: true },
    Form { open: "```\n", close: Some("\n```"), sure: false },
];
/// A text that begins with it and is nothing else.
const BARE: Form = Form { open: "", close: None, sure: false };

pub(super) struct Screen {
    offered: Vec<String>,
    /// What may be a beginning, or a call that has begun.
    held: String,
    begun: Option<&'static Form>,
    /// Nothing but white space was released.
    blank: bool,
    written: Written,
}

impl Screen {
    /// Without tools on offer there are no calls, and nothing is held back.
    pub(super) fn new(offered: Vec<String>) -> Screen {
        let written = Written::default();
        Screen { offered, held: String::new(), begun: None, blank: true, written }
    }

    pub(super) fn push(&mut self, text: &str, tell: &mut dyn FnMut(&str)) {
        if self.offered.is_empty() {
            release(text, &mut self.blank, tell);
            return;
        }
        self.held.push_str(text);
        while self.advance(tell) {}
    }

    /// The text ended: what is held is a call, or it is released.
    pub(super) fn finish(mut self, tell: &mut dyn FnMut(&str)) -> Written {
        while let Some(form) = self.begun {
            let held = std::mem::take(&mut self.held);
            self.begun = None;
            self.settle(form, &held, tell);
            // What was released may hold another beginning.
            while self.advance(tell) {}
        }
        release(&self.held, &mut self.blank, tell);
        self.written
    }

    /// One step; whether another may be possible.
    fn advance(&mut self, tell: &mut dyn FnMut(&str)) -> bool {
        match self.begun {
            None => self.look(tell),
            Some(form) => self.close(form, tell),
        }
    }

    /// Looks for a beginning and releases what is before it.
    fn look(&mut self, tell: &mut dyn FnMut(&str)) -> bool {
        if self.blank && self.held.trim_start().starts_with(['{', '[']) && !self.opens_at_start() {
            self.begun = Some(&BARE);
            return true;
        }
        let found = FORMS
            .iter()
            .filter_map(|form| Some((self.held.find(form.open)?, form)))
            .min_by_key(|(at, _)| *at);
        if let Some((at, form)) = found {
            let held = self.held.split_off(at);
            release(&self.held, &mut self.blank, tell);
            self.held = held;
            self.begun = Some(form);
            return true;
        }
        let keep = FORMS.iter().map(|form| start_of(form.open, &self.held)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        // White space before a bare call is not told, in case it is one.
        if self.blank && self.held.trim().is_empty() {
            self.held.push_str(&rest);
        } else {
            release(&self.held, &mut self.blank, tell);
            self.held = rest;
        }
        false
    }

    /// `[TOOL_CALLS]` begins like a list.
    fn opens_at_start(&self) -> bool {
        let start = self.held.trim_start();
        FORMS.iter().any(|it| start.starts_with(it.open) || it.open.starts_with(start))
    }

    /// Looks for the end of the call that has begun, or for what makes it none.
    fn close(&mut self, form: &'static Form, tell: &mut dyn FnMut(&str)) -> bool {
        let inside = &self.held[form.open.len()..];
        let doubt = if form.sure { !may_follow(form, inside) } else { !may_be_call(inside) };
        if doubt {
            self.begun = None;
            // Only the beginning is released: the rest is looked at again.
            let end = if form.open.is_empty() { self.first_char_end() } else { form.open.len() };
            let rest = self.held.split_off(end);
            let beginning = std::mem::replace(&mut self.held, rest);
            release(&beginning, &mut self.blank, tell);
            return true;
        }
        let Some(close) = form.close else { return false };
        let Some(at) = inside.find(close) else { return false };
        let rest = self.held.split_off(form.open.len() + at + close.len());
        let held = std::mem::replace(&mut self.held, rest);
        self.begun = None;
        self.settle(form, &held, tell);
        true
    }

    /// Behind the white space and the bracket that made it look like a call.
    fn first_char_end(&self) -> usize {
        self.held.len() - self.held.trim_start().len() + 1
    }

    /// `held` is a call from its beginning to its end, or none.
    fn settle(&mut self, form: &Form, held: &str, tell: &mut dyn FnMut(&str)) {
        let inside = &held[form.open.len()..];
        let inside = form.close.and_then(|it| inside.strip_suffix(it)).unwrap_or(inside);
        // The name stands in the tag itself.
        let inside = if form.open == "<function=" { held } else { inside };
        match read_calls(inside, &self.offered) {
            Reading::Calls(calls) => self.written.calls.extend(calls),
            Reading::Garbled => self.written.garbled.push(held.trim().to_owned()),
            Reading::Other if form.sure => self.written.garbled.push(held.trim().to_owned()),
            Reading::Other => release(held, &mut self.blank, tell),
        }
    }
}

fn release(text: &str, blank: &mut bool, tell: &mut dyn FnMut(&str)) {
    if !text.is_empty() {
        *blank &= text.trim().is_empty();
        tell(text);
    }
}

/// Whether this can stand behind a beginning that is sure: in prose *about* calls it cannot.
fn may_follow(form: &Form, inside: &str) -> bool {
    let Some(first) = inside.trim_start().chars().next() else { return true };
    match form.open {
        "<tool_call>" | "<function_call>" | "```tool_call" => matches!(first, '{' | '[' | '<'),
        "<function=" => inside.chars().take_while(|it| *it != '>').all(is_of_name),
        "[TOOL_CALLS]" => matches!(first, '{' | '[') || is_of_name(first),
        _ => true,
    }
}

fn is_of_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.')
}

/// Keys with which a call in JSON begins.
const KEYS: [&str; 9] =
    ["name", "type", "function", "arguments", "parameters", "id", "tool", "tool_calls", "input"];

/// Whether this may become a call: an object, or a list of them, whose first key is one of a call.
fn may_be_call(json: &str) -> bool {
    let inside = json.trim_start();
    let inside = inside.strip_prefix('[').unwrap_or(inside).trim_start();
    let Some(inside) = inside.strip_prefix('{') else { return inside.is_empty() };
    let inside = inside.trim_start();
    let Some(key) = inside.strip_prefix('"') else { return inside.is_empty() };
    match key.split_once('"') {
        Some((key, _)) => KEYS.contains(&key),
        None => KEYS.iter().any(|it| it.starts_with(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::Screen;
    use serde_json::Value;

    /// The text that was shown, the calls as `NAME ARGUMENTS`, and what could not be read.
    fn screened(text: &str) -> (String, Vec<String>, Vec<String>) {
        let mut shown = String::new();
        let mut screen = Screen::new(vec!["read".to_owned(), "list".to_owned()]);
        let mut tell = |text: &str| shown.push_str(text);
        screen.push(text, &mut tell);
        let written = screen.finish(&mut tell);
        let call = |it: &Value| {
            let function = &it["function"];
            format!("{} {}", function["name"].as_str().unwrap(), function["arguments"])
        };
        let calls = written.calls.iter().map(call).collect();
        (shown, calls, written.garbled)
    }

    fn assert_calls(text: &str, shown: &str, calls: &[&str]) {
        let expected =
            (shown.to_owned(), calls.iter().map(|it| (*it).to_owned()).collect(), vec![]);
        assert_eq!(screened(text), expected, "{text}");
    }

    const JSON: &str = r#"{"name": "read", "arguments": {"p": 1}}"#;
    const READ: &str = r#"read {"p":1}"#;

    #[test]
    fn each_notation_is_read() {
        for text in [
            format!("<tool_call>\n{JSON}\n</tool_call>"),
            format!("<tool_call>{JSON}"),
            format!("<function_call>{JSON}</function_call>"),
            "<function=read>{\"p\": 1}</function>".to_owned(),
            "<tool_call>\n<function=read>\n<parameter=p>\n1\n</parameter>\n</function>\n</tool_call>".to_owned(),
            format!("<|python_tag|>{JSON}<|eom_id|>"),
            format!("[TOOL_CALLS][{JSON}]"),
            "[TOOL_CALLS]read[ARGS]{\"p\": 1}".to_owned(),
            format!("```json\n{JSON}\n```"),
            format!("```\n{JSON}\n```"),
            format!("```tool_call\n{JSON}\n```"),
            JSON.to_owned(),
            format!("[{JSON}]"),
            r#"{"type":"function","name":"read","parameters":{"p":1}}"#.to_owned(),
            r#"{"type":"function","function":{"name":"read","arguments":{"p":1}}}"#.to_owned(),
            r#"{"tool_calls":[{"function":{"name":"read","arguments":{"p":1}}}]}"#.to_owned(),
        ] {
            assert_calls(&text, "", &[READ]);
        }
    }

    #[test]
    fn several_calls_are_several_and_the_text_between_stays() {
        let two = format!("A <tool_call>{JSON}</tool_call> b <tool_call>{JSON}</tool_call> c");
        assert_calls(&two, "A  b  c", &[READ, READ]);
        assert_calls(&format!("<|python_tag|>{JSON}; {JSON}"), "", &[READ, READ]);
        assert_calls(&format!("[TOOL_CALLS][{JSON}, {JSON}]"), "", &[READ, READ]);
        assert_calls(&format!("{JSON}\n{JSON}"), "", &[READ, READ]);
    }

    #[test]
    fn a_text_with_the_end_of_a_call_inside_a_string_is_one_call() {
        let json = r#"{"name": "read", "arguments": {"p": "a};b"}}"#;
        assert_calls(json, "", &[r#"read {"p":"a};b"}"#]);
    }

    #[test]
    fn what_is_no_call_is_released_in_full() {
        for text in [
            "hello",
            "{\"name\": \"my-package\", \"version\": \"1\"}",
            "```json\n{\"name\": \"other\", \"arguments\": {}}\n```\nok",
            "```json\n{\"a\": 1}\n```",
            "```\nls -l\n```",
            "Write `<tool_call>` to call.",
            "a <b> [c] {d} `e` <",
            "[1, 2]",
            "{",
            "  \n",
            "Use <function=name with a space>",
        ] {
            assert_calls(text, text, &[]);
        }
    }

    #[test]
    fn what_looks_like_a_call_and_cannot_be_read_is_told_and_not_shown() {
        for text in [
            "<tool_call>{\"name\": \"read\", \"argum</tool_call>",
            "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
            "<function=unknown>{}</function>",
            "<|python_tag|>import os",
            "```json\n{\"name\": \"read\", \"arguments\": {\n```",
            "{\"name\": \"read\", \"arguments\": {\"p\": 1",
        ] {
            assert_eq!(screened(text), (String::new(), vec![], vec![text.to_owned()]), "{text}");
        }
    }

    #[test]
    fn without_tools_nothing_is_held_back() {
        let (mut screen, mut shown) = (Screen::new(Vec::new()), String::new());
        screen.push("<tool_call>{", &mut |it| shown.push_str(it));
        assert_eq!(shown, "<tool_call>{");
    }

    #[test]
    fn text_is_shown_as_soon_as_it_can_be_no_call() {
        let mut screen = Screen::new(vec!["read".to_owned()]);
        let mut shown = Vec::new();
        for piece in ["Hi <", "b", "> ```json\n{\"a", "\": 1,"] {
            screen.push(piece, &mut |it| shown.push(it.to_owned()));
        }
        assert_eq!(shown.concat(), "Hi <b> ```json\n{\"a\": 1,");
    }
}
