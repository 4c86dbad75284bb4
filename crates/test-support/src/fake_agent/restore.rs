//! Sessions that exist already: load, resume, list, close, delete, and their settings.

use serde_json::{Value, json};

use super::{
    agent::Agent,
    flags::{Load, Resume, Switch},
    serve::{Reply, Request},
    session::Entry,
    words::{Outcome, chunk},
};

impl Agent {
    pub(crate) fn load(&mut self, request: &Request) -> Reply {
        let id = request.session();
        let how = self.flags.load;
        match how {
            Load::Error32603 => return Reply::fault(-32603, "Internal error"),
            Load::Error32002 => return Reply::no_session(id),
            Load::Error32602 => return Reply::fault(-32602, "the session is of another directory"),
            Load::Pretend => return Reply::Result(json!({})),
            Load::LockedOnce if !std::mem::replace(&mut self.was_locked, true) => {
                return Reply::fault(-32603, "the session is locked by another process");
            }
            _ => {}
        }
        if !self.restore(request, how == Load::SuccessForMissing) {
            return Reply::no_session(id);
        }
        let mut result = json!({});
        self.describe(id, &mut result);
        match how {
            Load::Null => Reply::Result(Value::Null),
            Load::Empty => Reply::Result(json!({})),
            Load::ReplayThenNull => {
                self.replay(id, "");
                Reply::Result(Value::Null)
            }
            Load::ReplayAfterAnswer => {
                self.out.frame(&json!({"jsonrpc": "2.0", "id": request.id, "result": result}));
                self.replay(id, "");
                Reply::Later
            }
            Load::ReplayNewToolIds => {
                self.replay(id, "replayed-");
                Reply::Result(result)
            }
            _ => {
                self.replay(id, "");
                Reply::Result(result)
            }
        }
    }

    pub(crate) fn resume(&mut self, request: &Request) -> Reply {
        let id = request.session();
        let how = self.flags.resume;
        match how {
            Resume::Error => return Reply::fault(-32603, "Internal error"),
            Resume::Pretend => return Reply::Result(json!({})),
            _ => {}
        }
        if !self.restore(request, how == Resume::SuccessForMissing) {
            return Reply::no_session(id);
        }
        let mut result = json!({});
        self.describe(id, &mut result);
        Reply::Result(if how == Resume::Null { Value::Null } else { result })
    }

    /// Opens a session again; one that is not there is made up if it may be.
    fn restore(&mut self, request: &Request, even_missing: bool) -> bool {
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

    /// Sends the history again, as it was; `tool_prefix` goes before every tool id.
    fn replay(&mut self, id: &str, tool_prefix: &str) {
        let Some(session) = self.sessions.open(id) else { return };
        for entry in session.history.clone() {
            let mut update = match entry {
                Entry::User(text) => chunk("user_message_chunk", &text),
                Entry::Update(update) => update,
                Entry::Burst { count, size } => {
                    self.out.burst(id, 1, count, size);
                    continue;
                }
                Entry::Huge(size) => {
                    self.out.huge(id, size);
                    continue;
                }
            };
            if let Some(tool) = update["toolCallId"].as_str() {
                update["toolCallId"] = json!(format!("{tool_prefix}{tool}"));
            }
            let frame = self.update_frame(id, &update);
            self.out.frame(&frame);
        }
    }

    /// Adds modes and options to an answer.
    pub(crate) fn describe(&mut self, id: &str, result: &mut Value) {
        let nulls = self.flags.on(Switch::Nulls);
        let Some(session) = self.sessions.open(id) else { return };
        let or_null = |it: Value| if nulls { Value::Null } else { it };
        result["modes"] = or_null(session.modes_json());
        result["configOptions"] = or_null(session.options_json());
        if nulls {
            result["_meta"] = Value::Null;
        }
    }

    pub(crate) fn list(&mut self, request: &Request) -> Reply {
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
        Reply::Result(result)
    }

    pub(crate) fn close(&mut self, request: &Request) -> Reply {
        let id = request.session();
        let Some(session) = self.sessions.open(id) else { return Reply::no_session(id) };
        session.open = false;
        self.cancel_turns(id);
        Reply::Result(json!({}))
    }

    pub(crate) fn delete(&mut self, request: &Request) -> Reply {
        let id = request.session();
        self.cancel_turns(id);
        if self.sessions.delete(id) { Reply::Result(json!({})) } else { Reply::no_session(id) }
    }

    fn cancel_turns(&mut self, session: &str) {
        while let Some(index) = self.turns.iter().position(|it| it.session == session) {
            // A death at this moment would only hide the answer to the close itself.
            let _ = self.end_turn(index, Outcome::Stop("cancelled".to_owned()));
        }
    }

    pub(crate) fn set_mode(&mut self, request: &Request) -> Reply {
        let (id, mode) = (request.session(), request.text("modeId"));
        let Some(session) = self.sessions.open(id) else { return Reply::no_session(id) };
        if session.set_mode(mode) {
            Reply::Result(json!({}))
        } else {
            Reply::fault(-32602, format!("no such mode: {mode}"))
        }
    }

    pub(crate) fn set_config_option(&mut self, request: &Request) -> Reply {
        self.set_option(request, request.text("configId"), request.text("value"))
    }

    /// No longer in the schema, but half of the real agents serve it.
    pub(crate) fn set_model(&mut self, request: &Request) -> Reply {
        self.set_option(request, "model", request.text("modelId"))
    }

    fn set_option(&mut self, request: &Request, option: &str, value: &str) -> Reply {
        let id = request.session();
        let Some(session) = self.sessions.open(id) else { return Reply::no_session(id) };
        if session.set_option(option, value) {
            Reply::Result(json!({"configOptions": session.options_json()}))
        } else {
            Reply::fault(-32602, format!("no such option: {option} = {value}"))
        }
    }
}
