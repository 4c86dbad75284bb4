//! A request to a model in any dialect: the last message, and the offered tools.

use serde_json::Value;

#[derive(Debug, Default)]
pub(crate) struct ModelRequest {
    /// The last text of the user, without the context that agents add.
    pub(crate) user: String,
    pub(crate) user_turns: usize,
    /// The output of the last tool, if no user message follows.
    pub(crate) tool_answer: Option<String>,
    pub(crate) tools: Vec<OfferedTool>,
    /// The JSON schema of the response, if it must be JSON; null allows any object.
    pub(crate) schema: Option<Value>,
}

#[derive(Debug)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    /// JSON schema of its arguments.
    pub(crate) schema: Value,
    pub(crate) form: ToolInput,
    /// The group of the tool, which calls name, too.
    pub(crate) namespace: Option<String>,
}

/// The input format of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolInput {
    /// A JSON object that fits the schema.
    Arguments,
    /// A patch, as text.
    Patch,
    /// JavaScript that calls further tools.
    Code,
}

impl OfferedTool {
    pub(crate) fn function(name: &str, schema: &Value) -> OfferedTool {
        let (name, schema) = (name.to_owned(), schema.clone());
        OfferedTool { name, schema, form: ToolInput::Arguments, namespace: None }
    }
}

impl ModelRequest {
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

    /// The line that chooses the script. Agents may merge turns that were never answered, so only the last line counts.
    pub(crate) fn last_line(&self) -> &str {
        self.user.lines().rev().map(str::trim).find(|it| !it.is_empty()).unwrap_or_default()
    }
}

/// The text of a message whose content is a string or a list of parts.
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

/// Drops `<context>…</context>` blocks. If nothing remains, the prompt itself was wrapped: then only the tags are
/// dropped.
fn typed_by_user(text: &str) -> String {
    let bare = without_blocks(text);
    let wrapped =
        bare.trim().is_empty() && ["<user", "<task", "<prompt"].iter().any(|it| text.contains(it));
    if wrapped { without_tags(text) } else { bare }
}

fn without_blocks(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        result.push_str(before);
        let length = block_length(tag);
        result.push_str(if length.is_some() { "" } else { "<" });
        rest = &tag[length.unwrap_or(1)..];
    }
    result + rest
}

/// The length of the block that starts here, from `<name` to `</name>`.
fn block_length(text: &str) -> Option<usize> {
    let name =
        text[1..].split(|it: char| !it.is_alphanumeric() && it != '-' && it != '_').next()?;
    name.starts_with(|it: char| it.is_ascii_alphabetic()).then_some(())?;
    let end = format!("</{name}>");
    Some(text.find(&end)? + end.len())
}

fn without_tags(text: &str) -> String {
    let mut result = String::new();
    for (index, part) in text.split('<').enumerate() {
        let after = if index == 0 { Some(part) } else { part.split_once('>').map(|(_, it)| it) };
        result.push_str(after.unwrap_or_default());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::ModelRequest;

    fn user(text: &str) -> String {
        let mut model_request = ModelRequest::default();
        model_request.add_user(text);
        model_request.last_line().to_owned()
    }

    #[test]
    fn context_around_a_prompt_is_ignored() {
        assert_eq!(user("<info-msg>\nIt is TOOL time\n</info-msg>\nCOUNT please"), "COUNT please");
        assert_eq!(user("COUNT\n<env cwd=\"/\">WRITE</env>"), "COUNT");
        assert_eq!(user("<user_query>\nTOOL\n</user_query>"), "TOOL");
        assert_eq!(user("is 1 < 2? SLOW"), "is 1 < 2? SLOW");
    }

    #[test]
    fn message_with_only_context_is_not_a_user_turn() {
        let mut model_request = ModelRequest::default();
        model_request.add_user("first");
        model_request.add_user("<context>nobody typed this</context>");
        assert_eq!((model_request.user.as_str(), model_request.user_turns), ("first", 1));
    }
}
