//! Queries an agent's models over ACP: opens a session, reads the models and deletes the session.

use super::{
    command::{ProbeCommand, ProcessGroup, read_bounded},
    text_lines::error_line,
};
use jackfield_catalog::ModelEntry;
use jackfield_protocol::{LineSplitter, acp::Method};
use serde_json::{Value, json};
use std::{io::ErrorKind, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStdin, ChildStdout},
    time::timeout,
};

/// The time limit for deleting the session, which is optional.
const DELETE_MAX: Duration = Duration::from_secs(1);
/// The time between TERM and KILL.
const TERM_GRACE: Duration = Duration::from_millis(300);
const LINE_BYTES_MAX: usize = 8 << 20;
/// The error code of an agent that needs a login first.
const LOGIN_FIRST: i64 = -32000;

/// The models that a new session offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionModels {
    pub(super) models: Vec<ModelEntry>,
    pub(super) current: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueryError {
    LoginFirst,
    Late(String),
    /// `initialize` was not answered in time.
    InitializeLate(String),
    /// The program ended or refused `initialize`.
    NotAcp(String),
    Other(String),
}

/// Starts the program, initializes it, opens a session if its models are wanted, and kills the
/// program with its whole process group.
pub(super) async fn query_models(
    command: ProbeCommand<'_>,
    limit: Duration,
    wants_models: bool,
) -> Result<SessionModels, QueryError> {
    let failed = |why: String| QueryError::NotAcp(why);
    let mut group = ProcessGroup::start_with_stdin(command)
        .map_err(|error| failed(format!("`{}`: {error}", command.command_line())))?;
    let (Some(stdin), Some(stdout)) = (group.stdin(), group.stdout()) else {
        return Err(failed("its pipes cannot be opened".to_owned()));
    };
    let stderr = group.stderr();
    // Read, because an agent that blocks on its log would never answer.
    let mut errors = tokio::spawn(async move {
        let mut text = Vec::new();
        if let Some(stderr) = stderr {
            read_bounded(stderr, &mut text).await;
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut client = AcpClient::new(stdin, stdout);
    let answer = timeout(limit, open_session(&mut client, command.cwd, wants_models)).await;
    let mut offer = answer.unwrap_or_else(|_| {
        let seconds = limit.as_secs_f32();
        Err(if client.is_initialized {
            QueryError::Late(format!("it opened no session within {seconds:.1} s"))
        } else {
            let method = Method::Initialize.name();
            QueryError::InitializeLate(format!(
                "it did not answer `{method}` within {seconds:.1} s"
            ))
        })
    });
    if let Some(session) = client.to_delete.take() {
        let params = json!({ "sessionId": session });
        let _courtesy =
            timeout(DELETE_MAX, client.request(Method::SessionDelete.name(), &params)).await;
    }
    drop(client);
    group.terminate();
    let _ended = timeout(TERM_GRACE, group.exited()).await;
    drop(group);
    if let Err(QueryError::NotAcp(why)) = &mut offer {
        let printed = timeout(TERM_GRACE, &mut errors).await.ok().and_then(Result::ok);
        if let Some(line) = printed.and_then(|it| error_line(&it)) {
            *why = format!("`{}`: {why}: {line}", command.command_line());
        }
    }
    errors.abort();
    offer
}

async fn open_session(
    client: &mut AcpClient,
    cwd: &Path,
    wants_models: bool,
) -> Result<SessionModels, QueryError> {
    let initialize_params = json!({
        "protocolVersion": 1,
        "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
        "clientInfo": { "name": "jackfield-probe", "version": env!("CARGO_PKG_VERSION") },
    });
    let initialized = client.request(Method::Initialize.name(), &initialize_params).await;
    let initialized = initialized.map_err(|it| match it {
        QueryError::Other(why) => QueryError::NotAcp(why),
        it => it,
    })?;
    client.is_initialized = true;
    if !wants_models {
        return Ok(SessionModels::default());
    }
    let opened =
        client.request(Method::SessionNew.name(), &json!({ "cwd": cwd, "mcpServers": [] })).await?;
    let delete = initialized.pointer("/agentCapabilities/sessionCapabilities/delete");
    if delete.is_some_and(Value::is_object) {
        client.to_delete = opened["sessionId"].as_str().map(str::to_owned);
    }
    Ok(read_models(&opened))
}

/// Reads the config option for models if it offers a choice, otherwise the older list of models.
fn read_models(opened: &Value) -> SessionModels {
    let options = opened["configOptions"].as_array().into_iter().flatten();
    let option = options.into_iter().find(|it| it["category"] == "model" || it["id"] == "model");
    let by_option = option.map_or_else(SessionModels::default, |it| SessionModels {
        models: read_values(&it["options"], &["value", "id"]),
        current: it["currentValue"].as_str().map(str::to_owned),
    });
    if 1 < by_option.models.len() {
        return by_option;
    }
    let older = SessionModels {
        models: read_values(&opened["models"]["availableModels"], &["modelId", "id"]),
        current: opened["models"]["currentModelId"].as_str().map(str::to_owned),
    };
    if older.models.is_empty() { by_option } else { older }
}

/// Reads values with names, which may be in groups.
fn read_values(values: &Value, ids: &[&str]) -> Vec<ModelEntry> {
    let mut models = Vec::new();
    collect_values(values, ids, &mut models);
    models
}

fn collect_values(values: &Value, ids: &[&str], models: &mut Vec<ModelEntry>) {
    for value in values.as_array().into_iter().flatten() {
        if value["options"].is_array() {
            collect_values(&value["options"], ids, models);
            continue;
        }
        let id = ids.iter().find_map(|it| value[*it].as_str()).map(str::trim).unwrap_or_default();
        let name = value["name"].as_str().map(str::trim).filter(|it| !it.is_empty());
        if !id.is_empty() && models.iter().all(|it| it.id != id) {
            models.push(ModelEntry { id: id.to_owned(), name: name.unwrap_or(id).to_owned() });
        }
    }
}

/// A minimal ACP client: requests of the agent are refused, and its notifications are ignored.
struct AcpClient {
    stdin: ChildStdin,
    stdout: ChildStdout,
    splitter: LineSplitter,
    received: Vec<Value>,
    next_id: u64,
    is_initialized: bool,
    /// The session that the agent would keep unless it is deleted.
    to_delete: Option<String>,
}

impl AcpClient {
    fn new(stdin: ChildStdin, stdout: ChildStdout) -> AcpClient {
        let splitter = LineSplitter::new(LINE_BYTES_MAX);
        AcpClient {
            stdin,
            stdout,
            splitter,
            received: Vec::new(),
            next_id: 0,
            is_initialized: false,
            to_delete: None,
        }
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, QueryError> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        loop {
            for received in std::mem::take(&mut self.received) {
                if received["method"].is_string() && !received["id"].is_null() {
                    let error = json!({ "code": -32601, "message": "this is only a probe" });
                    self.send(&json!({ "jsonrpc": "2.0", "id": received["id"], "error": error }))
                        .await?;
                } else if received["id"] == id {
                    return into_result(method, received);
                }
            }
            self.receive(method).await?;
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), QueryError> {
        let line = format!("{message}\n");
        match self.stdin.write_all(line.as_bytes()).await {
            // It may have exited before or after this; its output ends in both cases.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(QueryError::Other(format!("failed to write its stdin: {error}")))
            }
            _ => Ok(()),
        }
    }

    async fn receive(&mut self, method: &str) -> Result<(), QueryError> {
        let mut chunk = vec![0; 1 << 14];
        let count = self.stdout.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            return Err(QueryError::Other(format!("it exited without a response to `{method}`")));
        }
        chunk.truncate(count);
        let received = &mut self.received;
        self.splitter.push(chunk.into(), &mut |line| {
            let value = line.ok().and_then(|it| serde_json::from_slice(&it).ok());
            received.extend(value);
        });
        Ok(())
    }
}

fn into_result(method: &str, mut received: Value) -> Result<Value, QueryError> {
    let error = &received["error"];
    if error.is_null() {
        return Ok(received["result"].take());
    }
    let message = error["message"].as_str().unwrap_or("an error without a message");
    if error["code"] == LOGIN_FIRST {
        return Err(QueryError::LoginFirst);
    }
    // `data` has no fixed format, but often contains the cause.
    let data = &error["data"];
    let cause = ["details", "message", "error"].iter().find_map(|it| data[*it].as_str());
    let cause = cause.or(data.as_str()).map(|it| format!(": {it}")).unwrap_or_default();
    Err(QueryError::Other(format!("`{method}` failed: {message}{cause}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(offer: &SessionModels) -> Vec<&str> {
        offer.models.iter().map(|it| it.id.as_str()).collect()
    }

    #[test]
    fn config_option_is_preferred_to_the_older_model_list() {
        let older = json!({ "currentModelId": "c", "availableModels": [{ "modelId": "c" }] });
        let options = json!([
            { "id": "mode", "options": [{ "value": "ask" }] },
            { "id": "model", "category": "model", "currentValue": "b", "options": [
                { "value": "a", "name": "Alpha" },
                { "group": "more", "options": [{ "value": "b" }, { "value": " a " }] },
            ] },
        ]);
        let offer = read_models(&json!({ "configOptions": options, "models": older }));
        assert_eq!((ids(&offer), offer.current.as_deref()), (vec!["a", "b"], Some("b")));
        assert_eq!(offer.models[0].name, "Alpha");
        let one = json!([{ "id": "model", "options": [{ "value": "a" }] }]);
        let offer = read_models(&json!({ "configOptions": one, "models": older }));
        assert_eq!((ids(&offer), offer.current.as_deref()), (vec!["c"], Some("c")));
        assert_eq!(ids(&read_models(&json!({ "configOptions": one }))), ["a"]);
        assert_eq!(
            read_models(&json!({ "configOptions": 7, "models": [] })),
            SessionModels::default()
        );
    }
}
