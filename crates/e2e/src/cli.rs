//! Real agents: where each program is, and the configuration with which it only connects to our model server.
//!
//! A test gives the agent a folder, which becomes its HOME; the agent inherits nothing of the surrounding environment.

use serde_json::json;
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The program of a real agent, ready to be started.
#[derive(Debug, Clone)]
pub struct Cli {
    pub program: PathBuf,
    /// Its whole environment; a test may add to it.
    pub env: BTreeMap<String, String>,
}

impl Cli {
    /// The agent with this name, with `home` as its HOME and the model server at `model_url`. Its requests have a path
    /// prefix of their own: `claude`, `codex` and so on.
    pub fn new(name: &str, home: &Path, model_url: &str) -> Cli {
        let setup = SETUPS.iter().find(|(names, _)| names.contains(&name));
        let (names, setup) = setup.unwrap_or_else(|| panic!("no agent is called `{name}`"));
        let (host, path) = (model_url.to_owned(), names[0].to_owned());
        let place = Place { home: home.to_owned(), url: format!("{host}/{path}"), host, path };
        let setup = setup(&place);
        fs::create_dir_all(home.join("tmp")).expect("a directory for temporary files");
        for (file, text) in setup.files {
            let file = home.join(file);
            let dir = file.parent().expect("it is below the home");
            fs::create_dir_all(dir).expect("a directory for settings");
            fs::write(&file, text).expect("settings can be written");
        }
        let env = base(home).chain(setup.env);
        Cli { program: program(name), env: env.map(|(key, it)| (key.to_owned(), it)).collect() }
    }

    /// The program with these arguments and its own environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().envs(&self.env);
        command
    }

    /// The whole command line.
    pub fn argv(&self, args: &[&str]) -> Vec<String> {
        let program = self.program.to_str().expect("a path in UTF-8");
        [program].iter().chain(args).map(ToString::to_string).collect()
    }
}

/// The program that `scripts/install-agents.sh` installed.
fn program(name: &str) -> PathBuf {
    installed(Path::new("bin").join(name))
}

/// The folder of everything that `scripts/install-agents.sh` installs.
pub fn agents_dir() -> PathBuf {
    let chosen = env::var_os("JACKFIELD_AGENTS_DIR").map(PathBuf::from);
    chosen.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents"))
}

/// A path below the folder of agents.
pub fn installed(what: impl AsRef<Path>) -> PathBuf {
    let path = agents_dir().join(&what);
    let (is_there, what) = (path.exists(), what.as_ref().display());
    assert!(is_there, "`{what}` is missing: run scripts/install-agents.sh (nightly ones: --all)");
    std::path::absolute(&path).expect("a working directory")
}

type Variables = Vec<(&'static str, String)>;

/// The environment of every agent.
fn base(home: &Path) -> impl Iterator<Item = (&'static str, String)> {
    let fixed = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("NO_COLOR", "1"),
        ("CI", "1"),
        ("DO_NOT_TRACK", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    let own = [("HOME", text(home)), ("TMPDIR", text(&home.join("tmp")))];
    fixed.into_iter().map(|(key, it)| (key, it.to_owned())).chain(own)
}

/// The values that a configuration can contain.
struct Place {
    home: PathBuf,
    /// `http://127.0.0.1:PORT`.
    host: String,
    /// The path below the host.
    path: String,
    /// Host and path.
    url: String,
}

/// Variables, and files below HOME.
struct Setup {
    env: Variables,
    files: Variables,
}

/// The names of programs with the same configuration.
type Row = (&'static [&'static str], fn(&Place) -> Setup);

const SETUPS: &[Row] = &[
    (&["claude", "claude-agent-acp"], claude),
    (&["cline"], cline),
    (&["codex", "codex-acp"], codex),
    (&["copilot"], copilot),
    (&["gemini"], gemini),
    (&["goose"], goose),
    (&["hermes"], hermes),
    (&["kimi"], kimi),
    (&["opencode"], opencode),
    (&["pi", "pi-acp"], pi),
    (&["qwen"], qwen),
    (&["vibe", "vibe-acp"], vibe),
];

fn claude(place: &Place) -> Setup {
    let env = vec![
        ("ANTHROPIC_BASE_URL", place.url.clone()),
        key("ANTHROPIC_API_KEY"),
        on("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
        on("DISABLE_ERROR_REPORTING"),
        // By default it retries ten times, even with a wrong key.
        on("CLAUDE_CODE_MAX_RETRIES"),
    ];
    Setup { env, files: Vec::new() }
}

/// It still sends reports to the outside, so it is only for machines without network. It leaves a daemon behind.
fn cline(place: &Place) -> Setup {
    let base_url = format!("{}/v1", place.url);
    let settings = json!({
        "provider": "openai-compatible", "apiKey": "test-key", "model": "fake-model",
        "baseUrl": base_url,
    });
    // As `cline auth` writes it.
    let provider = json!({
        "settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual",
    });
    let providers = json!({
        "version": 1, "lastUsedProvider": "openai-compatible", "modes": {},
        "providers": { "openai-compatible": provider },
    });
    let env = vec![
        // Without it, ACP only offers a login in a browser.
        key("CLINE_API_KEY"),
        ("CLINE_PROVIDER", "openai-compatible".into()),
        ("CLINE_MODEL", "fake-model".into()),
        on("CLINE_NO_AUTO_UPDATE"),
        on("CLINE_TELEMETRY_DISABLED"),
    ];
    Setup { env, files: vec![(".cline/data/settings/providers.json", providers.to_string())] }
}

fn codex(place: &Place) -> Setup {
    // A model that it knows; others make it send a warning as the assistant.
    let config = format!(
        r#"model = "gpt-6.1-sol"
model_provider = "fake"
check_for_update_on_startup = false
[features]
plugins = false
[analytics]
enabled = false
[model_providers.fake]
name = "Fake"
base_url = "{}/v1"
env_key = "FAKE_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
supports_websockets = false
"#,
        place.url
    );
    let env = vec![("CODEX_HOME", text(&place.home.join(".codex"))), key("FAKE_API_KEY")];
    Setup { env, files: vec![(".codex/config.toml", config)] }
}

fn copilot(place: &Place) -> Setup {
    let env = vec![
        ("COPILOT_OFFLINE", "true".into()),
        ("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", place.url)),
        key("COPILOT_PROVIDER_API_KEY"),
        ("COPILOT_MODEL", "fake-model".into()),
        ("COPILOT_AUTO_UPDATE", "false".into()),
    ];
    Setup { env, files: Vec::new() }
}

fn gemini(place: &Place) -> Setup {
    // Without a selected login method, a base URL makes it look for a gateway and exit.
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "general": { "enableAutoUpdate": false },
        "privacy": { "usageStatisticsEnabled": false },
    });
    let env = vec![
        key("GEMINI_API_KEY"),
        ("GOOGLE_GEMINI_BASE_URL", place.url.clone()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true".into()),
        // Otherwise there are two processes, and a signal only reaches the wrapper.
        ("GEMINI_CLI_NO_RELAUNCH", "true".into()),
        ("GEMINI_TELEMETRY_ENABLED", "false".into()),
    ];
    Setup { env, files: vec![(".gemini/settings.json", settings.to_string())] }
}

fn goose(place: &Place) -> Setup {
    let env = vec![
        ("GOOSE_PROVIDER", "openai".into()),
        ("GOOSE_MODEL", "fake-model".into()),
        ("GOOSE_MODE", "approve".into()),
        ("OPENAI_HOST", place.host.clone()),
        ("OPENAI_BASE_PATH", format!("{}/v1/chat/completions", place.path)),
        key("OPENAI_API_KEY"),
        on("GOOSE_DISABLE_KEYRING"),
        on("GOOSE_TELEMETRY_OFF"),
        ("GOOSE_TELEMETRY_ENABLED", "false".into()),
    ];
    Setup { env, files: Vec::new() }
}

/// JSON is YAML. It still requests a list of models from the outside, so it is only for machines without network.
fn hermes(place: &Place) -> Setup {
    let base_url = format!("{}/v1", place.url);
    let model = json!({
        "provider": "custom", "default": "fake-model", "base_url": base_url, "api_key": "test-key",
    });
    let config = json!({ "model": model }).to_string();
    let env = vec![("HERMES_HOME", text(&place.home.join(".hermes")))];
    Setup { env, files: vec![(".hermes/config.yaml", config)] }
}

fn kimi(place: &Place) -> Setup {
    let config = format!(
        r#"default_model = "fake"
[providers.fake]
type = "openai"
base_url = "{}/v1"
api_key = "test-key"
[models.fake]
provider = "fake"
model = "fake-model"
max_context_size = 200000
"#,
        place.url
    );
    let env = vec![
        ("KIMI_CODE_HOME", text(&place.home.join(".kimi-code"))),
        on("KIMI_DISABLE_TELEMETRY"),
        on("KIMI_CODE_NO_AUTO_UPDATE"),
    ];
    Setup { env, files: vec![(".kimi-code/config.toml", config)] }
}

fn opencode(place: &Place) -> Setup {
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": format!("{}/v1", place.url), "apiKey": "test-key" },
        "models": { "fake-model": {}, "fake-model-mini": {} },
    });
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": "fake/fake-model",
        "small_model": "fake/fake-model-mini", "enabled_providers": ["fake"],
        "provider": { "fake": provider }, "permission": { "bash": "ask", "edit": "ask" },
    });
    let env = vec![
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
        on("OPENCODE_DISABLE_AUTOUPDATE"),
        on("OPENCODE_DISABLE_MODELS_FETCH"),
        on("OPENCODE_DISABLE_LSP_DOWNLOAD"),
        on("OPENCODE_DISABLE_DEFAULT_PLUGINS"),
    ];
    Setup { env, files: Vec::new() }
}

fn pi(place: &Place) -> Setup {
    let provider = json!({
        "baseUrl": format!("{}/v1", place.url), "api": "openai-completions", "apiKey": "test-key",
        "models": [{ "id": "fake-model" }],
    });
    let models = json!({ "providers": { "fake": provider } });
    let settings = json!({ "defaultProvider": "fake", "defaultModel": "fake-model" });
    let env = vec![on("PI_OFFLINE"), on("PI_SKIP_VERSION_CHECK"), ("PI_TELEMETRY", "0".into())];
    let files = vec![
        (".pi/agent/models.json", models.to_string()),
        (".pi/agent/settings.json", settings.to_string()),
    ];
    Setup { env, files }
}

fn qwen(place: &Place) -> Setup {
    let settings = json!({
        "general": { "disableAutoUpdate": true, "enableAutoUpdate": false },
        "privacy": { "usageStatisticsEnabled": false },
    });
    let env = vec![
        key("OPENAI_API_KEY"),
        ("OPENAI_BASE_URL", format!("{}/v1", place.url)),
        ("OPENAI_MODEL", "fake-model".into()),
        ("QWEN_TELEMETRY_ENABLED", "false".into()),
    ];
    Setup { env, files: vec![(".qwen/settings.json", settings.to_string())] }
}

/// It still requests its account from the outside, so it is only for machines without network.
fn vibe(place: &Place) -> Setup {
    let config = format!(
        r#"active_model = "fake"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "fake"
api_base = "{}/v1"
api_key_env_var = "FAKE_API_KEY"
backend = "generic"
[[models]]
name = "fake-model"
provider = "fake"
alias = "fake"
"#,
        place.url
    );
    let env = vec![("VIBE_HOME", text(&place.home.join(".vibe"))), key("FAKE_API_KEY")];
    Setup { env, files: vec![(".vibe/config.toml", config)] }
}

/// The only API key that agents get.
fn key(name: &'static str) -> (&'static str, String) {
    (name, "test-key".into())
}

fn on(name: &'static str) -> (&'static str, String) {
    (name, "1".into())
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}
