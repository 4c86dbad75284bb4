//! The CLIs, and how each is driven: one row of data each.

use jackfield_e2e::{Cli, home::binary};
use std::path::Path;

/// One CLI and one way to drive it: a row of the table.
#[derive(Debug)]
pub(super) struct Rig {
    /// The module of its tests.
    pub(super) id: &'static str,
    /// The agent's name in the catalogue.
    pub(super) agent: &'static str,
    /// Its program.
    pub(super) cli: &'static str,
    pub(super) way: Way,
    /// The mode in which it asks before it acts, if it is not the one it begins with.
    pub(super) mode_that_asks: Option<&'static str>,
    /// The mode in which its tools run at all, if it is not the one it begins with.
    pub(super) mode_that_acts: Option<&'static str>,
    /// A prompt that makes it change something, with `{file}` for the file, and it asks before.
    pub(super) change: &'static str,
    /// It loads no session in the minute in which it began it.
    pub(super) resumes_late: bool,
    /// What of a provider it reports without retrying for long.
    pub(super) quick_errors: &'static [u16],
    /// Whether every merge is tested with it.
    pub(super) every_merge: bool,
}

#[derive(Debug)]
pub(super) enum Way {
    /// It speaks ACP with these arguments.
    Acp(&'static [&'static str]),
    /// Through `jackfield adapt AGENT` in this dialect.
    Adapter(&'static str),
}

const ERRORS: &[u16] = &[401, 429, 500];

/// What most rows have in common.
const USUAL: Rig = Rig {
    id: "",
    agent: "",
    cli: "",
    way: Way::Acp(&[]),
    mode_that_asks: None,
    mode_that_acts: None,
    change: "TOUCH something",
    resumes_late: false,
    quick_errors: ERRORS,
    every_merge: true,
};

/// A row of the nightly run.
const NIGHTLY: Rig = Rig { every_merge: false, ..USUAL };

#[rustfmt::skip]
pub(super) const RIGS: &[Rig] = &[
    Rig { id: "claude_agent_acp", agent: "claude", cli: "claude-agent-acp", ..USUAL },
    Rig { id: "codex_acp", agent: "codex", cli: "codex-acp", mode_that_asks: Some("read-only"), change: "WRITE {file}", ..USUAL },
    Rig { id: "gemini_acp", agent: "gemini", cli: "gemini", way: Way::Acp(&["--acp", "-m", "gemini-2.5-flash"]), quick_errors: &[401], resumes_late: true, ..USUAL },
    Rig { id: "goose", agent: "goose", cli: "goose", way: Way::Acp(&["acp", "--with-builtin", "developer"]), ..USUAL },
    Rig { id: "claude", agent: "claude", cli: "claude", way: Way::Adapter("claude"), ..USUAL },
    Rig { id: "codex_app_server", agent: "codex", cli: "codex", way: Way::Adapter("codex-app-server"), ..USUAL },
    Rig { id: "codex_exec", agent: "codex", cli: "codex", way: Way::Adapter("codex"), mode_that_acts: Some("full-access"), ..USUAL },
    Rig { id: "gemini_json", agent: "gemini", cli: "gemini", way: Way::Adapter("gemini"), mode_that_acts: Some("yolo"), quick_errors: &[401], ..USUAL },
    Rig { id: "cline", agent: "cline", cli: "cline", way: Way::Acp(&["--acp"]), ..NIGHTLY },
    Rig { id: "copilot", agent: "copilot", cli: "copilot", way: Way::Acp(&["--acp", "--disable-client-telemetry", "--no-auto-update"]), ..NIGHTLY },
    Rig { id: "hermes", agent: "hermes", cli: "hermes", way: Way::Acp(&["acp", "--accept-hooks"]), ..NIGHTLY },
    Rig { id: "kimi", agent: "kimi", cli: "kimi", way: Way::Acp(&["acp"]), ..NIGHTLY },
    Rig { id: "opencode", agent: "opencode", cli: "opencode", way: Way::Acp(&["acp"]), ..NIGHTLY },
    Rig { id: "pi", agent: "pi", cli: "pi-acp", ..NIGHTLY },
    Rig { id: "qwen", agent: "qwen", cli: "qwen", way: Way::Acp(&["--acp", "--auth-type", "openai"]), ..NIGHTLY },
    Rig { id: "vibe", agent: "vibe", cli: "vibe-acp", ..NIGHTLY },
];

impl Rig {
    pub(super) fn named(id: &str) -> &'static Rig {
        RIGS.iter().find(|it| it.id == id).unwrap_or_else(|| panic!("no rig is called `{id}`"))
    }

    /// Whether text comes while the model speaks; `codex exec` tells it when it is whole.
    pub(super) fn streams(&self) -> bool {
        !matches!(self.way, Way::Adapter("codex"))
    }

    /// The command line that speaks ACP.
    pub(super) fn argv(&self, cli: &Cli) -> Vec<String> {
        match self.way {
            Way::Acp(args) => cli.argv(args),
            Way::Adapter(dialect) => {
                let jackfield = binary("jackfield").to_str().unwrap().to_owned();
                let args = ["adapt", self.agent, "--variant", dialect].map(str::to_owned);
                [jackfield].into_iter().chain(args).collect()
            }
        }
    }

    /// The CLI in a home of its own; an adapter finds its program by the variable that names it.
    pub(super) fn cli(&self, home: &Path, model_url: &str) -> Cli {
        let mut cli = Cli::new(self.cli, home, model_url);
        if let Way::Adapter(_) = self.way {
            let program = cli.program.to_str().unwrap().to_owned();
            cli.env.insert(format!("{}_BIN", self.agent.to_uppercase()), program);
        }
        cli
    }

    /// The first two cells of its row: whose it is, and by which way.
    pub(super) fn title(&self) -> [String; 2] {
        let way = match self.way {
            Way::Acp(_) => format!("ACP, `{}`", self.cli),
            Way::Adapter(dialect) => format!("adapter, `{dialect}`"),
        };
        [format!("`{}`", self.agent), way]
    }
}
