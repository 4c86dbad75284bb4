//! The settings of the agent, all read from environment variables.

use std::time::Duration;

/// The settings of the agent. The variables have the names that other programs use too.
#[derive(Clone, PartialEq)]
pub struct ChatSettings {
    /// `OPENAI_BASE_URL`, without trailing slashes.
    pub base_url: String,
    /// `OPENAI_API_KEY`; empty if it is not set.
    pub api_key: String,
    /// `OPENAI_API_VERSION`; set for Azure servers.
    pub api_version: Option<String>,
    /// `OPENAI_MODEL`.
    pub model: String,
    /// `OPENAI_SYSTEM_PROMPT`.
    pub system_prompt: Option<String>,
    /// `OPENAI_MAX_TOKENS`.
    pub max_tokens: Option<u64>,
    /// `OPENAI_TEMPERATURE`.
    pub temperature: Option<f64>,
    /// `OPENAI_CONTEXT_WINDOW`: the context window in tokens, if the server does not report it.
    pub context_window: Option<u64>,
    /// `OPENAI_WEB_FETCH`: whether pages may be fetched from the web.
    pub web_fetch: bool,
    /// `OPENAI_WEB_SEARCH_URL`: the search service that the model may ask.
    pub web_search_url: Option<String>,
    /// `OPENAI_WEB_SEARCH_HEADER`: a header for the search service, as `Name: value`.
    pub web_search_header: Option<String>,
    /// `OPENAI_CODE_SEARCH`: whether the model may search the files by several words.
    pub code_search: bool,
    /// `OPENAI_LANGUAGE_SERVERS`: `rs=rust-analyzer; py,pyi=pyright-langserver --stdio`.
    pub language_servers: Vec<LanguageServer>,
    /// `OPENAI_TOOLS`: whether the model is offered tools. A model that cannot use tools answers
    /// better without them.
    pub tools: bool,
    /// `OPENAI_FIRST_TOKEN_SECS`: the timeout of the first token. A local model has to read the
    /// prompt first.
    pub first_token_max: Duration,
    /// `OPENAI_IDLE_SECS`: the timeout between two tokens.
    pub idle_max: Duration,
    /// `OPENAI_MCP_START_SECS`: how long one MCP server may take to start.
    pub mcp_start_max: Duration,
}

/// A language server, and the files that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageServer {
    /// Without the dot.
    pub extensions: Vec<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
}

const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";
const DEFAULT_MODEL: &str = "gpt-4o";
/// Enough for a prompt of 10,000 tokens at 20 tokens per second, the speed without a graphics card.
const FIRST_TOKEN_MAX: Duration = Duration::from_mins(10);
/// Enough to reload a model that was swapped out.
const IDLE_MAX: Duration = Duration::from_mins(2);
/// A server whose package must be downloaded first takes longer, but only the first time.
const MCP_START_MAX: Duration = Duration::from_secs(15);

impl ChatSettings {
    /// Reads the settings. Also returns a warning for each invalid variable, whose default is used.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> (ChatSettings, Vec<String>) {
        let mut warnings = Vec::new();
        let text = |name: &str| variable(name).filter(|it| !it.is_empty());
        let mut number = |name: &str| -> Option<f64> {
            let text = text(name)?;
            let number = text.trim().parse::<f64>().ok().filter(|it| it.is_finite() && 0.0 <= *it);
            if number.is_none() {
                warnings.push(format!("{name} is not a valid number: ignoring `{text}`"));
            }
            number
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
        let to_integer = |it: f64| it as u64;
        let max_tokens = number("OPENAI_MAX_TOKENS").map(to_integer).filter(|it| 0 < *it);
        let temperature = number("OPENAI_TEMPERATURE");
        let context_window = number("OPENAI_CONTEXT_WINDOW").map(to_integer).filter(|it| 0 < *it);
        let first_token = number("OPENAI_FIRST_TOKEN_SECS");
        let idle = number("OPENAI_IDLE_SECS");
        let mcp_start = number("OPENAI_MCP_START_SECS");
        let to_duration = |it: Option<f64>, default| {
            it.and_then(|it| Duration::try_from_secs_f64(it).ok()).unwrap_or(default)
        };
        let is_on = |name: &str, default| {
            text(name).map_or(default, |it| !matches!(it.as_str(), "0" | "false" | "no" | "off"))
        };
        let language_servers = text("OPENAI_LANGUAGE_SERVERS").unwrap_or_default();
        let language_servers = parse_language_servers(&language_servers, &mut warnings);
        let base_url = text("OPENAI_BASE_URL").unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
        let settings = ChatSettings {
            base_url: base_url.trim_end_matches('/').to_owned(),
            api_key: text("OPENAI_API_KEY").unwrap_or_default(),
            api_version: text("OPENAI_API_VERSION"),
            model: text("OPENAI_MODEL").unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            system_prompt: text("OPENAI_SYSTEM_PROMPT"),
            max_tokens,
            temperature,
            context_window,
            web_fetch: is_on("OPENAI_WEB_FETCH", false),
            web_search_url: text("OPENAI_WEB_SEARCH_URL"),
            web_search_header: text("OPENAI_WEB_SEARCH_HEADER"),
            code_search: is_on("OPENAI_CODE_SEARCH", false),
            language_servers,
            tools: is_on("OPENAI_TOOLS", true),
            first_token_max: to_duration(first_token, FIRST_TOKEN_MAX),
            idle_max: to_duration(idle, IDLE_MAX),
            mcp_start_max: to_duration(mcp_start, MCP_START_MAX),
        };
        (settings, warnings)
    }
}

/// Entries are separated by semicolons, extensions by commas, the words of a command by spaces.
fn parse_language_servers(text: &str, warnings: &mut Vec<String>) -> Vec<LanguageServer> {
    let mut servers = Vec::new();
    for entry in text.split(';').map(str::trim).filter(|it| !it.is_empty()) {
        let (extensions, command) = entry.split_once('=').unwrap_or((entry, ""));
        let extensions = extensions.split(',').map(|it| it.trim().trim_start_matches('.'));
        let extensions: Vec<String> =
            extensions.filter(|it| !it.is_empty()).map(str::to_owned).collect();
        let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if extensions.is_empty() || command.is_empty() {
            warnings.push(format!(
                "OPENAI_LANGUAGE_SERVERS has an entry that is not `EXTENSION=COMMAND`: ignoring `{entry}`"
            ));
        } else {
            servers.push(LanguageServer { extensions, command });
        }
    }
    servers
}

/// Leaves out the API key.
impl std::fmt::Debug for ChatSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatSettings")
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

    fn read_settings(variables: &[(&str, &str)]) -> (ChatSettings, Vec<String>) {
        ChatSettings::from_variables(|name| {
            let found = variables.iter().find(|it| it.0 == name);
            found.map(|it| it.1.to_owned())
        })
    }

    #[test]
    fn defaults_are_used_without_variables() {
        let (settings, warnings) = read_settings(&[]);
        assert_eq!(settings.base_url, "https://api.openai.com/v1");
        assert_eq!(settings.model, "gpt-4o");
        assert_eq!((settings.api_key.as_str(), settings.system_prompt.as_deref()), ("", None));
        assert_eq!((settings.max_tokens, settings.temperature), (None, None));
        assert!(settings.tools && !settings.web_fetch && warnings.is_empty());
    }

    #[test]
    fn invalid_number_gives_a_warning_and_the_default() {
        let (settings, warnings) =
            read_settings(&[("OPENAI_MAX_TOKENS", "many"), ("OPENAI_TEMPERATURE", "0.5")]);
        assert_eq!((settings.max_tokens, settings.temperature), (None, Some(0.5)));
        assert_eq!(warnings, ["OPENAI_MAX_TOKENS is not a valid number: ignoring `many`"]);
        let (settings, _) = read_settings(&[("OPENAI_IDLE_SECS", "1e300")]);
        assert_eq!(settings.idle_max, IDLE_MAX);
    }

    #[test]
    fn language_servers_are_parsed_and_invalid_entries_are_reported() {
        let value = "rs=rust-analyzer; .py, pyi = pyright-langserver --stdio;;oops";
        let (settings, warnings) = read_settings(&[("OPENAI_LANGUAGE_SERVERS", value)]);
        let server = |extensions: &[&str], command: &[&str]| LanguageServer {
            extensions: extensions.iter().map(|it| (*it).to_owned()).collect(),
            command: command.iter().map(|it| (*it).to_owned()).collect(),
        };
        let expected = [
            server(&["rs"], &["rust-analyzer"]),
            server(&["py", "pyi"], &["pyright-langserver", "--stdio"]),
        ];
        assert_eq!(settings.language_servers, expected);
        assert!(warnings[0].ends_with("ignoring `oops`"), "{warnings:?}");
    }

    #[test]
    fn debug_output_has_no_key() {
        let (settings, _) = read_settings(&[("OPENAI_API_KEY", "hunter2")]);
        assert!(!format!("{settings:?}").contains("hunter2"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn variables_are_read_as_set(
            host in "[a-z]{1,8}",
            slashes in "/{0,3}",
            key in "[!-~]{1,20}",
            model in "[a-z0-9:/.-]{1,20}",
            max in 1..1_000_000_u64,
            temperature in 0.0..2.0_f64,
        ) {
            let url = format!("http://{host}/v1");
            let (settings, warnings) = read_settings(&[
                ("OPENAI_BASE_URL", &format!("{url}{slashes}")),
                ("OPENAI_API_KEY", &key),
                ("OPENAI_MODEL", &model),
                ("OPENAI_MAX_TOKENS", &max.to_string()),
                ("OPENAI_TEMPERATURE", &temperature.to_string()),
            ]);
            prop_assert!(warnings.is_empty());
            prop_assert_eq!((settings.base_url, settings.api_key), (url, key));
            prop_assert_eq!((settings.model, settings.max_tokens), (model, Some(max)));
            prop_assert_eq!(settings.temperature, Some(temperature));
        }

        #[test]
        fn no_value_makes_it_panic(text in ".*") {
            let names = ["OPENAI_MAX_TOKENS", "OPENAI_TEMPERATURE", "OPENAI_FIRST_TOKEN_SECS"];
            read_settings(&names.map(|name| (name, text.as_str())));
        }
    }
}
