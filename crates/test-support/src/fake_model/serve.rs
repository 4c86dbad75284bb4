//! The server's state, and how it handles a request.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    io::BufReader,
    net::{Shutdown, TcpStream},
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::{
    dialect::{DIALECTS, Dialect, DialectRequest, has_test_key},
    http::{HttpRequest, send_head, send_json},
    model_request::ModelRequest,
    models::models,
    provider_error::provider_error_of,
    reply::{StreamedReply, send_whole},
    script::{ReplyScript, script},
};

#[derive(Debug)]
pub(crate) struct ModelServer {
    /// The folder of files whose path the prompt does not name.
    files: PathBuf,
    stopping: AtomicBool,
    counter: AtomicU64,
    started_at: u128,
    state: Mutex<ServerState>,
}

#[derive(Debug, Default)]
struct ServerState {
    log: Vec<Value>,
    /// Lines whose only failure has happened.
    failed_once: BTreeSet<String>,
    /// A status, and the number of requests that still fail with it.
    forced: (u16, u32),
    /// Connections to shut down when the server stops.
    open: BTreeMap<u64, TcpStream>,
}

impl ModelServer {
    pub(crate) fn new(files: PathBuf) -> ModelServer {
        let started_at =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        ModelServer {
            files,
            stopping: AtomicBool::new(false),
            counter: AtomicU64::new(0),
            started_at,
            state: Mutex::default(),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        for stream in self.state().open.values() {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn log(&self, since: usize) -> Vec<Value> {
        self.state().log.iter().skip(since).cloned().collect()
    }

    pub(crate) fn fail_next(&self, status: u16, count: u32) {
        self.state().forced = (status, count);
    }

    /// Serves one connection to its end.
    pub(crate) fn serve_connection(&self, stream: TcpStream) {
        let key = self.next();
        if let Ok(twin) = stream.try_clone() {
            self.state().open.insert(key, twin);
        }
        // Events are small and must not be delayed.
        let _ = stream.set_nodelay(true);
        let mut stream = BufReader::new(stream);
        while !self.is_stopping() {
            let Ok(Some(request)) = HttpRequest::read(&mut stream) else { break };
            let served = self.serve(&request, stream.get_mut());
            if served.is_err() || request.wants_close() {
                break;
            }
        }
        let _ = stream.get_ref().shutdown(Shutdown::Both);
        self.state().open.remove(&key);
    }

    fn serve(&self, request: &HttpRequest, stream: &mut TcpStream) -> io::Result<()> {
        let path = request.path.trim_end_matches('/');
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if path == "/_log" {
            let since = request.query.strip_prefix("since=").and_then(|it| it.parse().ok());
            return send_json(stream, 200, "", &json!(self.log(since.unwrap_or(0))));
        }
        if path == "/_ctl" {
            let number = |key: &str| body[key].as_u64().unwrap_or(0);
            let status = u16::try_from(number("error")).unwrap_or(500);
            self.fail_next(status, u32::try_from(number("count")).unwrap_or(u32::MAX));
            return send_json(stream, 200, "", &json!({}));
        }
        let dialect = DIALECTS.iter().find(|it| request.method == "POST" && (it.serves)(path));
        if let Some(dialect) = dialect {
            let id = format!("{:x}-{}", self.started_at, self.next());
            let dialect_request =
                DialectRequest { path, query: &request.query, body: &body, id: &id };
            return self.answer(dialect, &dialect_request, request, stream);
        }
        self.note(json!({"method": request.method, "path": request.path}));
        let (tokens, counts) = (request.body.len() / 4 + 1, |it: &Dialect| it.count);
        let answer = match request.method.as_str() {
            // Some clients check first whether the server is up.
            "HEAD" => return send_head(stream),
            "GET" => models(request),
            "POST" => DIALECTS.iter().map(counts).find_map(|count| count(path, tokens)),
            _ => None,
        };
        match answer {
            Some(answer) => send_json(stream, 200, "", &answer),
            None => send_json(stream, 404, "", &json!({"error": {"message": "not found (fake)"}})),
        }
    }

    /// Answers a request to a model in its dialect.
    fn answer(
        &self,
        dialect: &Dialect,
        dialect_request: &DialectRequest<'_>,
        request: &HttpRequest,
        stream: &mut TcpStream,
    ) -> io::Result<()> {
        let model_request = (dialect.read)(dialect_request.body);
        let file = self.files.join(format!("hello-{}.txt", self.next()));
        let script = script(&model_request, &file.to_string_lossy());
        let streams = (dialect.streams)(dialect_request);
        let tools: Vec<&str> = model_request.tools.iter().map(|it| it.name.as_str()).collect();
        let calls: Value = script.calls.iter().map(|it| json!([it.name, it.arguments])).collect();
        let entry = self.note(json!({
            "method": request.method, "path": request.path, "dialect": dialect.name,
            "model": dialect_request.model(), "stream": streams, "line": model_request.last_line(),
            "userTurns": model_request.user_turns, "afterTool": model_request.tool_answer.is_some(),
            "tools": tools, "calls": calls, "testKey": has_test_key(request), "id": dialect_request.id,
        }));
        if let Some(status) = self.failure(dialect_request.path, &model_request, &script) {
            self.amend(entry, "error", &json!(status));
            let waits = dialect.retry_after.contains(&status);
            let header = if waits { "retry-after: 1" } else { "" };
            let body = (dialect.error)(dialect_request, provider_error_of(status));
            return send_json(stream, status, header, &body);
        }
        let sent = if streams {
            StreamedReply::start(stream, &self.stopping).and_then(|mut reply| {
                (dialect.stream)(dialect_request, &script, &mut reply)?;
                reply.end()
            })
        } else {
            send_whole(stream, &script, &(dialect.whole)(dialect_request, &script), &self.stopping)
        };
        self.amend(entry, "end", &json!(if sent.is_ok() { "done" } else { "gone" }));
        sent
    }

    /// The status to fail with: by `fail_next`, by prefix, or by a word of the user.
    fn failure(
        &self,
        path: &str,
        model_request: &ModelRequest,
        script: &ReplyScript,
    ) -> Option<u16> {
        let mut state = self.state();
        let (status, left) = state.forced;
        if 0 < left {
            state.forced.1 -= 1;
            return Some(status);
        }
        let prefix = path.split('/').nth(1).and_then(|it| it.strip_prefix('e'));
        if let Some(status) = prefix.filter(|it| it.len() == 3).and_then(|it| it.parse().ok()) {
            return Some(status);
        }
        let error = script.error?;
        let fails = !error.once || state.failed_once.insert(model_request.last_line().to_owned());
        fails.then_some(error.status)
    }

    /// Adds an entry to the log and returns its index.
    fn note(&self, mut row: Value) -> usize {
        let mut state = self.state();
        let index = state.log.len();
        row["i"] = json!(index);
        state.log.push(row);
        index
    }

    fn amend(&self, index: usize, key: &str, value: &Value) {
        if let Some(row) = self.state().log.get_mut(index) {
            row[key] = value.clone();
        }
    }

    fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// A panic in another thread leaves no partial state.
    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
