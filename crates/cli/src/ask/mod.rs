//! What an agent asks of us: may I? Shown to a person, or answered by the caller's rules.

mod facts;
mod open;
mod rule;

pub(crate) use open::{OpenAsk, open_asks};
pub(crate) use rule::{Approve, OnAsk, Rules, Verdict};

use crate::out::{BRIGHT, DIM, NAME, one_line, paint};
use jackfield_protocol::Frame;
use jackfield_protocol::acp::Method;
use jackfield_views::text::Tool;
use serde_json::{Value, json};

pub(crate) const TITLE_CHARS_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 80;

/// A permission request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// The JSON text of the request's id.
    pub(crate) id: String,
    pub(crate) tool: Tool,
    options: Vec<Choice>,
    /// What it is about, line by line, as the daemon reads it; nothing if the daemon does not say.
    facts: Vec<(&'static str, String)>,
    /// A rule of the policy wants a person to be asked.
    pub(crate) ruled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    /// What a person types.
    key: String,
    id: String,
    name: String,
    kind: String,
}

impl Choice {
    /// Its name on one line: an agent cannot make it look like two.
    fn shown(&self) -> String {
        one_line(&self.name, NAME_CHARS_MAX)
    }
}

impl Ask {
    /// Reads a request; `None` if it is none that we can answer.
    pub(crate) fn parse(frame: &Frame, tool_of: &mut dyn FnMut(&Value) -> Tool) -> Option<Ask> {
        if !frame.is_method(Method::SessionRequestPermission) {
            return None;
        }
        let params: Value = serde_json::from_str(frame.params()?).ok()?;
        params["options"].as_array()?;
        let options = choices(&params["options"]);
        let ruled = params["_meta"]["jackfield"]["policy"]["effect"] == "ask";
        let tool = tool_of(&params["toolCall"]);
        let mut facts = facts::read(&params["_meta"]["jackfield"]["call"]);
        facts.extend(facts::changes(&params["toolCall"]["content"]));
        Some(Ask { id: frame.id()?.to_owned(), tool, options, facts, ruled })
    }

    /// What the agent wants to do, in one line: as the daemon reads it, and then as the agent calls it.
    pub(crate) fn summary(&self) -> String {
        let title = one_line(&self.tool.title, TITLE_CHARS_MAX);
        let is_action = |it: &&(&str, String)| matches!(it.0, "runs" | "MCP" | "touches");
        let actions: Vec<String> =
            self.facts.iter().filter(is_action).map(|it| format!("{} {}", it.0, it.1)).collect();
        let actions = one_line(&actions.join("; "), TITLE_CHARS_MAX);
        match (actions.is_empty(), title.is_empty()) {
            (true, true) => "use a tool".to_owned(),
            (true, false) => title,
            (false, true) => actions,
            (false, false) => format!("{actions}, called \"{title}\""),
        }
    }

    /// What can be chosen, by name.
    pub(crate) fn offers(&self) -> Vec<String> {
        self.options.iter().map(Choice::shown).collect()
    }

    /// The question: who asks, what it is about, and which keys. What the agent itself says of it comes last.
    pub(crate) fn question(&self, agent: &str) -> String {
        let mut text = paint(NAME, format!("{agent} asks:"));
        if self.facts.is_empty() {
            text.extend([" ", &self.summary()]);
        } else {
            for (label, fact) in &self.facts {
                text.extend(["\n  ", &paint(DIM, format!("{label:<9}")), fact]);
            }
            let words = one_line(&self.tool.title, TITLE_CHARS_MAX);
            if !words.is_empty() {
                text.extend(["\n  ", &paint(DIM, "the agent calls it: "), &words]);
            }
            text.push('\n');
        }
        for option in &self.options {
            text.extend(["  [", &paint(BRIGHT, &option.key), "] ", &option.shown()]);
        }
        text
    }

    /// The answer that a typed line means, if it means one.
    pub(crate) fn typed(&self, line: &str) -> Option<Value> {
        let line = line.trim();
        let is_it = |it: &&Choice| it.key.eq_ignore_ascii_case(line) || it.id == line;
        self.options.iter().find(is_it).map(selected)
    }

    /// Allows it, this once.
    pub(crate) fn allow(&self) -> Option<Value> {
        self.options.iter().find(|it| it.kind == "allow_once").map(selected)
    }

    /// Refuses it, this once; without such an option the ask is only ended.
    pub(crate) fn deny(&self) -> Value {
        let refusal = self.options.iter().find(|it| it.kind == "reject_once");
        refusal.map_or_else(|| json!({ "outcome": { "outcome": "cancelled" } }), selected)
    }

    /// An answer in words: the name of the option it chose.
    pub(crate) fn name_of(&self, answer: &Value) -> String {
        let chosen = answer["outcome"]["optionId"].as_str();
        let option = self.options.iter().find(|it| Some(it.id.as_str()) == chosen);
        option.map_or_else(|| "no option chosen".to_owned(), Choice::shown)
    }
}

/// The options, each with a key of its own.
fn choices(options: &Value) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for option in options.as_array().into_iter().flatten() {
        let text = |name: &str| option[name].as_str().unwrap_or_default().to_owned();
        let key = key(&text("kind"), &choices);
        let (id, name, kind) = (text("optionId"), text("name"), text("kind"));
        choices.push(Choice { key, id, name, kind });
    }
    choices
}

fn selected(option: &Choice) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option.id } })
}

/// The first option of a kind gets a letter, every other one its place in the list.
fn key(kind: &str, before: &[Choice]) -> String {
    let letter = match kind {
        "allow_once" => "y",
        "allow_always" => "a",
        "reject_once" => "n",
        "reject_always" => "never",
        _ => "",
    };
    if letter.is_empty() || before.iter().any(|it| it.key == letter) {
        (before.len() + 1).to_string()
    } else {
        letter.to_owned()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn ask(kind: &str, options: &[(&str, &str)]) -> Ask {
        let options: Vec<Value> = options
            .iter()
            .map(|(id, kind)| json!({ "optionId": id, "name": id, "kind": kind }))
            .collect();
        let params = json!({
            "sessionId": "s-1",
            "toolCall": { "toolCallId": "t1", "title": "run `cargo test`", "kind": kind },
            "options": options,
        });
        let frame =
            Frame::request("7", Method::SessionRequestPermission.name(), &params.to_string());
        let tool = |call: &Value| Tool {
            title: call["title"].as_str().unwrap_or_default().to_owned(),
            kind: call["kind"].as_str().unwrap_or_default().to_owned(),
        };
        Ask::parse(&frame, &mut { tool }).unwrap()
    }

    const FOUR: &[(&str, &str)] = &[
        ("once", "allow_once"),
        ("project", "allow_always"),
        ("all", "allow_always"),
        ("no", "reject_once"),
    ];

    #[test]
    fn every_option_has_a_key_of_its_own() {
        let ask = ask("execute", FOUR);
        let keys: Vec<&str> = ask.options.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["y", "a", "3", "n"]);
        let chosen = |line: &str| Some(ask.typed(line)?["outcome"]["optionId"].clone());
        assert_eq!(chosen(" Y "), Some("once".into()));
        assert_eq!(chosen("3"), Some("all".into()));
        assert_eq!(chosen("project"), Some("project".into()));
        assert_eq!(chosen("maybe"), None);
    }

    #[test]
    fn what_we_choose_ourselves_is_never_permanent() {
        let ask = ask("execute", &[("ever", "allow_always"), ("never", "reject_always")]);
        assert_eq!(ask.allow(), None);
        assert_eq!(ask.deny()["outcome"]["outcome"], "cancelled");
    }

    #[test]
    fn other_requests_are_none_of_our_business() {
        let frame = Frame::request("7", Method::FsReadTextFile.name(), "{}");
        assert!(Ask::parse(&frame, &mut |_| Tool::default()).is_none());
    }
}
