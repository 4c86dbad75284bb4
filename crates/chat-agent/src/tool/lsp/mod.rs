//! The tool `lsp`: asks a language server about code.
//!
//! The settings name the servers and the files they are for. A server is started on first use, and
//! ends with its session.

mod connection;
mod format;
mod frames;
#[cfg(test)]
mod tests;

use super::{
    PreparedCall, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    files::{ResolvedPath, run_blocking},
};
use crate::settings::LanguageServer;
use connection::LspConnection;
use reqwest::Url;
use serde_json::{Value, json};
use std::{collections::HashMap, path::Path, sync::Arc};
use tokio::sync::Mutex;

/// The language servers of a session.
#[derive(Default)]
pub(crate) struct LanguageServers {
    servers: Vec<LanguageServer>,
    /// The servers that were started, by their index.
    running: Mutex<HashMap<usize, Arc<LspConnection>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LspAction {
    Definition,
    References,
    Hover,
    Symbols,
    Diagnostics,
}

const ACTIONS: [(&str, LspAction); 5] = [
    ("definition", LspAction::Definition),
    ("references", LspAction::References),
    ("hover", LspAction::Hover),
    ("symbols", LspAction::Symbols),
    ("diagnostics", LspAction::Diagnostics),
];

#[derive(Debug)]
pub(crate) struct LspQuery {
    action: LspAction,
    path: ResolvedPath,
    /// From 1.
    line: Option<u64>,
    /// A text in the line, at whose start the position is.
    symbol: Option<String>,
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let name = args.required_text("action")?;
    let action = ACTIONS.iter().find(|it| it.0 == name).map(|it| it.1);
    let action = action.ok_or_else(|| {
        let names = ACTIONS.map(|it| it.0).join(", ");
        args.invalid_argument("action", &format!("is not one of {names}"))
    })?;
    let path = ResolvedPath::resolve_file(&args.required_text("path")?, context).await?;
    let line = args.optional_number("line")?;
    let needs_line = !matches!(action, LspAction::Symbols | LspAction::Diagnostics);
    if needs_line && line.is_none() {
        return Err(args.invalid_argument("line", &format!("is missing: `{name}` needs it")));
    }
    let symbol = args.optional_text("symbol")?.filter(|it| !it.is_empty());
    Ok(PreparedCall {
        input: args.to_input(),
        title: format!("{name} {}", path.display),
        kind: args.tool().kind,
        locations: vec![path.to_location(line.and_then(|it| u32::try_from(it).ok()))],
        content: Vec::new(),
        permission: RequiredPermission::None,
        work: ToolWork::Lsp(LspQuery { action, path, line, symbol }),
    })
}

impl LspQuery {
    pub(super) async fn run(self, context: &SessionContext) -> ToolOutcome {
        let outcome = self.ask_server(context).await;
        ToolOutcome::from_result(outcome.map(ToolOutcome::success))
    }

    async fn ask_server(&self, context: &SessionContext) -> Result<String, String> {
        let text = self.path.read(context, None, None).await?;
        let (server, language) = context.language_servers.connect(&self.path.real, context).await?;
        let uri = to_uri(&self.path.real)?;
        server.sync_file(&uri, &language, &text)?;
        server.wait_until_loaded().await;
        let document = json!({ "uri": uri });
        let mut params = json!({ "textDocument": document });
        if let Some(line) = self.line {
            params["position"] = find_position(&text, line, self.symbol.as_deref())?;
        }
        let dirs = context.dirs.clone();
        match self.action {
            LspAction::Definition => {
                let found = server.request("textDocument/definition", &params).await?;
                Ok(run_blocking(move || format::format_locations(&found, &dirs)).await)
            }
            LspAction::References => {
                params["context"] = json!({ "includeDeclaration": true });
                let found = server.request("textDocument/references", &params).await?;
                Ok(run_blocking(move || format::format_locations(&found, &dirs)).await)
            }
            LspAction::Hover => {
                let hover = server.request("textDocument/hover", &params).await?;
                Ok(format::format_hover(&hover))
            }
            LspAction::Symbols => {
                let symbols = server.request("textDocument/documentSymbol", &params).await?;
                Ok(format::format_symbols(&symbols))
            }
            LspAction::Diagnostics => {
                let found = server.diagnostics(&uri).await;
                Ok(format::format_diagnostics(&self.path.display, found.as_ref()))
            }
        }
    }
}

impl LanguageServers {
    pub(crate) fn new(servers: Vec<LanguageServer>) -> LanguageServers {
        LanguageServers { servers, running: Mutex::default() }
    }

    /// Returns the server for a file and the language of the file. Starts the server if it does not
    /// run.
    async fn connect(
        &self,
        path: &Path,
        context: &SessionContext,
    ) -> Result<(Arc<LspConnection>, String), String> {
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let is_for = |it: &LanguageServer| it.extensions.iter().any(|it| it == extension);
        let Some(index) = self.servers.iter().position(is_for) else {
            let known: Vec<&str> =
                self.servers.iter().flat_map(|it| &it.extensions).map(String::as_str).collect();
            return Err(format!(
                "No language server is for `.{extension}` files, only for {known:?}."
            ));
        };
        let language = to_language(extension).to_owned();
        let mut running = self.running.lock().await;
        if let Some(server) = running.get(&index).filter(|it| !it.has_ended()) {
            return Ok((Arc::clone(server), language));
        }
        let command = &self.servers[index].command;
        let spawn_context = context.to_spawn_context();
        let root_uri = to_uri(&spawn_context.dir)?;
        let failed = |error| format!("Failed to start `{}`: {error}.", command.join(" "));
        let server = LspConnection::start(command, &spawn_context).map_err(failed)?;
        server.initialize(&root_uri).await.map_err(failed)?;
        let server = Arc::new(server);
        running.insert(index, Arc::clone(&server));
        Ok((server, language))
    }
}

fn to_uri(path: &Path) -> Result<String, String> {
    let url = Url::from_file_path(path);
    url.map(String::from).map_err(|()| format!("`{}` is not an absolute path", path.display()))
}

/// The language ids of the protocol differ from some extensions.
fn to_language(extension: &str) -> &str {
    match extension {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "ts" => "typescript",
        "tsx" => "typescriptreact",
        "js" | "mjs" | "cjs" => "javascript",
        "jsx" => "javascriptreact",
        "cc" | "cxx" | "hpp" | "hh" => "cpp",
        "h" => "c",
        "rb" => "ruby",
        "cs" => "csharp",
        "kt" => "kotlin",
        "sh" => "shellscript",
        other => other,
    }
}

/// Positions count UTF-16 code units from 0.
fn find_position(text: &str, line: u64, symbol: Option<&str>) -> Result<Value, String> {
    let index = usize::try_from(line).ok().and_then(|it| it.checked_sub(1));
    let found = index.and_then(|it| text.lines().nth(it));
    let Some(content) = found else {
        return Err(format!("The file has only {} lines.", text.lines().count()));
    };
    let start = match symbol {
        Some(symbol) => content.find(symbol).ok_or_else(|| {
            format!("Line {line} does not contain `{symbol}`: it is `{content}`.")
        })?,
        None => content.len() - content.trim_start().len(),
    };
    let character = content[..start].encode_utf16().count();
    Ok(json!({ "line": line - 1, "character": character }))
}
