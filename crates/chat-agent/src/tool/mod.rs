//! The built-in tools, each in a file of its own.
//!
//! A call is prepared first: its arguments are parsed, and its effect is determined, so that the
//! user sees it before permitting it. Then it is run. Dropping the future of a run cancels it and
//! leaves nothing behind: no process, no terminal, no searching thread.
//!
//! `definitions` lists the tools, `arguments` parses what a model wrote, `files` reads and writes
//! through the client or directly, `changes` is the common part of write, edit and patch, and
//! `truncate` bounds the text that the model gets.

pub(crate) mod arguments;
mod changes;
mod code_search;
mod definitions;
mod edit;
mod features;
mod files;
mod glob;
mod grep;
mod list;
mod lsp;
mod optional_definitions;
mod patch;
mod read;
mod shell;
#[cfg(test)]
mod test_session;
mod todo;
pub(crate) mod truncate;
mod walk;
mod web_fetch;
mod web_search;
mod write;

pub(crate) use features::ToolFeatures;
pub(crate) use lsp::LanguageServers;

use crate::{AgentProfile, model::ModelToolCall, spawn_context::ServerSpawnContext};
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
use arguments::ToolArguments;
use definitions::ToolDefinition;
use jackfield_agents::GuardCommand;
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};

/// Receives updates while a call runs.
pub(crate) type ProgressSink<'a> = &'a (dyn Fn(ToolCallUpdateFields) + Send + Sync);

/// What the tools of a session work with.
#[derive(Clone)]
pub(crate) struct SessionContext {
    pub(crate) session_id: SessionId,
    /// The working directory first, then the additional ones.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) client: ConnectionTo<Client>,
    pub(crate) client_io: IoCapabilities,
    /// The guard that commands and servers run under.
    pub(crate) guard: GuardCommand,
    /// Where commands and servers of this process are recorded while they run.
    pub(crate) ledger_dir: PathBuf,
    pub(crate) features: ToolFeatures,
    pub(crate) language_servers: Arc<LanguageServers>,
    pub(crate) profile: AgentProfile,
}

impl SessionContext {
    /// What the servers of the session are started with.
    pub(crate) fn to_spawn_context(&self) -> ServerSpawnContext {
        let dir = self.dirs.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        ServerSpawnContext::new(dir, self.guard.clone(), self.ledger_dir.clone())
    }
}

/// The operations that the client performs for us. We perform the others ourselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IoCapabilities {
    pub(crate) reads_files: bool,
    pub(crate) writes_files: bool,
    pub(crate) has_terminals: bool,
}

/// A call with its effect, before it is permitted. `Work` is what a tool runs after that.
#[derive(Debug)]
pub(crate) struct PreparedCall<Work> {
    /// The arguments that will be used: the `rawInput` by which policy rules and users decide.
    pub(crate) input: Value,
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) locations: Vec<ToolCallLocation>,
    /// What the user should see before permitting the call, such as the diff of an edit.
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) permission: RequiredPermission,
    pub(crate) work: Work,
}

impl<Work> PreparedCall<Work> {
    pub(crate) fn map_work<T>(self, wrap: impl FnOnce(Work) -> T) -> PreparedCall<T> {
        let PreparedCall { input, title, kind, locations, content, permission, work } = self;
        PreparedCall { input, title, kind, locations, content, permission, work: wrap(work) }
    }
}

/// The permission that a call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequiredPermission {
    /// The call changes nothing.
    None,
    /// The call changes a file of the session.
    Edit,
    /// Any other effect, with the name that a permanent grant covers: `shell cargo test`,
    /// `mcp github.search`.
    Named(String),
}

/// The result of running a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolOutcome {
    /// For the model, with a bounded length. Omissions are marked.
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// For the user. If empty, the text is shown.
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) raw_output: Option<Value>,
    /// The plan, if the call changed it.
    pub(crate) plan: Option<Vec<PlanEntry>>,
}

/// What a built-in tool runs once it is permitted.
#[derive(Debug)]
pub(crate) enum ToolWork {
    Read(read::FileRead),
    List(list::DirectoryListing),
    Glob(glob::GlobSearch),
    Grep(grep::GrepSearch),
    Change(changes::ChangeSet),
    Shell(shell::ShellCall),
    Todo(Vec<PlanEntry>),
    Fetch(web_fetch::PageFetch),
    WebSearch(web_search::WebSearch),
    CodeSearch(code_search::CodeSearch),
    Lsp(lsp::LspQuery),
}

/// Which tools are offered to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolAccess {
    /// Only tools that change nothing.
    ReadOnly,
    Full,
}

/// Returns the tools in the format of Chat Completions.
pub(crate) fn tool_specs(context: &SessionContext, access: ToolAccess) -> Vec<Value> {
    let is_offered = |tool: &&ToolDefinition| {
        (access == ToolAccess::Full || !tool.has_side_effects) && tool.is_enabled(context)
    };
    definitions::all_tools().filter(is_offered).map(ToolDefinition::to_spec).collect()
}

/// Determines the effect of a call. The model gets an error as the result of the call.
pub(crate) async fn prepare_call(
    call: &ModelToolCall,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let tool = definitions::find_tool(&call.name, context)?;
    let args = ToolArguments::parse(tool, &call.arguments)?;
    match tool.name {
        definitions::READ => read::prepare(&args, context).await,
        definitions::LIST => list::prepare(&args, context).await,
        definitions::GLOB => glob::prepare(&args, context).await,
        definitions::GREP => grep::prepare(&args, context).await,
        definitions::WRITE => write::prepare(&args, context).await,
        definitions::EDIT => edit::prepare(&args, context).await,
        definitions::APPLY_PATCH => patch::prepare(&args, context).await,
        definitions::SHELL => shell::prepare(&args, context).await,
        definitions::TODO_LIST => todo::prepare(&args),
        optional_definitions::WEB_FETCH => web_fetch::prepare(&args),
        optional_definitions::WEB_SEARCH => web_search::prepare(&args, context),
        optional_definitions::CODE_SEARCH => code_search::prepare(&args, context).await,
        optional_definitions::LSP => lsp::prepare(&args, context).await,
        name => unreachable!("no code prepares calls of the tool `{name}`"),
    }
}

/// Runs a prepared call.
pub(crate) async fn run_work(
    work: ToolWork,
    context: &SessionContext,
    on_progress: ProgressSink<'_>,
) -> ToolOutcome {
    match work {
        ToolWork::Read(work) => work.run(context).await,
        ToolWork::List(work) => work.run().await,
        ToolWork::Glob(work) => work.run().await,
        ToolWork::Grep(work) => work.run().await,
        ToolWork::Change(work) => work.run(context).await,
        ToolWork::Shell(work) => work.run(context, on_progress).await,
        ToolWork::Todo(entries) => todo::run(entries),
        ToolWork::Fetch(work) => work.run().await,
        ToolWork::WebSearch(work) => work.run().await,
        ToolWork::CodeSearch(work) => work.run().await,
        ToolWork::Lsp(work) => work.run(context).await,
    }
}

impl ToolOutcome {
    pub(crate) fn success(text: String) -> ToolOutcome {
        ToolOutcome { text, ..ToolOutcome::default() }
    }

    pub(crate) fn failure(text: String) -> ToolOutcome {
        ToolOutcome { text, is_error: true, ..ToolOutcome::default() }
    }

    fn from_result(result: Result<ToolOutcome, String>) -> ToolOutcome {
        result.unwrap_or_else(ToolOutcome::failure)
    }
}

/// Wraps the output of a program or the text of a file in a code block, because editors render text
/// as Markdown.
pub(crate) fn to_fenced_block(text: &str) -> ToolCallContent {
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let block = format!("{fence}\n{text}{end}{fence}");
    ToolCallContent::Content(Content::new(block))
}

#[cfg(test)]
mod tests {
    use super::{
        definitions::all_tools,
        features::ToolFeature,
        test_session::{TestSession, with_test_session},
        *,
    };

    fn names(session: &TestSession, access: ToolAccess) -> Vec<String> {
        let name = |it: &Value| it["function"]["name"].as_str().unwrap().to_owned();
        tool_specs(&session.context, access).iter().map(name).collect()
    }

    #[tokio::test]
    async fn offered_tools_depend_on_the_access_and_the_settings() {
        with_test_session(IoCapabilities::default(), async |mut session| {
            let read_only = [
                "read",
                "list",
                "glob",
                "grep",
                "todo",
                "web_fetch",
                "web_search",
                "code_search",
                "lsp",
            ];
            assert_eq!(names(&session, ToolAccess::ReadOnly), read_only);
            assert_eq!(names(&session, ToolAccess::Full).len(), all_tools().count());
            session.context.features = ToolFeatures::default();
            assert_eq!(names(&session, ToolAccess::ReadOnly), &read_only[..5]);
            let error = session.prepare("web_fetch", serde_json::json!({})).await.unwrap_err();
            assert!(
                error.starts_with("There is no tool `web_fetch`. The tools are `read`,"),
                "{error}"
            );
        })
        .await;
    }

    #[tokio::test]
    async fn every_defined_tool_can_be_prepared() {
        with_test_session(IoCapabilities::default(), async |session| {
            std::fs::create_dir(session.at("src")).unwrap();
            for name in ["src/main.rs", "a.py"] {
                std::fs::write(session.at(name), "x = 1\n").unwrap();
            }
            for tool in all_tools() {
                let args = serde_json::from_str(tool.example).unwrap();
                let prepared = session.prepare(tool.name, args).await.unwrap();
                assert_eq!(prepared.kind, tool.kind);
                assert_eq!(
                    prepared.permission == RequiredPermission::None,
                    !tool.has_side_effects
                        && !matches!(
                            tool.feature,
                            Some(ToolFeature::WebFetch | ToolFeature::WebSearch)
                        ),
                    "{}",
                    tool.name
                );
            }
        })
        .await;
    }

    #[tokio::test]
    async fn futures_of_calls_are_send() {
        fn is_send<T: Send>(it: T) -> T {
            it
        }
        with_test_session(IoCapabilities::default(), async |session| {
            let arguments = r#"{"command": "true"}"#.to_owned();
            let call = ModelToolCall { id: "c".into(), name: "shell".into(), arguments };
            let prepared = is_send(prepare_call(&call, &session.context)).await.unwrap();
            assert!(!is_send(run_work(prepared.work, &session.context, &|_| {})).await.is_error);
        })
        .await;
    }

    #[test]
    fn fence_is_longer_than_any_fence_inside() {
        let ToolCallContent::Content(content) = to_fenced_block("a\n````\nb") else { panic!() };
        let text = serde_json::to_value(content).unwrap()["content"]["text"].clone();
        assert_eq!(text, "`````\na\n````\nb\n`````");
    }
}
