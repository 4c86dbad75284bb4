//! What the model can do: tools of our own, each in a file.
//!
//! A call is prepared first: its arguments are read, and what it would do is found out, so that a
//! person sees it before they allow it. Then it is run. Dropping a run is how it is cancelled, and
//! nothing stays behind: no process, no terminal, no thread that searches on.
//!
//! The `table` says what there is, `args` reads what a model wrote, `files` reads and writes through
//! the client or without it, a `change` is what write, edit and patch come down to, and `cut` bounds
//! what the model is told.

pub(crate) mod args;
mod change;
pub(crate) mod cut;
mod edit;
mod files;
mod glob;
mod grep;
mod list;
mod patch;
mod read;
mod shell;
mod table;
mod todo;
mod walk;
mod web_fetch;
#[cfg(test)]
mod world;
mod write;

use crate::model::Call;
use agent_client_protocol::{
    Client,
    v1::{
        ConnectionTo,
        schema::{
            Content, PlanEntry, SessionId, ToolCallContent, ToolCallLocation, ToolCallUpdateFields,
            ToolKind,
        },
    },
};
use args::Args;
use jackfield_agents::GuardCommand;
use serde_json::Value;
use std::path::PathBuf;
use table::Tool;

/// Where progress is told while a call runs.
pub(crate) type Show<'a> = &'a (dyn Fn(ToolCallUpdateFields) + Send + Sync);

/// Where a session works, and through whom.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) session: SessionId,
    /// The working directory first, then the additional ones.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) client: ConnectionTo<Client>,
    pub(crate) offers: Offers,
    /// What a command of ours runs under.
    pub(crate) guard: GuardCommand,
    /// Where commands and servers of this process are entered while they run.
    pub(crate) ledger: PathBuf,
    /// Whether pages may be fetched from the web.
    pub(crate) fetch: bool,
}

/// What the client does for us; the rest we do ourselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) terminal: bool,
}

/// What a call would do, before anybody has allowed it. `Work` is what a tool does then.
#[derive(Debug)]
pub(crate) struct Job<Work> {
    /// The arguments that will be carried out: the `rawInput` by which rules and people judge it.
    pub(crate) input: Value,
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) locations: Vec<ToolCallLocation>,
    /// What a person should see before they allow it: the diff of an edit.
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) grant: Grant,
    pub(crate) work: Work,
}

impl<Work> Job<Work> {
    /// The same job as one among others.
    pub(crate) fn map<T>(self, wrap: impl FnOnce(Work) -> T) -> Job<T> {
        let Job { input, title, kind, locations, content, grant, work } = self;
        Job { input, title, kind, locations, content, grant, work: wrap(work) }
    }
}

/// Whether somebody has to allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grant {
    /// It changes nothing.
    Free,
    /// It changes a file of the session.
    Edit,
    /// Anything else, by the name that "always" covers: `shell cargo test`, `mcp github.search`.
    Ask(String),
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    /// For the model, and bounded: where something was left out, it says so.
    pub(crate) text: String,
    pub(crate) failed: bool,
    /// For people; the text itself if there is nothing better.
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) raw: Option<Value>,
    /// The plan, if the call changed it.
    pub(crate) plan: Option<Vec<PlanEntry>>,
}

/// What one of our tools does when it is allowed.
#[derive(Debug)]
pub(crate) enum Work {
    Read(read::Read),
    List(list::List),
    Glob(glob::Glob),
    Grep(grep::Grep),
    Change(change::Changes),
    Shell(shell::Shell),
    Todo(Vec<PlanEntry>),
    Fetch(web_fetch::Fetch),
}

/// The tools as a request offers them. Without `may_change`, only those that change nothing.
pub(crate) fn offered(site: &Site, may_change: bool) -> Vec<Value> {
    let fits = |tool: &&Tool| (may_change || !tool.changes) && (site.fetch || !tool.web);
    table::TOOLS.iter().filter(fits).map(Tool::to_spec).collect()
}

/// Finds out what a call would do. An error is told to the model as the result of the call.
pub(crate) async fn prepare(call: &Call, site: &Site) -> Result<Job<Work>, String> {
    let tool = table::find(&call.name, site)?;
    let args = Args::read(tool, &call.arguments)?;
    match tool.name {
        table::READ => read::prepare(&args, site).await,
        table::LIST => list::prepare(&args, site).await,
        table::GLOB => glob::prepare(&args, site).await,
        table::GREP => grep::prepare(&args, site).await,
        table::WRITE => write::prepare(&args, site).await,
        table::EDIT => edit::prepare(&args, site).await,
        table::APPLY_PATCH => patch::prepare(&args, site).await,
        table::SHELL => shell::prepare(&args, site).await,
        table::PLAN => todo::prepare(&args),
        table::WEB_FETCH => web_fetch::prepare(&args),
        name => unreachable!("`{name}` is in the table and nobody prepares it"),
    }
}

/// Does what was prepared.
pub(crate) async fn run(work: Work, site: &Site, show: Show<'_>) -> Outcome {
    match work {
        Work::Read(work) => work.run(site).await,
        Work::List(work) => work.run().await,
        Work::Glob(work) => work.run().await,
        Work::Grep(work) => work.run().await,
        Work::Change(work) => work.run(site).await,
        Work::Shell(work) => work.run(site, show).await,
        Work::Todo(entries) => todo::run(entries),
        Work::Fetch(work) => work.run().await,
    }
}

impl Outcome {
    /// What a tool found out.
    pub(crate) fn told(text: String) -> Outcome {
        Outcome { text, ..Outcome::default() }
    }

    pub(crate) fn failed(text: String) -> Outcome {
        Outcome { text, failed: true, ..Outcome::default() }
    }

    fn or_failed(result: Result<Outcome, String>) -> Outcome {
        result.unwrap_or_else(Outcome::failed)
    }
}

/// What a program printed or a file holds, for people: editors show text as Markdown.
pub(crate) fn fenced(text: &str) -> ToolCallContent {
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let block = format!("{fence}\n{text}{end}{fence}");
    ToolCallContent::Content(Content::new(block))
}

#[cfg(test)]
mod tests {
    use super::{
        table::TOOLS,
        world::{World, in_world},
        *,
    };

    fn names(world: &World, may_change: bool) -> Vec<String> {
        let name = |it: &Value| it["function"]["name"].as_str().unwrap().to_owned();
        offered(&world.site, may_change).iter().map(name).collect()
    }

    #[tokio::test]
    async fn what_is_offered_depends_on_what_is_wanted() {
        in_world(Offers::default(), async |mut world| {
            let quiet = ["read", "list", "glob", "grep", "todo", "web_fetch"];
            assert_eq!(names(&world, false), quiet);
            assert_eq!(names(&world, true).len(), TOOLS.len());
            world.site.fetch = false;
            assert_eq!(names(&world, false), &quiet[..5]);
            let why = world.prepare("web_fetch", serde_json::json!({})).await.unwrap_err();
            assert!(
                why.starts_with("There is no tool `web_fetch`. The tools are `read`,"),
                "{why}"
            );
        })
        .await;
    }

    #[tokio::test]
    async fn every_tool_of_the_table_is_prepared_and_has_its_kind() {
        in_world(Offers::default(), async |world| {
            std::fs::create_dir(world.at("src")).unwrap();
            for name in ["src/main.rs", "a.py"] {
                std::fs::write(world.at(name), "x = 1\n").unwrap();
            }
            for tool in TOOLS {
                let args = serde_json::from_str(tool.example).unwrap();
                let job = world.prepare(tool.name, args).await.unwrap();
                assert_eq!(job.kind, tool.kind);
                assert_eq!(job.grant == Grant::Free, !tool.changes && !tool.web, "{}", tool.name);
            }
        })
        .await;
    }

    #[tokio::test]
    async fn calls_can_run_in_a_task_of_the_connection() {
        fn is_send<T: Send>(it: T) -> T {
            it
        }
        in_world(Offers::default(), async |world| {
            let arguments = r#"{"command": "true"}"#.to_owned();
            let call = Call { id: "c".into(), name: "shell".into(), arguments };
            let job = is_send(prepare(&call, &world.site)).await.unwrap();
            assert!(!is_send(run(job.work, &world.site, &|_| {})).await.failed);
        })
        .await;
    }

    #[test]
    fn a_fence_is_longer_than_any_inside() {
        let ToolCallContent::Content(content) = fenced("a\n````\nb") else { panic!() };
        let text = serde_json::to_value(content).unwrap()["content"]["text"].clone();
        assert_eq!(text, "`````\na\n````\nb\n`````");
    }
}
