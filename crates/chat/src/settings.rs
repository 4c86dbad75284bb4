//! Where the model is and how it is asked: all from the environment.

use std::time::Duration;

/// How the agent is set up. The names of the variables are those that others use too.
#[derive(Clone, PartialEq)]
pub struct Settings {
    /// `OPENAI_BASE_URL`, without a slash at its end.
    pub base_url: String,
    /// `OPENAI_API_KEY`; empty if there is none.
    pub api_key: String,
    /// `OPENAI_API_VERSION`: the server is Azure's.
    pub api_version: Option<String>,
    /// `OPENAI_MODEL`.
    pub model: String,
    /// `OPENAI_SYSTEM_PROMPT`.
    pub system_prompt: Option<String>,
    /// `OPENAI_MAX_TOKENS`.
    pub max_tokens: Option<u64>,
    /// `OPENAI_TEMPERATURE`.
    pub temperature: Option<f64>,
    /// `OPENAI_CONTEXT_WINDOW`: how many tokens the model sees at once, where the server does not say.
    pub window: Option<u64>,
    /// `OPENAI_WEB_FETCH`: whether pages may be fetched from the web.
    pub fetch: bool,
    /// `OPENAI_TOOLS`: whether the model is offered tools; a model that knows none answers
    /// better without.
    pub tools: bool,
    /// `OPENAI_FIRST_TOKEN_SECS`: until the first token; a local model reads the prompt first.
    pub first_token_max: Duration,
    /// `OPENAI_IDLE_SECS`: between two tokens.
    pub idle_max: Duration,
    /// `OPENAI_MCP_START_SECS`: how long one MCP server may take to start.
    pub mcp_start_max: Duration,
}

const BASE_URL: &str = "https://api.openai.com/v1";
const MODEL: &str = "gpt-4o";
/// Ten thousand tokens at the 20 a second of a processor without a graphics card.
const FIRST_TOKEN_MAX: Duration = Duration::from_mins(10);
/// A swapped-out model wakes within it.
const IDLE_MAX: Duration = Duration::from_mins(2);
/// A package that is fetched first takes longer, and is there the next time.
const MCP_START_MAX: Duration = Duration::from_secs(15);

impl Settings {
    /// Reads variables; what is wrong with one is told, and its default is used.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> (Settings, Vec<String>) {
        let mut wrong = Vec::new();
        let text = |name: &str| variable(name).filter(|it| !it.is_empty());
        let mut number = |name: &str| -> Option<f64> {
            let text = text(name)?;
            let number = text.trim().parse::<f64>().ok().filter(|it| it.is_finite() && 0.0 <= *it);
            if number.is_none() {
                wrong.push(format!("{name} is no number: `{text}` is ignored"));
            }
            number
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
        let whole = |it: f64| it as u64;
        let max_tokens = number("OPENAI_MAX_TOKENS").map(whole).filter(|it| 0 < *it);
        let temperature = number("OPENAI_TEMPERATURE");
        let window = number("OPENAI_CONTEXT_WINDOW").map(whole).filter(|it| 0 < *it);
        let first_token = number("OPENAI_FIRST_TOKEN_SECS");
        let idle = number("OPENAI_IDLE_SECS");
        let mcp_start = number("OPENAI_MCP_START_SECS");
        let seconds = |it: Option<f64>, default| {
            it.and_then(|it| Duration::try_from_secs_f64(it).ok()).unwrap_or(default)
        };
        let is_on = |name: &str, default| {
            text(name).map_or(default, |it| !matches!(it.as_str(), "0" | "false" | "no" | "off"))
        };
        let base_url = text("OPENAI_BASE_URL").unwrap_or_else(|| BASE_URL.to_owned());
        let settings = Settings {
            base_url: base_url.trim_end_matches('/').to_owned(),
            api_key: text("OPENAI_API_KEY").unwrap_or_default(),
            api_version: text("OPENAI_API_VERSION"),
            model: text("OPENAI_MODEL").unwrap_or_else(|| MODEL.to_owned()),
            system_prompt: text("OPENAI_SYSTEM_PROMPT"),
            max_tokens,
            temperature,
            window,
            fetch: is_on("OPENAI_WEB_FETCH", false),
            tools: is_on("OPENAI_TOOLS", true),
            first_token_max: seconds(first_token, FIRST_TOKEN_MAX),
            idle_max: seconds(idle, IDLE_MAX),
            mcp_start_max: seconds(mcp_start, MCP_START_MAX),
        };
        (settings, wrong)
    }
}

/// The key is never shown.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("has_key", &!self.api_key.is_empty())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(variables: &[(&str, &str)]) -> (Settings, Vec<String>) {
        Settings::read(|name| {
            let found = variables.iter().find(|it| it.0 == name);
            found.map(|it| it.1.to_owned())
        })
    }

    #[test]
    fn without_any_variable_it_is_the_server_that_everybody_means() {
        let (settings, wrong) = read(&[]);
        assert_eq!(settings.base_url, "https://api.openai.com/v1");
        assert_eq!(settings.model, "gpt-4o");
        assert_eq!((settings.api_key.as_str(), settings.system_prompt.as_deref()), ("", None));
        assert_eq!((settings.max_tokens, settings.temperature), (None, None));
        assert!(settings.tools && !settings.fetch && wrong.is_empty());
    }

    #[test]
    fn what_is_no_number_is_told_and_ignored() {
        let (settings, wrong) =
            read(&[("OPENAI_MAX_TOKENS", "many"), ("OPENAI_TEMPERATURE", "0.5")]);
        assert_eq!((settings.max_tokens, settings.temperature), (None, Some(0.5)));
        assert_eq!(wrong, ["OPENAI_MAX_TOKENS is no number: `many` is ignored"]);
        let (settings, _) = read(&[("OPENAI_IDLE_SECS", "1e300")]);
        assert_eq!(settings.idle_max, IDLE_MAX);
    }

    #[test]
    fn the_key_is_never_shown() {
        let (settings, _) = read(&[("OPENAI_API_KEY", "hunter2")]);
        assert!(!format!("{settings:?}").contains("hunter2"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_is_set_is_what_is_read(
            host in "[a-z]{1,8}",
            slashes in "/{0,3}",
            key in "[!-~]{1,20}",
            model in "[a-z0-9:/.-]{1,20}",
            max in 1..1_000_000_u64,
            temperature in 0.0..2.0_f64,
        ) {
            let url = format!("http://{host}/v1");
            let (settings, wrong) = read(&[
                ("OPENAI_BASE_URL", &format!("{url}{slashes}")),
                ("OPENAI_API_KEY", &key),
                ("OPENAI_MODEL", &model),
                ("OPENAI_MAX_TOKENS", &max.to_string()),
                ("OPENAI_TEMPERATURE", &temperature.to_string()),
            ]);
            prop_assert!(wrong.is_empty());
            prop_assert_eq!((settings.base_url, settings.api_key), (url, key));
            prop_assert_eq!((settings.model, settings.max_tokens), (model, Some(max)));
            prop_assert_eq!(settings.temperature, Some(temperature));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let names = ["OPENAI_MAX_TOKENS", "OPENAI_TEMPERATURE", "OPENAI_FIRST_TOKEN_SECS"];
            read(&names.map(|name| (name, text.as_str())));
        }
    }
}
