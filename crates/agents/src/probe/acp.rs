//! A few words of ACP: a session is opened to hear which models there are, and removed again.

use super::command::{Leash, Order};
use jackfield_catalogue::Model;
use jackfield_wire::LineSplitter;
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStdin, ChildStdout},
    time::timeout,
};

/// Removing the session again may take this long; it is a courtesy.
const DELETE_MAX: Duration = Duration::from_secs(1);
/// Between being asked to end and being killed.
const END_MAX: Duration = Duration::from_millis(300);
const LINE_BYTES_MAX: usize = 8 << 20;
/// The code of an agent that wants a login first.
const LOGIN_FIRST: i64 = -32000;

/// What a session's beginning told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) models: Vec<Model>,
    pub(super) current: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    LoginFirst,
    Late(String),
    Other(String),
}

/// Starts the program, opens a session, and ends it with its whole group.
pub(super) async fn offer(order: Order<'_>, limit: Duration) -> Result<Offer, Refused> {
    let failed = |why: String| Refused::Other(why);
    let mut leash =
        Leash::talk(order).map_err(|error| failed(format!("`{}`: {error}", order.shown())))?;
    let (Some(stdin), Some(stdout)) = (leash.stdin(), leash.stdout()) else {
        return Err(failed("its pipes cannot be used".to_owned()));
    };
    let stderr = leash.stderr();
    // Read and forgotten: an agent that waits for a reader of its log would never answer.
    let draining = tokio::spawn(async move {
        if let Some(mut stderr) = stderr {
            let _end = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        }
    });
    let mut talk = Talk::new(stdin, stdout);
    let offer = timeout(limit, open(&mut talk, order.cwd)).await.unwrap_or_else(|_| {
        let seconds = limit.as_secs_f32();
        Err(Refused::Late(format!("no session was open after {seconds:.1} s")))
    });
    if let Some(session) = talk.to_delete.take() {
        let params = json!({ "sessionId": session });
        let _courtesy = timeout(DELETE_MAX, talk.ask("session/delete", &params)).await;
    }
    drop(talk);
    leash.terminate();
    let _ended = timeout(END_MAX, leash.ended()).await;
    drop(leash);
    draining.abort();
    offer
}

async fn open(talk: &mut Talk, cwd: &Path) -> Result<Offer, Refused> {
    let hello = json!({
        "protocolVersion": 1,
        "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
        "clientInfo": { "name": "jackfield-probe", "version": env!("CARGO_PKG_VERSION") },
    });
    let told = talk.ask("initialize", &hello).await?;
    let opened = talk.ask("session/new", &json!({ "cwd": cwd, "mcpServers": [] })).await?;
    if told.pointer("/agentCapabilities/sessionCapabilities/delete").is_some_and(Value::is_object) {
        talk.to_delete = opened["sessionId"].as_str().map(str::to_owned);
    }
    Ok(read(&opened))
}

/// The option that is about models if it offers a choice, else the older list.
fn read(opened: &Value) -> Offer {
    let options = opened["configOptions"].as_array().into_iter().flatten();
    let option = options.into_iter().find(|it| it["category"] == "model" || it["id"] == "model");
    let by_option = option.map_or_else(Offer::default, |it| Offer {
        models: each(&it["options"], &["value", "id"]),
        current: it["currentValue"].as_str().map(str::to_owned),
    });
    if 1 < by_option.models.len() {
        return by_option;
    }
    let older = Offer {
        models: each(&opened["models"]["availableModels"], &["modelId", "id"]),
        current: opened["models"]["currentModelId"].as_str().map(str::to_owned),
    };
    if older.models.is_empty() { by_option } else { older }
}

/// Values with names, in groups or not.
fn each(values: &Value, ids: &[&str]) -> Vec<Model> {
    let mut models = Vec::new();
    collect(values, ids, &mut models);
    models
}

fn collect(values: &Value, ids: &[&str], models: &mut Vec<Model>) {
    for value in values.as_array().into_iter().flatten() {
        if value["options"].is_array() {
            collect(&value["options"], ids, models);
            continue;
        }
        let id = ids.iter().find_map(|it| value[*it].as_str()).map(str::trim).unwrap_or_default();
        let name = value["name"].as_str().map(str::trim).filter(|it| !it.is_empty());
        if !id.is_empty() && models.iter().all(|it| it.id != id) {
            models.push(Model { id: id.to_owned(), name: name.unwrap_or(id).to_owned() });
        }
    }
}

/// Questions out, answers in; everything else the agent says is refused or passed by.
struct Talk {
    stdin: ChildStdin,
    stdout: ChildStdout,
    splitter: LineSplitter,
    heard: Vec<Value>,
    next_id: u64,
    /// A session of ours that the agent keeps unless it is told not to.
    to_delete: Option<String>,
}

impl Talk {
    fn new(stdin: ChildStdin, stdout: ChildStdout) -> Talk {
        let splitter = LineSplitter::new(LINE_BYTES_MAX);
        Talk { stdin, stdout, splitter, heard: Vec::new(), next_id: 0, to_delete: None }
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Refused> {
        self.next_id += 1;
        let id = self.next_id;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        loop {
            for heard in std::mem::take(&mut self.heard) {
                if heard["method"].is_string() && !heard["id"].is_null() {
                    let error = json!({ "code": -32601, "message": "this is only a probe" });
                    self.say(&json!({ "jsonrpc": "2.0", "id": heard["id"], "error": error }))
                        .await?;
                } else if heard["id"] == id {
                    return answer(method, heard);
                }
            }
            self.listen(method).await?;
        }
    }

    async fn say(&mut self, message: &Value) -> Result<(), Refused> {
        let line = format!("{message}\n");
        let said = self.stdin.write_all(line.as_bytes()).await;
        said.map_err(|error| Refused::Other(format!("it does not listen: {error}")))
    }

    async fn listen(&mut self, method: &str) -> Result<(), Refused> {
        let mut chunk = vec![0; 1 << 14];
        let count = self.stdout.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            return Err(Refused::Other(format!("it ended without an answer to `{method}`")));
        }
        chunk.truncate(count);
        let heard = &mut self.heard;
        self.splitter.push(chunk.into(), &mut |line| {
            let value = line.ok().and_then(|it| serde_json::from_slice(&it).ok());
            heard.extend(value);
        });
        Ok(())
    }
}

fn answer(method: &str, mut heard: Value) -> Result<Value, Refused> {
    let error = &heard["error"];
    if error.is_null() {
        return Ok(heard["result"].take());
    }
    let said = error["message"].as_str().unwrap_or("an error without a message");
    if error["code"] == LOGIN_FIRST {
        return Err(Refused::LoginFirst);
    }
    // What agents put into `data` has no form, but it is often the cause.
    let data = &error["data"];
    let told = ["details", "message", "error"].iter().find_map(|it| data[*it].as_str());
    let told = told.or(data.as_str()).map(|it| format!(": {it}")).unwrap_or_default();
    Err(Refused::Other(format!("`{method}` was answered with: {said}{told}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(offer: &Offer) -> Vec<&str> {
        offer.models.iter().map(|it| it.id.as_str()).collect()
    }

    #[test]
    fn the_option_about_models_comes_before_the_older_list() {
        let older = json!({ "currentModelId": "c", "availableModels": [{ "modelId": "c" }] });
        let options = json!([
            { "id": "mode", "options": [{ "value": "ask" }] },
            { "id": "model", "category": "model", "currentValue": "b", "options": [
                { "value": "a", "name": "Alpha" },
                { "group": "more", "options": [{ "value": "b" }, { "value": " a " }] },
            ] },
        ]);
        let offer = read(&json!({ "configOptions": options, "models": older }));
        assert_eq!((ids(&offer), offer.current.as_deref()), (vec!["a", "b"], Some("b")));
        assert_eq!(offer.models[0].name, "Alpha");
        let one = json!([{ "id": "model", "options": [{ "value": "a" }] }]);
        let offer = read(&json!({ "configOptions": one, "models": older }));
        assert_eq!((ids(&offer), offer.current.as_deref()), (vec!["c"], Some("c")));
        assert_eq!(ids(&read(&json!({ "configOptions": one }))), ["a"]);
        assert_eq!(read(&json!({ "configOptions": 7, "models": [] })), Offer::default());
    }
}
