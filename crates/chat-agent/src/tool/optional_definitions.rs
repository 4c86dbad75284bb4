//! The definitions of the tools that are off by default.

use super::{
    definitions::{ParameterType, ToolDefinition, optional_parameter, required_parameter},
    features::ToolFeature,
};
use agent_client_protocol::v1::schema::ToolKind;

pub(super) const WEB_FETCH: &str = "web_fetch";
pub(super) const WEB_SEARCH: &str = "web_search";
pub(super) const CODE_SEARCH: &str = "code_search";
pub(super) const LSP: &str = "lsp";

pub(super) const OPTIONAL_TOOLS: &[ToolDefinition] = &[
    ToolDefinition {
        name: WEB_FETCH,
        description: "Fetches a page of the public web and returns its text. Pages on this machine \
                      and in its network are not fetched.",
        kind: ToolKind::Fetch,
        has_side_effects: false,
        feature: Some(ToolFeature::WebFetch),
        parameters: &[required_parameter(
            "url",
            ParameterType::Text,
            "A whole URL, with http or https.",
        )],
        example: r#"{"url": "https://docs.rs/serde"}"#,
    },
    ToolDefinition {
        name: WEB_SEARCH,
        description: "Searches the web and returns titles, addresses and excerpts of pages.",
        kind: ToolKind::Fetch,
        has_side_effects: false,
        feature: Some(ToolFeature::WebSearch),
        parameters: &[required_parameter("query", ParameterType::Text, "What to search for.")],
        example: r#"{"query": "rust tokio select cancellation safety"}"#,
    },
    ToolDefinition {
        name: CODE_SEARCH,
        description: "Finds the files that fit several words best, with their best lines. Use it \
                      when you do not know the exact names; use `grep` when you do.",
        kind: ToolKind::Search,
        has_side_effects: false,
        feature: Some(ToolFeature::CodeSearch),
        parameters: &[
            required_parameter("query", ParameterType::Text, "Words, in any order."),
            optional_parameter("path", ParameterType::Text, "A file or directory to search in."),
            optional_parameter("glob", ParameterType::Text, "Only files that match, as in `*.rs`."),
        ],
        example: r#"{"query": "retry backoff", "glob": "*.py"}"#,
    },
    ToolDefinition {
        name: LSP,
        description: "Asks a language server about code. `action` is `definition`, `references` or \
                      `hover` for a place, or `symbols` or `diagnostics` for a file. A place is a \
                      line, and in it the first occurrence of `symbol`.",
        kind: ToolKind::Search,
        has_side_effects: false,
        feature: Some(ToolFeature::LanguageServer),
        parameters: &[
            required_parameter("action", ParameterType::Text, "What to ask."),
            required_parameter("path", ParameterType::Text, "The file."),
            optional_parameter("line", ParameterType::Integer, "The line of the place, from 1."),
            optional_parameter("symbol", ParameterType::Text, "The name at the place."),
        ],
        example: r#"{"action": "definition", "path": "src/main.rs", "line": 1, "symbol": "x"}"#,
    },
];
