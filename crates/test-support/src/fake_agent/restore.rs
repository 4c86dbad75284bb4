//! Requests for existing sessions: load, resume, list, close, delete, and settings.

use serde_json::{Value, json};

use super::{
    agent::FakeAgent,
    flags::{FlagSwitch, LoadMode, ResumeMode},
    serve::{ClientRequest, MethodReply},
    session::HistoryEntry,
    words::{TurnOutcome, chunk},
};

impl FakeAgent {
    pub(crate) fn load(&mut self, request: &ClientRequest) -> MethodReply {
        let id = request.session();
        let mode = self.flags.load;
        match mode {
            LoadMode::Error32603 => return MethodReply::error(-32603, "Internal error"),
            LoadMode::Error32002 => return MethodReply::missing_session(id),
            LoadMode::Error32602 => {
                return MethodReply::error(-32602, "the session is of another directory");
            }
            LoadMode::Pretend => return MethodReply::Result(json!({})),
            LoadMode::LockedOnce if !std::mem::replace(&mut self.was_locked, true) => {
                return MethodReply::error(-32603, "the session is locked by another process");
            }
            _ => {}
        }
        if !self.restore(request, mode == LoadMode::SuccessForMissing) {
            return MethodReply::missing_session(id);
        }
        let mut result = json!({});
        self.describe(id, &mut result);
        match mode {
            LoadMode::Null => MethodReply::Result(Value::Null),
            LoadMode::Empty => MethodReply::Result(json!({})),
            LoadMode::ReplayThenNull => {
                self.replay(id, "");
                MethodReply::Result(Value::Null)
            }
            LoadMode::ReplayAfterAnswer => {
                self.out
                    .write_frame(&json!({"jsonrpc": "2.0", "id": request.id, "result": result}));
                self.replay(id, "");
                MethodReply::Later
            }
            LoadMode::ReplayNewToolIds => {
                self.replay(id, "replayed-");
                MethodReply::Result(result)
            }
            _ => {
                self.replay(id, "");
                MethodReply::Result(result)
            }
        }
    }

    pub(crate) fn resume(&mut self, request: &ClientRequest) -> MethodReply {
        let id = request.session();
        let mode = self.flags.resume;
        match mode {
            ResumeMode::Error => return MethodReply::error(-32603, "Internal error"),
            ResumeMode::Pretend => return MethodReply::Result(json!({})),
            _ => {}
        }
        if !self.restore(request, mode == ResumeMode::SuccessForMissing) {
            return MethodReply::missing_session(id);
        }
        let mut result = json!({});
        self.describe(id, &mut result);
        MethodReply::Result(if mode == ResumeMode::Null { Value::Null } else { result })
    }

    /// Opens a session again. A missing one is created if `even_missing`.
    fn restore(&mut self, request: &ClientRequest, even_missing: bool) -> bool {
        let (id, cwd) = (request.session(), request.text("cwd"));
        let mcp_servers = request.params["mcpServers"].clone();
        if let Some(session) = self.sessions.restore(id) {
            session.mcp_servers = mcp_servers;
            return true;
        }
        if even_missing {
            self.sessions.create(Some(id), cwd, mcp_servers);
        }
        even_missing
    }

    /// Sends the history unchanged, except that `tool_prefix` precedes every tool id.
    fn replay(&mut self, id: &str, tool_prefix: &str) {
        let Some(session) = self.sessions.open(id) else { return };
        for entry in session.history.clone() {
            let mut update = match entry {
                HistoryEntry::User(text) => chunk("user_message_chunk", &text),
                HistoryEntry::Update(update) => update,
                HistoryEntry::Burst { count, size } => {
                    self.out.write_burst(id, 1, count, size);
                    continue;
                }
                HistoryEntry::Huge(size) => {
                    self.out.write_huge(id, size);
                    continue;
                }
            };
            if let Some(tool) = update["toolCallId"].as_str() {
                update["toolCallId"] = json!(format!("{tool_prefix}{tool}"));
            }
            let frame = self.update_frame(id, &update);
            self.out.write_frame(&frame);
        }
    }

    /// Adds modes and options to a result.
    pub(crate) fn describe(&mut self, id: &str, result: &mut Value) {
        let nulls = self.flags.has_switch(FlagSwitch::Nulls);
        let Some(session) = self.sessions.open(id) else { return };
        let or_null = |it: Value| if nulls { Value::Null } else { it };
        result["modes"] = or_null(session.modes_json());
        result["configOptions"] = or_null(session.options_json());
        if nulls {
            result["_meta"] = Value::Null;
        }
    }

    pub(crate) fn list(&mut self, request: &ClientRequest) -> MethodReply {
        let (cwd, cursor) = (request.params["cwd"].as_str(), request.params["cursor"].as_str());
        let page = self.flags.page;
        let sessions = self.sessions.list().into_iter();
        let sessions = sessions.filter(|it| cwd.is_none_or(|cwd| cwd == it.cwd));
        let mut rest: Vec<_> = sessions.filter(|it| cursor < Some(it.id.as_str())).collect();
        let more = page < rest.len();
        rest.truncate(page);
        let infos: Value = rest.iter().map(|it| it.info_json()).collect();
        let mut result = json!({"sessions": infos});
        if let Some(last) = rest.last().filter(|_| more) {
            result["nextCursor"] = json!(last.id);
        }
        MethodReply::Result(result)
    }

    pub(crate) fn close(&mut self, request: &ClientRequest) -> MethodReply {
        let id = request.session();
        let Some(session) = self.sessions.open(id) else { return MethodReply::missing_session(id) };
        session.open = false;
        self.cancel_turns(id);
        MethodReply::Result(json!({}))
    }

    pub(crate) fn delete(&mut self, request: &ClientRequest) -> MethodReply {
        let id = request.session();
        self.cancel_turns(id);
        if self.sessions.delete(id) {
            MethodReply::Result(json!({}))
        } else {
            MethodReply::missing_session(id)
        }
    }

    fn cancel_turns(&mut self, session: &str) {
        while let Some(index) = self.turns.iter().position(|it| it.session == session) {
            // Ending the process here would only hide the response to the close itself.
            let _ = self.end_turn(index, TurnOutcome::Stop("cancelled".to_owned()));
        }
    }

    pub(crate) fn set_mode(&mut self, request: &ClientRequest) -> MethodReply {
        let (id, mode) = (request.session(), request.text("modeId"));
        let Some(session) = self.sessions.open(id) else { return MethodReply::missing_session(id) };
        if session.set_mode(mode) {
            MethodReply::Result(json!({}))
        } else {
            MethodReply::error(-32602, format!("no such mode: {mode}"))
        }
    }

    pub(crate) fn set_config_option(&mut self, request: &ClientRequest) -> MethodReply {
        self.set_option(request, request.text("configId"), request.text("value"))
    }

    /// No longer in the schema, but many real agents serve it.
    pub(crate) fn set_model(&mut self, request: &ClientRequest) -> MethodReply {
        self.set_option(request, "model", request.text("modelId"))
    }

    fn set_option(&mut self, request: &ClientRequest, option: &str, value: &str) -> MethodReply {
        let id = request.session();
        let Some(session) = self.sessions.open(id) else { return MethodReply::missing_session(id) };
        if session.set_option(option, value) {
            MethodReply::Result(json!({"configOptions": session.options_json()}))
        } else {
            MethodReply::error(-32602, format!("no such option: {option} = {value}"))
        }
    }
}
