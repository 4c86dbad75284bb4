//! The command lines of a call.

use super::Told;
use crate::Shell;
use serde_json::Value;

/// Keys under which agents put what they run.
const KEYS: &[&str] = &["command", "commands", "cmd", "shell_command", "argv", "script"];

/// What an agent puts before the command in a text for people.
const RUNNING: &str = "Requesting approval to Running: ";

pub(super) fn commands(told: &Told<'_>, kind: Option<&str>) -> Vec<Shell> {
    let input = told.input();
    if is_editor(input, kind) {
        return Vec::new();
    }
    let mut commands = Vec::new();
    for key in KEYS {
        collect(&input[*key], &input["args"], &mut commands);
    }
    if commands.is_empty() {
        for input in told.streamed().filter(|it| !is_editor(it, kind)) {
            for key in KEYS {
                collect(&input[*key], &Value::Null, &mut commands);
            }
        }
    }
    if commands.is_empty()
        && kind == Some("execute")
        && told.text("toolCallId").is_some_and(|it| it.starts_with("run_shell_command"))
    {
        // One agent tells it in the title, and nowhere else.
        commands.extend(told.text("title").map(Shell::of_line));
    }
    let mut kept: Vec<Shell> = Vec::new();
    for command in commands {
        if !kept.contains(&command) {
            kept.push(command);
        }
    }
    kept
}

/// `command` is also what editors of files call what they do: `create`, `view`.
fn is_editor(input: &Value, kind: Option<&str>) -> bool {
    let word = |it: &str| it.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    !matches!(kind, None | Some("execute" | "other"))
        && input["command"].as_str().is_some_and(word)
        && input["path"].is_string()
}

fn collect(value: &Value, rest: &Value, commands: &mut Vec<Shell>) {
    match value {
        Value::String(line) if !line.trim().is_empty() => match strings(rest) {
            // Whether a shell joins them or nobody does is not said: both must be allowed.
            Some(rest) if !rest.is_empty() => {
                let argv: Vec<String> = [line.clone()].into_iter().chain(rest).collect();
                commands.push(Shell::of_argv(&argv));
                commands.push(Shell::of_line(&argv.join(" ")));
            }
            _ => commands.push(Shell::of_line(line)),
        },
        Value::Array(items) => match strings(value) {
            None => items.iter().for_each(|it| {
                let nested = if it.is_object() { &it["command"] } else { it };
                collect(nested, &it["args"], commands);
            }),
            Some(argv) if argv.is_empty() => {}
            // A list of one is a line; of more, a program and its arguments, unless its first is
            // already several words.
            Some(argv) if argv.len() == 1 || argv[0].contains(char::is_whitespace) => {
                commands.extend(argv.iter().map(|it| Shell::of_line(it)));
            }
            Some(argv) => commands.push(Shell::of_argv(&argv)),
        },
        _ => {}
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
}

/// Texts in which a command or a path may stand, of a call that says neither plainly.
pub(super) fn hints(told: &Told<'_>) -> Vec<String> {
    let texts = told.text("title").into_iter().chain(told.texts());
    texts.map(|it| it.strip_prefix(RUNNING).unwrap_or(it).to_owned()).collect()
}
