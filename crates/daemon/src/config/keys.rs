//! The table of all keys of `config.toml`. `docs/config.md`, `jackfield config` and the check for
//! unknown keys use it. Add a row for each new field of [`Settings`](super::Settings): tests compare
//! the rows with the fields, their examples and when changes apply.

/// One key of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigKey {
    /// The path, as in `agents.NAME.command`; `NAME` stands for any name.
    pub name: &'static str,
    pub value_type: ConfigValueType,
    pub default: ConfigDefault,
    pub applies: ConfigChangeTime,
    pub meaning: &'static str,
    /// A valid value in TOML that is not the default.
    pub example: &'static str,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigValueType {
    Text,
    Path,
    /// Text such as `90s` or `never`.
    Duration,
    Number,
    Bool,
    /// One of these texts.
    Choice(&'static [&'static str]),
    TextList,
    PathList,
    ChoiceList(&'static [&'static str]),
    /// A table of texts by name.
    TextTable,
    /// A table of lists of texts by name.
    TextListTable,
}

/// The value of a key that the file does not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigDefault {
    /// A value in TOML.
    Value(&'static str),
    /// No value; the text says what happens then.
    Unset(&'static str),
}

/// When a changed value takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigChangeTime {
    /// Without a restart.
    Now,
    AfterRestart,
}

use ConfigChangeTime::{AfterRestart, Now};
use ConfigDefault::{Unset, Value};
use ConfigValueType::{
    Bool, Choice, ChoiceList, Duration, Number, Path, PathList, Text, TextList, TextListTable,
    TextTable,
};

const fn key(
    name: &'static str,
    value_type: ConfigValueType,
    default: ConfigDefault,
    applies: ConfigChangeTime,
    example: &'static str,
    meaning: &'static str,
) -> ConfigKey {
    ConfigKey { name, value_type, default, applies, meaning, example }
}

/// All keys, in the order of the documentation.
#[rustfmt::skip]
pub const CONFIG_KEYS: &[ConfigKey] = &[
    key("default_agent", Text, Unset("the agent has to be named"), Now, "\"claude\"",
        "The agent of sessions whose client does not name one: a name that `jackfield agents` lists."),
    key("sandbox", Text, Value("\"open\""), Now, "\"workspace\"",
        "The sandbox profile of agents that have none of their own: `open` (no limits), `workspace`, `read-only`, or one of `policy.toml`."),
    key("sandbox_layer", Choice(&["bubblewrap", "landlock", "seatbelt"]), Unset("the best one that works"), Now, "\"landlock\"",
        "The layer that enforces sandboxes."),
    key("durability", Choice(&["process", "power"]), Value("\"process\""), AfterRestart, "\"power\"",
        "What an acknowledged event survives: a crash of the daemon (`process`), or a power failure too (`power`, which is slower)."),
    key("idle_after", Number, Value("600"), AfterRestart, "3600",
        "Seconds after which a background daemon without clients and agents exits; 0 for never."),

    key("sessions.idle_after", Duration, Value("\"10m\""), Now, "\"1h\"",
        "An agent that was not used for this long is stopped; the next prompt starts it again."),
    key("sessions.max_live", Number, Value("0"), Now, "8",
        "The maximum number of live agents; 0 for no limit. At the limit, the agent of an idle session is stopped first."),

    key("liveness.starting", Duration, Value("\"10s\""), Now, "\"30s\"",
        "How long the process of an agent may take to start before the session is shown as `quiet`."),
    key("liveness.initializing", Duration, Value("\"60s\""), Now, "\"90s\"",
        "The same for the answer to `initialize`."),
    key("liveness.opening", Duration, Value("\"60s\""), Now, "\"90s\"",
        "The same for the answer to `session/new`, `session/load` and `session/resume`."),
    key("liveness.thinking", Duration, Value("\"2m\""), Now, "\"5m\"",
        "The same for a turn without output while no tool runs."),
    key("liveness.tool", Duration, Value("\"5m\""), Now, "\"20m\"",
        "The same for a turn without output while a tool runs."),
    key("liveness.starting_max", Duration, Value("\"60s\""), Now, "\"2m\"",
        "A start fails when the process of the agent has not started after this time."),
    key("liveness.initializing_max", Duration, Value("\"60s\""), Now, "\"2m\"",
        "A start fails when the answer to `initialize` has not come after this time."),
    key("liveness.opening_max", Duration, Value("\"3m\""), Now, "\"5m\"",
        "The same for the answer to `session/new`, `session/load` and `session/resume`."),
    key("liveness.setting_max", Duration, Value("\"60s\""), Now, "\"2m\"",
        "A change of model, mode or option fails when the agent has not answered after this time."),
    key("liveness.thinking_max", Duration, Value("\"10m\""), Now, "\"30m\"",
        "A turn without output for this long, while no tool runs, is ended."),
    key("liveness.tool_max", Duration, Value("\"never\""), Now, "\"2h\"",
        "A turn without output for this long, while a tool runs, is ended."),

    key("notify.command", TextList, Unset("no program is started"), Now, "[\"notify-send\", \"jackfield\"]",
        "The program that is started for each notification, and its arguments; not a shell line."),
    key("notify.url", Text, Unset("nothing is posted"), Now, "\"https://example.org/hook\"",
        "The address to which each notification is posted: `https`, or `http` on this machine."),
    key("notify.on", ChoiceList(&["needs_you", "done", "failed"]), Unset("all events"), Now, "[\"needs_you\", \"failed\"]",
        "The events that are notified."),
    key("notify.push_content", Bool, Value("false"), Now, "true",
        "Notifications in browsers have the title of the session and the request of the agent, and not only the event."),

    key("http.hosts", TextList, Value("[]"), AfterRestart, "[\"build.example.org\"]",
        "Host names that requests may name, in addition to `localhost` and the addresses of this machine."),
    key("http.origins", TextList, Value("[]"), AfterRestart, "[\"https://app.example.org\"]",
        "Origins whose web pages may use the API: `scheme://host[:port]`."),
    key("http.cert", Path, Unset("`https://` addresses are refused"), AfterRestart, "\"tls/cert.pem\"",
        "The certificate chain for `https://` addresses, as PEM, with the server's own certificate first. It needs `key`."),
    key("http.key", Path, Unset("`https://` addresses are refused"), AfterRestart, "\"tls/key.pem\"",
        "The private key of `cert`, as PEM; only the owner may have access to the file."),
    key("http.insecure", Bool, Value("false"), AfterRestart, "true",
        "Permits `http://` and `tcp://` addresses that other machines can reach. The connection is not encrypted."),
    key("http.roots", PathList, Value("[]"), AfterRestart, "[\"/srv/work\"]",
        "Requests may start agents in these directories and below them."),
    key("http.projects", Path, Unset("`projects` in the state directory"), AfterRestart, "\"/srv/projects\"",
        "The directory of the projects that requests name."),
    key("http.uploads", Path, Unset("`uploads` in the state directory"), AfterRestart, "\"/srv/uploads\"",
        "The directory of uploaded files."),
    key("http.approve", Choice(&["ask", "all", "reads", "none"]), Unset("`ask`, or `all` with the profile `open-design`"), AfterRestart, "\"all\"",
        "How permission requests of runs are answered whose request has no `approve`: by a person (`ask`), allowed (`all`), allowed if the tool changes nothing and else denied (`reads`), or denied (`none`)."),
    key("http.profile", Choice(&["jackfield", "open-design"]), Value("\"jackfield\""), AfterRestart, "\"open-design\"",
        "The clients that requests are expected from. With `open-design`, requests that leave it open get the defaults of that daemon, and invalid models and paths have no effect."),

    key("agents.NAME.command", TextList, Unset("the catalog's command"), Now, "[\"goose\", \"acp\"]",
        "The program of the agent and its arguments; not a shell line. It is required if the catalog has no agent of this name."),
    key("agents.NAME.env", TextTable, Value("{}"), Now, "{ GOOSE_MODE = \"approve\" }",
        "Variables that are set for the agent."),
    key("agents.NAME.pass_env", TextList, Value("[]"), Now, "[\"GOOSE_*\"]",
        "Variables of the daemon's environment that the agent gets; `*` at the end matches a prefix."),
    key("agents.NAME.warm", Number, Value("0"), Now, "1",
        "The number of started and initialized processes that wait for the next session."),
    key("agents.NAME.sessions_per_process", Number, Unset("the catalog's number, else 1"), Now, "4",
        "The number of sessions that one process serves."),
    key("agents.NAME.variant", Text, Unset("the first that can be started"), Now, "\"acp\"",
        "The launch variant of the catalog to use, without trying others; `jackfield agents show NAME` lists them. A `command` replaces them all."),
    key("agents.NAME.fallback", Text, Unset("the session fails"), Now, "\"codex\"",
        "The agent that is used when this one cannot be started or keeps failing."),
    key("agents.NAME.mcp", TextList, Value("[]"), Now, "[\"github\"]",
        "The MCP servers that every session of the agent gets: names of `[mcp.NAME]` tables."),
    key("agents.NAME.sandbox", Text, Unset("the top-level `sandbox`"), Now, "\"workspace\"",
        "The sandbox profile of the agent."),

    key("mcp.NAME.command", Text, Unset("the server has a `url`"), Now, "\"npx\"",
        "The program of an MCP server, which agents start for a session. A server has either a `command` or a `url`."),
    key("mcp.NAME.args", TextList, Value("[]"), Now, "[\"-y\", \"@modelcontextprotocol/server-github\"]",
        "The arguments of the program."),
    key("mcp.NAME.env", TextTable, Value("{}"), Now, "{ GITHUB_TOKEN = \"…\" }",
        "Variables that are set for the program."),
    key("mcp.NAME.url", Text, Unset("the server has a `command`"), Now, "\"https://search.example.org/mcp\"",
        "The address of an MCP server that already runs."),
    key("mcp.NAME.headers", TextTable, Value("{}"), Now, "{ Authorization = \"Bearer …\" }",
        "Headers of requests to `url`."),
    key("mcp.NAME.type", Choice(&["stdio", "http", "sse"]), Unset("`stdio` for a `command`, `http` for a `url`"), Now, "\"sse\"",
        "The transport of the server."),

    key("tui.keys", Choice(&["emacs", "vi"]), Value("\"emacs\""), Now, "\"vi\"",
        "The editing keys of the input field of the terminal interface."),
    key("tui.mouse", Bool, Value("false"), Now, "true",
        "The terminal interface uses the mouse. The terminal then selects text only with Shift."),
    key("tui.bindings", TextListTable, Value("{}"), Now, "{ \"session.cancel\" = [\"f8\"] }",
        "The keys of actions of the terminal interface, in place of their default keys; `[]` for none. [The page about it](tui.md#keys) lists the actions."),
];

/// The key of a path such as `agents.goose.command`.
pub fn find_config_key(path: &[&str]) -> Option<&'static ConfigKey> {
    CONFIG_KEYS.iter().find(|it| it.matches(path))
}

impl ConfigKey {
    /// The segments of the name.
    pub fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.name.split('.')
    }

    /// Whether the path names this key, with any name where the key has a placeholder.
    pub fn matches(&self, path: &[&str]) -> bool {
        self.segments().count() == path.len() && self.starts_with(path)
    }

    /// Whether the key is at or below the path.
    pub fn starts_with(&self, path: &[&str]) -> bool {
        path.len() <= self.segments().count()
            && self.segments().zip(path).all(|(own, it)| is_placeholder(own) || own == *it)
    }

    /// The table of the key, as in `agents.NAME`; empty for keys outside of tables.
    pub fn section(&self) -> &'static str {
        self.name.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// The last segment of the name.
    pub fn last_segment(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, last)| last)
    }
}

/// Whether a segment stands for any name.
pub fn is_placeholder(segment: &str) -> bool {
    segment.chars().all(|it| it.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Settings, accepted_keys::list_accepted_keys};
    use std::{collections::BTreeSet, fmt::Write};

    fn parse_key(key: &ConfigKey, value: &str) -> Settings {
        let text = format!("{} = {value}\n", key.name);
        toml::from_str(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn table_has_exactly_the_keys_that_the_parser_accepts() {
        let listed: BTreeSet<String> = CONFIG_KEYS.iter().map(|it| it.name.to_owned()).collect();
        assert_eq!(listed.len(), CONFIG_KEYS.len(), "a key is listed twice");
        assert_eq!(listed, list_accepted_keys::<Settings>());
    }

    #[test]
    fn examples_and_defaults_are_valid_and_differ() {
        for key in CONFIG_KEYS {
            let example = parse_key(key, key.example);
            assert_ne!(example, Settings::default(), "{}", key.name);
            if let Value(default) = key.default {
                assert_ne!(parse_key(key, default), example, "{}", key.name);
            }
        }
    }

    #[test]
    fn table_states_when_a_change_applies() {
        for key in CONFIG_KEYS {
            let changes = Settings::default().apply_changes(parse_key(key, key.example));
            let names = |it: &[&str]| it.iter().any(|name| key.name.starts_with(name));
            let expected = match key.applies {
                Now => (true, false),
                AfterRestart => (false, true),
            };
            assert_eq!(
                (names(&changes.applied), names(&changes.need_restart)),
                expected,
                "{}",
                key.name
            );
        }
    }

    #[test]
    fn documented_defaults_are_the_effective_ones() {
        let mut text = String::new();
        for section in ["sessions", "liveness"] {
            for key in CONFIG_KEYS.iter().filter(|it| it.section() == section) {
                let Value(value) = key.default else { continue };
                writeln!(text, "{} = {value}", key.name).unwrap();
            }
        }
        let (written, default) = (toml::from_str::<Settings>(&text).unwrap(), Settings::default());
        assert_eq!(written.sleep(), default.sleep());
        assert_eq!(written.liveness(), default.liveness());
        let idle_after = CONFIG_KEYS.iter().find(|it| it.name == "idle_after").unwrap();
        let Value(value) = idle_after.default else { panic!("it has a value") };
        assert_eq!(parse_key(idle_after, value).idle_after(), default.idle_after());
    }
}
