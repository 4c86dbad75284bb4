//! The behavior of the model, chosen by a word in capitals in the last line that the user typed.

use std::time::Duration;

use serde_json::json;

use super::{
    model_request::ModelRequest,
    tools::{SHELLS, ToolCall, ToolOrder, WRITERS, pick_tool, sample_value},
};

/// One response of the model, in any dialect.
#[derive(Debug, Default)]
pub(crate) struct ReplyScript {
    pub(crate) thoughts: Vec<String>,
    pub(crate) chunks: Vec<String>,
    /// The time between two chunks.
    pub(crate) pause: Duration,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) ending: ReplyEnding,
    pub(crate) error: Option<ScriptedFailure>,
}

/// What happens after the first chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReplyEnding {
    #[default]
    Whole,
    /// Sends nothing more, but keeps the connection.
    Hang,
    /// Drops the connection.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScriptedFailure {
    pub(crate) status: u16,
    /// Only the first request with this line fails.
    pub(crate) once: bool,
}

/// What a word adds to the script.
type ApplyWord = fn(&mut ReplyScript, &ScriptContext<'_>);

/// The words, in the order in which they apply.
const WORDS: &[(&str, ApplyWord)] = &[
    ("THINK", |script, _| script.thoughts = chunks(&["I should ", "think about ", "this first."])),
    ("SLOW", |script, _| {
        script.chunks = (1..=50).map(|it| format!("tick-{it} ")).collect();
        script.pause = Duration::from_millis(200);
    }),
    ("HANG", |script, _| script.ending = ReplyEnding::Hang),
    ("CUT", |script, _| script.ending = ReplyEnding::Cut),
    ("COUNT", |script, context| {
        let count = context.model_request.user_turns.to_string();
        script.chunks = chunks(&["I see ", &count, " user", " messages", "."]);
    }),
    ("LONG", |script, _| {
        let line = "lorem ipsum dolor sit amet, consectetur adipiscing elit";
        script.chunks = (0..3000).map(|it| format!("{it:05} {line}\n")).collect();
        script.pause = Duration::ZERO;
    }),
    ("ECHO", |script, context| {
        let text = context.line.split_once("ECHO").map_or("", |(_, it)| it.trim());
        script.chunks = text.split_inclusive(' ').map(str::to_owned).collect();
    }),
    ("TOOL", |script, context| context.call(script, SHELLS, SAY_HELLO)),
    ("TWOTOOLS", |script, context| {
        context.call(script, SHELLS, SAY_HELLO);
        context.call(script, SHELLS, "echo hello-again");
    }),
    ("TOUCH", |script, context| {
        context.call(script, SHELLS, "touch touched-by-tool.txt && echo hello-from-tool");
    }),
    ("SLEEP", |script, context| {
        context.call(script, SHELLS, "timeout 30 tail -f /dev/null; echo hello-from-tool");
    }),
    ("WRITE", |script, context| {
        // A shell can write, too.
        context.call(script, WRITERS, &format!("echo hello-from-tool | tee {}", context.file));
    }),
];

const SAY_HELLO: &str = "echo hello-from-tool";

/// The request as the words see it.
struct ScriptContext<'a> {
    model_request: &'a ModelRequest,
    line: &'a str,
    /// The path of a written file.
    file: &'a str,
}

impl ScriptContext<'_> {
    /// Calls the first of these tools that is offered, or a tool of the other kind.
    fn call(&self, script: &mut ReplyScript, wanted: &[&str], command: &str) {
        let tools = &self.model_request.tools;
        let tool = [wanted, SHELLS, WRITERS].into_iter().find_map(|it| pick_tool(tools, it));
        let Some(tool) = tool else {
            script.chunks = chunks(&["No tool ", "I know ", "was offered."]);
            return;
        };
        let order = ToolOrder { command, file: self.file, writes: wanted == WRITERS };
        script.calls.push(order.call(tool));
        script.chunks = chunks(&["I will", " run a", " tool."]);
    }
}

/// The response to a request. `file` is the path of a written file if the prompt names none.
pub(crate) fn script(model_request: &ModelRequest, file: &str) -> ReplyScript {
    let mut script = ReplyScript { pause: Duration::from_millis(5), ..ReplyScript::default() };
    if let Some(answer) = &model_request.tool_answer {
        let words: Vec<&str> = answer.split_whitespace().collect();
        let short: String = words.join(" ").chars().take(120).collect();
        script.chunks = chunks(&["The tool", " answered: ", &short, " -", " done."]);
        return script;
    }
    script.chunks = chunks(&["Hello", " from", " the", " fake", " model."]);
    let line = model_request.last_line();
    let named = line.split_whitespace().find(|it| it.starts_with('/'));
    let context = ScriptContext { model_request, line, file: named.unwrap_or(file) };
    let words: Vec<&str> = line.split(|it: char| !it.is_alphanumeric()).collect();
    for (word, apply) in WORDS {
        if words.contains(word) {
            apply(&mut script, &context);
        }
    }
    script.error = words.iter().find_map(|it| failure(it));
    if let Some(schema) = &model_request.schema {
        let schema = if schema.is_null() { &json!({"type": "object"}) } else { schema };
        let chunks = vec![sample_value(schema, "").to_string()];
        return ReplyScript { chunks, error: script.error, ..ReplyScript::default() };
    }
    script
}

/// Parses `ERR429` or `ERR429ONCE`.
fn failure(word: &str) -> Option<ScriptedFailure> {
    let rest = word.strip_prefix("ERR")?;
    let number = rest.strip_suffix("ONCE").unwrap_or(rest);
    let status = number.parse().ok().filter(|it| (400..600).contains(it))?;
    Some(ScriptedFailure { status, once: number != rest })
}

fn chunks(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
