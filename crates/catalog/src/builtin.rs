//! The built-in agent files. A test keeps this list equal to the folder `agents`.

macro_rules! files {
    ($($id:literal),* $(,)?) => {
        &[$(($id, include_str!(concat!("../agents/", $id, ".toml")))),*]
    };
}

/// The stem and the text of each file, ordered by stem.
pub(crate) const FILES: &[(&str, &str)] = files![
    "aider",
    "amp",
    "antigravity",
    "atomcode",
    "auggie",
    "chat",
    "claude",
    "cline",
    "codebuddy",
    "codex",
    "copilot",
    "crow",
    "cursor",
    "deepseek",
    "devin",
    "droid",
    "fast-agent",
    "gemini",
    "goose",
    "grok",
    "hermes",
    "junie",
    "kilo",
    "kimi",
    "kiro",
    "letta",
    "mimo",
    "opencode",
    "openhands",
    "pi",
    "qoder",
    "qwen",
    "reasonix",
    "stakpak",
    "trae-cli",
    "vibe",
];
