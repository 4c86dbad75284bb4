//! The files that come with us; a test holds the list equal to the folder.

macro_rules! files {
    ($($id:literal),* $(,)?) => {
        &[$(($id, include_str!(concat!("../agents/", $id, ".toml")))),*]
    };
}

/// Each file's stem and text, in the order of the stems.
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
