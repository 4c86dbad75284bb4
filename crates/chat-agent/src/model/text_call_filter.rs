//! Extracts tool calls that a weak model, or a server without a parser for the model, writes into
//! the text.
//!
//! Text is held back from the first characters that may start a call, so that a call is never shown
//! as an answer. If it turns out not to be a call, it is released in full.

use super::{
    reasoning::partial_tag_len,
    text_call_parser::{ParsedCalls, TextCalls, parse_text_calls},
};

/// How a call in the text is delimited. Without a closing tag it lasts to the end of the text.
struct TextCallFormat {
    open: &'static str,
    close: Option<&'static str>,
    /// Whether the opening tag occurs only in calls.
    is_unambiguous: bool,
}

const FORMATS: [TextCallFormat; 8] = [
    TextCallFormat { open: "<tool_call>", close: Some("</tool_call>"), is_unambiguous: true },
    TextCallFormat {
        open: "<function_call>",
        close: Some("</function_call>"),
        is_unambiguous: true,
    },
    TextCallFormat { open: "<function=", close: Some("</function>"), is_unambiguous: true },
    TextCallFormat { open: "<|python_tag|>", close: None, is_unambiguous: true },
    TextCallFormat { open: "[TOOL_CALLS]", close: None, is_unambiguous: true },
    TextCallFormat { open: "```json", close: Some("\n```"), is_unambiguous: false },
    TextCallFormat { open: "```tool_call", close: Some("\n```"), is_unambiguous: true },
    TextCallFormat { open: "```\n", close: Some("\n```"), is_unambiguous: false },
];
/// A text that consists of nothing but the JSON of calls.
const BARE_JSON: TextCallFormat = TextCallFormat { open: "", close: None, is_unambiguous: false };

pub(super) struct TextCallFilter {
    offered: Vec<String>,
    /// What may be the start of a call, or a call that has started.
    held: String,
    open_call: Option<&'static TextCallFormat>,
    /// Whether only white space has been released so far.
    is_blank: bool,
    found: TextCalls,
}

impl TextCallFilter {
    /// `offered` are the names of the offered tools. Without tools, no text is held back.
    pub(super) fn new(offered: Vec<String>) -> TextCallFilter {
        let found = TextCalls::default();
        TextCallFilter { offered, held: String::new(), open_call: None, is_blank: true, found }
    }

    pub(super) fn push(&mut self, text: &str, on_text: &mut dyn FnMut(&str)) {
        if self.offered.is_empty() {
            release_text(text, &mut self.is_blank, on_text);
            return;
        }
        self.held.push_str(text);
        while self.advance(on_text) {}
    }

    /// Ends the text: what is held is parsed as a call or released.
    pub(super) fn finish(mut self, on_text: &mut dyn FnMut(&str)) -> TextCalls {
        while let Some(format) = self.open_call {
            let held = std::mem::take(&mut self.held);
            self.open_call = None;
            self.parse_or_release(format, &held, on_text);
            // The remaining text may contain the start of another call.
            while self.advance(on_text) {}
        }
        release_text(&self.held, &mut self.is_blank, on_text);
        self.found
    }

    /// Makes one step. Returns whether another one may be possible.
    fn advance(&mut self, on_text: &mut dyn FnMut(&str)) -> bool {
        match self.open_call {
            None => self.find_open_tag(on_text),
            Some(format) => self.find_close_tag(format, on_text),
        }
    }

    /// Looks for the start of a call and releases the text before it.
    fn find_open_tag(&mut self, on_text: &mut dyn FnMut(&str)) -> bool {
        let starts_json = self.held.trim_start().starts_with(['{', '[']);
        if self.is_blank && starts_json && !self.may_start_with_tag() {
            self.open_call = Some(&BARE_JSON);
            return true;
        }
        let found = FORMATS
            .iter()
            .filter_map(|format| Some((self.held.find(format.open)?, format)))
            .min_by_key(|(at, _)| *at);
        if let Some((at, format)) = found {
            let held = self.held.split_off(at);
            release_text(&self.held, &mut self.is_blank, on_text);
            self.held = held;
            self.open_call = Some(format);
            return true;
        }
        let keep = FORMATS.iter().map(|it| partial_tag_len(it.open, &self.held)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        // White space at the beginning is held back too, because a bare JSON call may follow.
        if self.is_blank && self.held.trim().is_empty() {
            self.held.push_str(&rest);
        } else {
            release_text(&self.held, &mut self.is_blank, on_text);
            self.held = rest;
        }
        false
    }

    /// Whether the held text may start with a tag. `[TOOL_CALLS]` begins like a JSON list.
    fn may_start_with_tag(&self) -> bool {
        let start = self.held.trim_start();
        FORMATS.iter().any(|it| start.starts_with(it.open) || it.open.starts_with(start))
    }

    /// Looks for the end of the open call, or for text that rules out a call.
    fn find_close_tag(
        &mut self,
        format: &'static TextCallFormat,
        on_text: &mut dyn FnMut(&str),
    ) -> bool {
        let inside = &self.held[format.open.len()..];
        let may_be_call = if format.is_unambiguous {
            may_follow_tag(format, inside)
        } else {
            may_be_call(inside)
        };
        if !may_be_call {
            self.open_call = None;
            // Only the opening tag is released, because the rest may contain another call.
            let end =
                if format.open.is_empty() { self.first_bracket_end() } else { format.open.len() };
            let rest = self.held.split_off(end);
            let beginning = std::mem::replace(&mut self.held, rest);
            release_text(&beginning, &mut self.is_blank, on_text);
            return true;
        }
        let Some(close) = format.close else { return false };
        let Some(at) = inside.find(close) else { return false };
        let rest = self.held.split_off(format.open.len() + at + close.len());
        let held = std::mem::replace(&mut self.held, rest);
        self.open_call = None;
        self.parse_or_release(format, &held, on_text);
        true
    }

    /// Returns the end of the leading white space and of the bracket after it.
    fn first_bracket_end(&self) -> usize {
        self.held.len() - self.held.trim_start().len() + 1
    }

    /// Parses `held`, which is delimited like a call, and releases it if it is not one.
    fn parse_or_release(
        &mut self,
        format: &TextCallFormat,
        held: &str,
        on_text: &mut dyn FnMut(&str),
    ) {
        let inside = &held[format.open.len()..];
        let inside = format.close.and_then(|it| inside.strip_suffix(it)).unwrap_or(inside);
        // Here the tag itself contains the name.
        let inside = if format.open == "<function=" { held } else { inside };
        match parse_text_calls(inside, &self.offered) {
            ParsedCalls::Calls(calls) => self.found.calls.extend(calls),
            ParsedCalls::NotACall if !format.is_unambiguous => {
                release_text(held, &mut self.is_blank, on_text);
            }
            ParsedCalls::Garbled | ParsedCalls::NotACall => {
                self.found.garbled.push(held.trim().to_owned());
            }
        }
    }
}

fn release_text(text: &str, is_blank: &mut bool, on_text: &mut dyn FnMut(&str)) {
    if !text.is_empty() {
        *is_blank &= text.trim().is_empty();
        on_text(text);
    }
}

/// Whether `inside` can follow an unambiguous opening tag. In prose *about* calls it cannot.
fn may_follow_tag(format: &TextCallFormat, inside: &str) -> bool {
    let Some(first) = inside.trim_start().chars().next() else { return true };
    match format.open {
        "<tool_call>" | "<function_call>" | "```tool_call" => matches!(first, '{' | '[' | '<'),
        "<function=" => inside.chars().take_while(|it| *it != '>').all(is_name_char),
        "[TOOL_CALLS]" => matches!(first, '{' | '[') || is_name_char(first),
        _ => true,
    }
}

fn is_name_char(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.')
}

/// The keys that may come first in the JSON of a call.
const CALL_KEYS: [&str; 9] =
    ["name", "type", "function", "arguments", "parameters", "id", "tool", "tool_calls", "input"];

/// Whether this may become a call: an object, or a list of objects, whose first key is one of a
/// call.
fn may_be_call(json: &str) -> bool {
    let inside = json.trim_start();
    let inside = inside.strip_prefix('[').unwrap_or(inside).trim_start();
    let Some(inside) = inside.strip_prefix('{') else { return inside.is_empty() };
    let inside = inside.trim_start();
    let Some(key) = inside.strip_prefix('"') else { return inside.is_empty() };
    match key.split_once('"') {
        Some((key, _)) => CALL_KEYS.contains(&key),
        None => CALL_KEYS.iter().any(|it| it.starts_with(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::TextCallFilter;
    use serde_json::Value;

    /// Returns the released text, the calls as `NAME ARGUMENTS`, and the garbled passages.
    fn filter(text: &str) -> (String, Vec<String>, Vec<String>) {
        let mut shown = String::new();
        let mut filter = TextCallFilter::new(vec!["read".to_owned(), "list".to_owned()]);
        let mut on_text = |text: &str| shown.push_str(text);
        filter.push(text, &mut on_text);
        let found = filter.finish(&mut on_text);
        let call = |it: &Value| {
            let function = &it["function"];
            format!("{} {}", function["name"].as_str().unwrap(), function["arguments"])
        };
        let calls = found.calls.iter().map(call).collect();
        (shown, calls, found.garbled)
    }

    fn assert_calls(text: &str, shown: &str, calls: &[&str]) {
        let expected =
            (shown.to_owned(), calls.iter().map(|it| (*it).to_owned()).collect(), vec![]);
        assert_eq!(filter(text), expected, "{text}");
    }

    const JSON: &str = r#"{"name": "read", "arguments": {"p": 1}}"#;
    const READ: &str = r#"read {"p":1}"#;

    #[test]
    fn each_notation_is_parsed() {
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
    fn text_between_several_calls_is_released() {
        let two = format!("A <tool_call>{JSON}</tool_call> b <tool_call>{JSON}</tool_call> c");
        assert_calls(&two, "A  b  c", &[READ, READ]);
        assert_calls(&format!("<|python_tag|>{JSON}; {JSON}"), "", &[READ, READ]);
        assert_calls(&format!("[TOOL_CALLS][{JSON}, {JSON}]"), "", &[READ, READ]);
        assert_calls(&format!("{JSON}\n{JSON}"), "", &[READ, READ]);
    }

    #[test]
    fn separator_inside_a_string_does_not_split_a_call() {
        let json = r#"{"name": "read", "arguments": {"p": "a};b"}}"#;
        assert_calls(json, "", &[r#"read {"p":"a};b"}"#]);
    }

    #[test]
    fn text_that_is_not_a_call_is_released_in_full() {
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
    fn unparsable_call_is_reported_as_garbled_and_not_released() {
        for text in [
            "<tool_call>{\"name\": \"read\", \"argum</tool_call>",
            "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
            "<function=unknown>{}</function>",
            "<|python_tag|>import os",
            "```json\n{\"name\": \"read\", \"arguments\": {\n```",
            "{\"name\": \"read\", \"arguments\": {\"p\": 1",
        ] {
            assert_eq!(filter(text), (String::new(), vec![], vec![text.to_owned()]), "{text}");
        }
    }

    #[test]
    fn text_is_not_held_back_without_tools() {
        let (mut filter, mut shown) = (TextCallFilter::new(Vec::new()), String::new());
        filter.push("<tool_call>{", &mut |it| shown.push_str(it));
        assert_eq!(shown, "<tool_call>{");
    }

    #[test]
    fn text_is_released_as_soon_as_it_cannot_be_a_call() {
        let mut filter = TextCallFilter::new(vec!["read".to_owned()]);
        let mut shown = Vec::new();
        for fragment in ["Hi <", "b", "> ```json\n{\"a", "\": 1,"] {
            filter.push(fragment, &mut |it| shown.push(it.to_owned()));
        }
        assert_eq!(shown.concat(), "Hi <b> ```json\n{\"a\": 1,");
    }
}
