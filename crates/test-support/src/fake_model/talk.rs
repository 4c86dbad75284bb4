//! A request to a model, whatever its dialect: who said what last, and which tools are offered.

use serde_json::Value;

#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// What the user typed last, without the context agents put around it.
    pub(crate) user: String,
    pub(crate) user_turns: usize,
    /// What the last tool answered, if nobody has spoken since.
    pub(crate) tool_answer: Option<String>,
    pub(crate) tools: Vec<Tool>,
    /// JSON schema of the answer, if it shall be JSON; null: any object.
    pub(crate) schema: Option<Value>,
}

#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// JSON schema of its arguments.
    pub(crate) schema: Value,
    pub(crate) form: Form,
    /// The group it is in; its calls say so too.
    pub(crate) namespace: Option<String>,
}

/// What a tool is fed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A JSON object that fits the schema.
    Arguments,
    /// A patch, as text.
    Patch,
    /// JavaScript that calls further tools.
    Code,
}

impl Tool {
    pub(crate) fn function(name: &str, schema: &Value) -> Tool {
        let (name, schema) = (name.to_owned(), schema.clone());
        Tool { name, schema, form: Form::Arguments, namespace: None }
    }
}

impl Talk {
    pub(crate) fn add_user(&mut self, text: &str) {
        let text = typed_by_user(text);
        if !text.trim().is_empty() {
            self.user = text;
            self.user_turns += 1;
            self.tool_answer = None;
        }
    }

    pub(crate) fn add_tool_answer(&mut self, text: String) {
        self.tool_answer = Some(text);
    }

    /// The line that chooses the script: agents may merge turns that were never answered, so only
    /// the last one counts.
    pub(crate) fn last_line(&self) -> &str {
        self.user.lines().rev().map(str::trim).find(|it| !it.is_empty()).unwrap_or_default()
    }
}

/// The text of a message whose content is a string, or a list of parts.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|it| it.as_str().or(it["text"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Drops `<context>…</context>` blocks. If nothing is left, the prompt itself was wrapped: then
/// only the tags go.
fn typed_by_user(text: &str) -> String {
    let bare = without_blocks(text);
    let wrapped =
        bare.trim().is_empty() && ["<user", "<task", "<prompt"].iter().any(|it| text.contains(it));
    if wrapped { without_tags(text) } else { bare }
}

fn without_blocks(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        kept.push_str(before);
        let length = block_length(tag);
        kept.push_str(if length.is_some() { "" } else { "<" });
        rest = &tag[length.unwrap_or(1)..];
    }
    kept + rest
}

/// How long the block is that begins here, from `<name` to `</name>`.
fn block_length(text: &str) -> Option<usize> {
    let name =
        text[1..].split(|it: char| !it.is_alphanumeric() && it != '-' && it != '_').next()?;
    name.starts_with(|it: char| it.is_ascii_alphabetic()).then_some(())?;
    let end = format!("</{name}>");
    Some(text.find(&end)? + end.len())
}

fn without_tags(text: &str) -> String {
    let mut kept = String::new();
    for (index, part) in text.split('<').enumerate() {
        let after = if index == 0 { Some(part) } else { part.split_once('>').map(|(_, it)| it) };
        kept.push_str(after.unwrap_or_default());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::Talk;

    fn user(text: &str) -> String {
        let mut talk = Talk::default();
        talk.add_user(text);
        talk.last_line().to_owned()
    }

    #[test]
    fn what_agents_put_around_a_prompt_is_not_the_prompt() {
        assert_eq!(user("<info-msg>\nIt is TOOL time\n</info-msg>\nCOUNT please"), "COUNT please");
        assert_eq!(user("COUNT\n<env cwd=\"/\">WRITE</env>"), "COUNT");
        assert_eq!(user("<user_query>\nTOOL\n</user_query>"), "TOOL");
        assert_eq!(user("is 1 < 2? SLOW"), "is 1 < 2? SLOW");
    }

    #[test]
    fn a_message_of_context_alone_is_no_turn_of_the_user() {
        let mut talk = Talk::default();
        talk.add_user("first");
        talk.add_user("<context>nobody typed this</context>");
        assert_eq!((talk.user.as_str(), talk.user_turns), ("first", 1));
    }
}
