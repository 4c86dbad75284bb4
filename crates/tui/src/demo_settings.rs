//! The settings and the queue of a session that the tests share.

use crate::hub::{QueuedPrompt, SessionCommand, SessionSettings};
use jackfield_views::options::{SessionSetting, find_offer};
use serde_json::json;

/// What an agent with modes, models, reasoning efforts and commands offers.
pub(crate) fn demo_settings() -> SessionSettings {
    let setup = json!({
        "modes": { "currentModeId": "code", "availableModes": [
            { "id": "plan", "name": "Plan", "description": "Reads files and proposes a plan" },
            { "id": "code", "name": "Code", "description": "Edits files after asking" },
            { "id": "auto", "name": "Auto", "description": "Edits files and runs commands without asking" },
        ] },
        "models": { "currentModelId": "sonnet-5", "availableModels": [
            { "modelId": "opus-5", "name": "Opus 5" },
            { "modelId": "sonnet-5", "name": "Sonnet 5", "description": "For everyday work" },
            { "modelId": "haiku-5", "name": "Haiku 5" },
        ] },
        "configOptions": [{ "id": "thought_level", "name": "Thinking", "category": "thought_level", "type": "select",
            "currentValue": "high", "options": [
                { "value": "low", "name": "Low" }, { "value": "high", "name": "High" },
            ] }],
    });
    let command = |name: &str, description: &str| SessionCommand {
        name: name.to_owned(),
        description: description.to_owned(),
    };
    SessionSettings {
        mode: find_offer(&setup, SessionSetting::Mode),
        model: find_offer(&setup, SessionSetting::Model),
        reasoning: find_offer(&setup, SessionSetting::Reasoning),
        commands: vec![
            command(
                "review",
                "Reviews the changes of the working tree and lists what should be fixed before a commit",
            ),
            command("init", "Writes AGENTS.md"),
            command("compact", "Summarizes the conversation\u{1b}[31m to free context"),
            command("web-review", "Reviews a page"),
        ],
        directories: ["/user/me/src/parser", "/user/me/src/lexer"].map(str::to_owned).to_vec(),
    }
}

/// Prompts that wait; the last was left by a restart.
pub(crate) fn demo_queue() -> Vec<QueuedPrompt> {
    let prompt = |number, by: &str, text: &str, is_held| QueuedPrompt {
        number,
        by: by.to_owned(),
        text: text.to_owned(),
        is_held,
    };
    vec![
        prompt(4, "jackfield", "Run the benchmarks and compare them with the last release", false),
        prompt(5, "zed", "次に文書を更新してください\nand the changelog", false),
        prompt(7, "console", "Open a pull request", true),
    ]
}
