//! Parses the model lists of real programs, as they print them.

use jackfield_catalog::{ModelFormat, parse_models};
use proptest::prelude::*;

fn ids(format: ModelFormat, text: &str) -> Vec<String> {
    parse_models(format, text).into_iter().map(|it| it.id).collect()
}

fn pairs(format: ModelFormat, text: &str) -> Vec<(String, String)> {
    parse_models(format, text).into_iter().map(|it| (it.id, it.name)).collect()
}

fn pair(id: &str, name: &str) -> (String, String) {
    (id.to_owned(), name.to_owned())
}

#[test]
fn lines_that_are_not_ids_are_left_out() {
    let text = "# models\n\nalpha-1\r\n  org/beta:2 \nalpha-1\nnot an id\n--option\n\u{1b}[32mgamma\u{1b}[0m\n";
    assert_eq!(ids(ModelFormat::Lines, text), ["alpha-1", "org/beta:2", "gamma"]);
}

#[test]
fn opencode_paths_are_read_with_and_without_objects_between_them() {
    assert_eq!(
        ids(ModelFormat::Opencode, "fake/fake-model\nfake/fake-model-mini\n"),
        ["fake/fake-model", "fake/fake-model-mini"]
    );
    let long = "fake/fake-model\n{\n  \"id\": \"fake-model\",\n  \"npm\": \"@ai-sdk/openai-compatible\",\n  \"url\": \"\"\n}\nopenrouter/openai/gpt-5:free\n{\n}\n";
    assert_eq!(
        ids(ModelFormat::Opencode, long),
        ["fake/fake-model", "openrouter/openai/gpt-5:free"]
    );
}

#[test]
fn cursor_ids_and_labels_are_read_below_the_heading() {
    let text = "Available models\n\nauto - Auto (current)\nsonnet-4.5-thinking - Claude 4.5 Sonnet (Thinking)\ngpt-5\n\nTip: use --model to switch\n";
    assert_eq!(
        pairs(ModelFormat::Cursor, text),
        [
            pair("auto", "Auto (current)"),
            pair("sonnet-4.5-thinking", "Claude 4.5 Sonnet (Thinking)"),
            pair("gpt-5", "gpt-5"),
        ]
    );
    assert!(ids(ModelFormat::Cursor, "No models available for this account.\n").is_empty());
}

#[test]
fn codex_json_is_read_without_hidden_models() {
    let text = r#"{"models":[
        {"slug":"gpt-6-astra","display_name":"GPT-6-Astra","visibility":"list","service_tiers":[{"id":"priority","name":"Fast"}]},
        {"slug":"codex-auto-review","display_name":"Codex Auto Review","visibility":"hide"},
        {"slug":"old","visibility":"hidden"},
        {"id":"gpt-5.5","name":"GPT-5.5"},
        {"slug":"--bad"},
        {"display_name":"without an id"}
    ]}"#;
    let models = [pair("gpt-6-astra", "GPT-6-Astra"), pair("gpt-5.5", "GPT-5.5")];
    assert_eq!(pairs(ModelFormat::Codex, text), models);
    assert_eq!(ids(ModelFormat::Codex, r#"[{"slug":"a"},{"slug":"a"},7]"#), ["a"]);
    assert!(ids(ModelFormat::Codex, "error: not logged in").is_empty());
}

#[test]
fn grok_list_is_read_without_bullets() {
    let text = "You are logged in with grok.com.\n\nDefault model: grok-code-fast-1\n\nAvailable models:\n  * - grok-code-fast-1 (default)\n  - grok-4.3\n  * grok-4.20-reasoning\n  - other-model\n";
    assert_eq!(
        ids(ModelFormat::Grok, text),
        ["grok-code-fast-1", "grok-4.3", "grok-4.20-reasoning"]
    );
}

#[test]
fn pi_table_is_read_and_advice_is_ignored() {
    let table = "provider  model                context  max-out  thinking  images\n\
        openai    gpt-4                8.2K     8.2K     no        no    \n\
        openrouter  openai/gpt-5       400K     128K     yes       yes   \n";
    assert_eq!(ids(ModelFormat::Pi, table), ["openai/gpt-4", "openrouter/openai/gpt-5"]);
    let advice = "No models available. Use /login to log into a provider. See:\n  docs/providers.md\n  more at docs/models.md\n";
    assert!(ids(ModelFormat::Pi, advice).is_empty());
}

#[test]
fn codebuddy_models_are_read_from_its_help() {
    let help = "Options:\n  --model <model>    Model for the current session. Currently supported:\n                     (claude-4.5, gpt-5.2,\n                     glm-4.7)\n  --other  Currently supported: (no)\n";
    assert_eq!(ids(ModelFormat::Codebuddy, help), ["claude-4.5", "gpt-5.2", "glm-4.7"]);
    assert!(ids(ModelFormat::Codebuddy, "--model <model>  the model").is_empty());
}

#[test]
fn dsh_models_are_read_from_a_single_line() {
    let line = r#"{"v":1,"type":"models","runtime":"open-design","models":[{"provider":"deepseek","provider_name":"DeepSeek","id":"v4-pro","name":"V4 Pro"},{"id":"lost"}]}"#;
    assert_eq!(pairs(ModelFormat::Dsh, line), [pair("deepseek/v4-pro", "V4 Pro")]);
    assert!(ids(ModelFormat::Dsh, &format!("{line}\n{line}")).is_empty());
    assert!(ids(ModelFormat::Dsh, r#"{"v":1,"type":"error"}"#).is_empty());
}

#[test]
fn qwen_models_are_read_from_its_settings() {
    let settings = r#"{"modelProviders":{"openai":[{"id":"qwen3-coder-plus","name":"Coder Plus","baseUrl":"http://127.0.0.1"}],
        "anthropic":[{"id":"glm-5"}]},"model":{"name":"qwen3-max"},"theme":"x"}"#;
    assert_eq!(
        ids(ModelFormat::QwenSettings, settings),
        ["qwen3-coder-plus", "glm-5", "qwen3-max"]
    );
    assert_eq!(ids(ModelFormat::QwenSettings, r#"{"model":"m-1"}"#), ["m-1"]);
    assert!(ids(ModelFormat::QwenSettings, "{}").is_empty());
    assert!(ids(ModelFormat::QwenSettings, "// not json").is_empty());
}

const FORMATS: [ModelFormat; 9] = [
    ModelFormat::Lines,
    ModelFormat::Codex,
    ModelFormat::Cursor,
    ModelFormat::Grok,
    ModelFormat::Pi,
    ModelFormat::Codebuddy,
    ModelFormat::Dsh,
    ModelFormat::QwenSettings,
    ModelFormat::Opencode,
];

proptest! {
    #[test]
    fn parsed_ids_never_look_like_options(
        format in prop::sample::select(&FORMATS[..]),
        text in "(provider \n|--model Currently supported: \\()?[\\PC\n\u{1b}]{0,200}",
    ) {
        for model in parse_models(format, &text) {
            prop_assert!(!model.id.starts_with('-') && !model.id.contains(char::is_control));
            prop_assert!(!model.id.is_empty() && model.id.len() <= 200);
        }
    }
}
