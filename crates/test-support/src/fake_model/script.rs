//! What the model does, chosen by a word in capitals in the last line the user typed.

use std::time::Duration;

use serde_json::json;

use super::{
    talk::Talk,
    tools::{Call, Order, SHELLS, WRITERS, pick, sample},
};

/// One answer of the model, whatever the dialect it is written in.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) thoughts: Vec<String>,
    pub(crate) chunks: Vec<String>,
    /// Between two chunks.
    pub(crate) pause: Duration,
    pub(crate) calls: Vec<Call>,
    pub(crate) ending: Ending,
    pub(crate) error: Option<Failure>,
}

/// What happens after the first chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ending {
    #[default]
    Whole,
    /// Nothing more comes, but the connection stays.
    Hang,
    /// The connection is dropped.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    /// Only the first request with these words fails.
    pub(crate) once: bool,
}

/// What a word adds to the script.
type Act = fn(&mut Script, &Scene<'_>);

/// The words, in the order in which they act.
const WORDS: &[(&str, Act)] = &[
    ("THINK", |script, _| script.thoughts = chunks(&["I should ", "think about ", "this first."])),
    ("SLOW", |script, _| {
        script.chunks = (1..=50).map(|it| format!("tick-{it} ")).collect();
        script.pause = Duration::from_millis(200);
    }),
    ("HANG", |script, _| script.ending = Ending::Hang),
    ("CUT", |script, _| script.ending = Ending::Cut),
    ("COUNT", |script, scene| {
        let count = scene.talk.user_turns.to_string();
        script.chunks = chunks(&["I see ", &count, " user", " messages", "."]);
    }),
    ("LONG", |script, _| {
        let line = "lorem ipsum dolor sit amet, consectetur adipiscing elit";
        script.chunks = (0..3000).map(|it| format!("{it:05} {line}\n")).collect();
        script.pause = Duration::ZERO;
    }),
    ("ECHO", |script, scene| {
        let said = scene.line.split_once("ECHO").map_or("", |(_, it)| it.trim());
        script.chunks = said.split_inclusive(' ').map(str::to_owned).collect();
    }),
    ("TOOL", |script, scene| scene.call(script, SHELLS, SAY_HELLO)),
    ("TWOTOOLS", |script, scene| {
        scene.call(script, SHELLS, SAY_HELLO);
        scene.call(script, SHELLS, "echo hello-again");
    }),
    ("TOUCH", |script, scene| {
        scene.call(script, SHELLS, "touch touched-by-tool.txt && echo hello-from-tool");
    }),
    ("SLEEP", |script, scene| {
        scene.call(script, SHELLS, "timeout 30 tail -f /dev/null; echo hello-from-tool");
    }),
    ("WRITE", |script, scene| {
        // A shell can write too.
        scene.call(script, WRITERS, &format!("echo hello-from-tool | tee {}", scene.file));
    }),
];

const SAY_HELLO: &str = "echo hello-from-tool";

/// What a word can look at.
struct Scene<'a> {
    talk: &'a Talk,
    line: &'a str,
    /// Where a file goes.
    file: &'a str,
}

impl Scene<'_> {
    /// A call of the first of these tools that is offered; another kind of tool will do.
    fn call(&self, script: &mut Script, wanted: &[&str], command: &str) {
        let tools = &self.talk.tools;
        let tool = [wanted, SHELLS, WRITERS].into_iter().find_map(|it| pick(tools, it));
        let Some(tool) = tool else {
            script.chunks = chunks(&["No tool ", "I know ", "was offered."]);
            return;
        };
        let order = Order { command, file: self.file, writes: wanted == WRITERS };
        script.calls.push(order.call(tool));
        script.chunks = chunks(&["I will", " run a", " tool."]);
    }
}

/// The answer to a request. `file` is where a written file goes if the prompt names no path.
pub(crate) fn script(talk: &Talk, file: &str) -> Script {
    let mut script = Script { pause: Duration::from_millis(5), ..Script::default() };
    if let Some(answer) = &talk.tool_answer {
        let words: Vec<&str> = answer.split_whitespace().collect();
        let short: String = words.join(" ").chars().take(120).collect();
        script.chunks = chunks(&["The tool", " answered: ", &short, " -", " done."]);
        return script;
    }
    script.chunks = chunks(&["Hello", " from", " the", " fake", " model."]);
    let line = talk.last_line();
    let named = line.split_whitespace().find(|it| it.starts_with('/'));
    let scene = Scene { talk, line, file: named.unwrap_or(file) };
    let words: Vec<&str> = line.split(|it: char| !it.is_alphanumeric()).collect();
    for (word, act) in WORDS {
        if words.contains(word) {
            act(&mut script, &scene);
        }
    }
    script.error = words.iter().find_map(|it| failure(it));
    if let Some(schema) = &talk.schema {
        let schema = if schema.is_null() { &json!({"type": "object"}) } else { schema };
        let chunks = vec![sample(schema, "").to_string()];
        return Script { chunks, error: script.error, ..Script::default() };
    }
    script
}

/// `ERR429` or `ERR429ONCE`.
fn failure(word: &str) -> Option<Failure> {
    let rest = word.strip_prefix("ERR")?;
    let number = rest.strip_suffix("ONCE").unwrap_or(rest);
    let status = number.parse().ok().filter(|it| (400..600).contains(it))?;
    Some(Failure { status, once: number != rest })
}

fn chunks(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
