//! What a client may ask of the adapter.

use super::{Adapter, Memory, Note, Output, Session};
use crate::{Prompt, Setting};
use jackfield_catalogue::{Choice, PromptBy, check_model, check_reasoning};
use serde_json::{Value, json};

type Answer = Result<Option<Value>, Value>;

fn error(code: i32, message: impl Into<String>) -> Value {
    json!({"code": code, "message": message.into()})
}

fn invalid(message: impl Into<String>) -> Value {
    error(-32602, message)
}

impl Adapter {
    pub(super) fn on_request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        memory: &mut dyn Memory,
    ) -> Answer {
        match method {
            "initialize" => Ok(Some(self.introduce())),
            "authenticate" => Ok(Some(json!({}))),
            "session/new" => self.on_new(params, memory),
            "session/resume" | "session/load" => self.on_resume(params, memory),
            "session/close" => Ok(Some(self.on_close(params))),
            "session/set_mode" => self.on_set_mode(params, memory),
            "session/set_config_option" => self.on_set_option(params, memory),
            "session/prompt" => self.on_prompt(id, params, memory),
            _ => Err(error(-32601, format!("`{method}` is not served by the adapter"))),
        }
    }

    fn introduce(&self) -> Value {
        let can = (self.make)().can();
        json!({
            "protocolVersion": 1,
            "agentInfo": {
                "name": *self.settings.spec.id,
                "title": *self.settings.spec.name,
                "version": env!("CARGO_PKG_VERSION"),
            },
            "agentCapabilities": {
                "loadSession": false,
                "promptCapabilities": {"image": can.images, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": can.mcp, "sse": can.mcp},
                "sessionCapabilities": {"resume": {}, "close": {}},
            },
            "authMethods": [],
        })
    }

    fn on_new(&mut self, params: &Value, memory: &mut dyn Memory) -> Answer {
        let cwd =
            params["cwd"].as_str().ok_or_else(|| invalid("`cwd` must be an absolute path"))?;
        let mode = self.settings.variant.modes.first().map(|mode| mode.id.clone());
        let note = Note { cwd: cwd.to_owned(), mode, ..Note::default() };
        let id = memory.new_id();
        memory.remember(&id, &note);
        let mut result = self.state_of(&note);
        result["sessionId"] = json!(id);
        self.open_session(id, note, params)?;
        Ok(Some(result))
    }

    fn on_resume(&mut self, params: &Value, memory: &mut dyn Memory) -> Answer {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let Some(mut note) = memory.recall(id) else {
            return Err(json!({
                "code": -32002,
                "message": format!("no session `{id}` is known to the adapter; open a new one"),
                "data": {"sessionId": id},
            }));
        };
        if let Some(cwd) = params["cwd"].as_str() {
            cwd.clone_into(&mut note.cwd);
        }
        let result = self.state_of(&note);
        self.open_session(id.to_owned(), note, params)?;
        Ok(Some(result))
    }

    fn open_session(&mut self, id: String, note: Note, params: &Value) -> Result<(), Value> {
        let mcp = params["mcpServers"].as_array().cloned().unwrap_or_default();
        let dialect = (self.make)();
        if !mcp.is_empty() && !dialect.can().mcp {
            let name = &self.settings.spec.name;
            return Err(invalid(format!(
                "{name} takes no MCP servers through its adapter; configure them in {name} itself"
            )));
        }
        self.sessions.insert(id, Session::new(note, mcp, dialect));
        Ok(())
    }

    fn on_close(&mut self, params: &Value) -> Value {
        let id = params["sessionId"].as_str().unwrap_or_default();
        // What is not there is closed.
        if let Some(session) = self.sessions.remove(id) {
            let programs = session.program.into_iter().chain(session.leaving);
            self.outputs.extend(programs.map(|program| Output::Stop { program }));
            if let Some(request) = session.request {
                self.answer(&request, &json!({"stopReason": "cancelled"}));
            }
        }
        json!({})
    }

    fn on_set_mode(&mut self, params: &Value, memory: &mut dyn Memory) -> Answer {
        let mode = params["modeId"].as_str().unwrap_or_default();
        if !self.settings.variant.modes.iter().any(|it| *it.id == *mode) {
            return Err(invalid(format!("no mode `{mode}`")));
        }
        self.set(params, Setting::Mode(mode), memory)?;
        Ok(Some(json!({})))
    }

    fn on_set_option(&mut self, params: &Value, memory: &mut dyn Memory) -> Answer {
        let value = params["value"].as_str().unwrap_or_default();
        let refused = |refusal: jackfield_catalogue::Refusal| invalid(refusal.to_string());
        let setting = match params["configId"].as_str() {
            Some("model") => {
                if value != "default" {
                    check_model(&self.settings.spec, &self.settings.models, value)
                        .map_err(refused)?;
                }
                Setting::Model(value)
            }
            Some("reasoning") => {
                if value != "default" {
                    check_reasoning(&self.settings.spec, value).map_err(refused)?;
                }
                Setting::Reasoning(value)
            }
            other => {
                return Err(invalid(format!("no config option `{}`", other.unwrap_or_default())));
            }
        };
        let note = self.set(params, setting, memory)?;
        Ok(Some(json!({"configOptions": self.options_of(&note)})))
    }

    fn set(
        &mut self,
        params: &Value,
        setting: Setting<'_>,
        memory: &mut dyn Memory,
    ) -> Result<Note, Value> {
        let id = session_of(params)?;
        let session = self.sessions.get_mut(id).ok_or_else(|| unknown(id))?;
        session.set(setting);
        let note = session.note.clone();
        memory.remember(id, &note);
        self.settle(id, memory);
        Ok(note)
    }

    fn on_prompt(&mut self, id: &Value, params: &Value, memory: &mut dyn Memory) -> Answer {
        let session_id = session_of(params)?;
        let session = self.sessions.get_mut(session_id).ok_or_else(|| unknown(session_id))?;
        if session.request.is_some() {
            return Err(error(-32600, "a turn is already running in this session"));
        }
        let prompt =
            Prompt::parse(&params["prompt"], session.dialect.can().images).map_err(invalid)?;
        session.turn.begin();
        session.request = Some(id.clone());
        session.waiting = Some(prompt);
        if session.stale {
            // Only a new program can have the new settings.
            session.leaving = session.program.take();
            self.outputs.extend(session.leaving.map(|program| Output::Finish { program }));
        }
        if session.leaving.is_none() {
            self.start_waiting(session_id, memory);
        }
        Ok(None)
    }

    /// The prompt that waits gets its program.
    pub(super) fn start_waiting(&mut self, id: &str, memory: &mut dyn Memory) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(prompt) = session.waiting.take() else { return };
        if session.program.is_none()
            && let Err(refusal) = self.start(id, &prompt)
        {
            let request = self.sessions.get_mut(id).and_then(|session| session.request.take());
            if let Some(request) = request {
                self.refuse(&request, &refusal);
            }
            return;
        }
        let by = self.settings.variant.prompt;
        let Some(session) = self.sessions.get_mut(id) else { return };
        self.outputs.extend(session.program.map(|program| Output::Began { program }));
        if session.dialect.writes_prompts() {
            session.dialect.prompt(&prompt, &mut session.turn);
        } else {
            if by == PromptBy::Stdin {
                session.turn.write_text(&prompt.text());
            }
            session.dialect.prompt(&prompt, &mut session.turn);
            session.turn.close_stdin();
        }
        self.settle(id, memory);
    }

    fn start(&mut self, id: &str, prompt: &Prompt) -> Result<(), Value> {
        let Some(session) = self.sessions.get_mut(id) else { return Ok(()) };
        let (variant, program) = (&self.settings.variant, self.programs_started + 1);
        let text = prompt.text();
        let file = (variant.prompt == PromptBy::File)
            .then(|| format!("{}/prompt-{program}.txt", self.settings.scratch));
        let start = session.start();
        let choice = Choice {
            session: start.native,
            model: start.model,
            reasoning: start.reasoning,
            mode: start.mode,
            prompt: &text,
            file: file.as_deref(),
            cwd: start.cwd,
            flags: &self.settings.flags,
        };
        let mut argv = variant.argv(&choice).map_err(|refusal| invalid(refusal.to_string()))?;
        let mut files: Vec<(String, String)> = file.map(|path| (path, text)).into_iter().collect();
        if let Some(handover) = session.dialect.handover(&start) {
            let path = format!("{}/handover-{program}", self.settings.scratch);
            argv.extend([handover.option.to_owned(), path.clone()]);
            files.push((path, handover.text));
        }
        let cwd = start.cwd.to_owned();
        self.programs_started = program;
        self.programs.insert(program, id.to_owned());
        self.outputs.push_back(Output::Start { program, argv, cwd, files });
        session.open(program);
        Ok(())
    }

    pub(super) fn on_cancel(&mut self, params: &Value, memory: &mut dyn Memory) {
        let Ok(id) = session_of(params) else { return };
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.on_cancel() {
            let program = session.program;
            self.outputs.extend(program.map(|program| Output::Stop { program }));
        }
        self.settle(id, memory);
    }

    /// Modes and options, as `session/new` and `session/resume` tell them.
    fn state_of(&self, note: &Note) -> Value {
        let mut state = json!({"configOptions": self.options_of(note)});
        let modes = &self.settings.variant.modes;
        if let Some(first) = modes.first() {
            let current = note.mode.as_deref().unwrap_or(&first.id);
            let available: Vec<Value> =
                modes.iter().map(|mode| json!({"id": *mode.id, "name": *mode.name})).collect();
            state["modes"] = json!({"currentModeId": current, "availableModes": available});
        }
        state
    }

    fn options_of(&self, note: &Note) -> Value {
        let mut options = Vec::new();
        if !self.settings.variant.model.is_empty() || !self.settings.models.is_empty() {
            let models = self.settings.models.iter().map(|it| (it.id.as_str(), it.name.as_str()));
            options.push(select("model", "Model", "model", note.model.as_deref(), models));
        }
        let levels = self.settings.spec.reasoning.iter().map(|it| (it.as_str(), it.as_str()));
        if levels.len() != 0 {
            let current = note.reasoning.as_deref();
            options.push(select("reasoning", "Reasoning", "thought_level", current, levels));
        }
        Value::Array(options)
    }
}

/// A choice that may also be left to the program.
fn select<'a>(
    id: &str,
    name: &str,
    category: &str,
    current: Option<&str>,
    values: impl Iterator<Item = (&'a str, &'a str)>,
) -> Value {
    let default = [("default", "Default")];
    let mut options: Vec<Value> = Vec::new();
    let mut known = false;
    for (value, name) in default.into_iter().chain(values) {
        known |= Some(value) == current;
        options.push(json!({"value": value, "name": name}));
    }
    if let Some(custom) = current.filter(|_| !known) {
        options.push(json!({"value": custom, "name": custom}));
    }
    let current = current.unwrap_or("default");
    json!({"id": id, "name": name, "category": category, "type": "select",
           "currentValue": current, "options": options})
}

fn session_of(params: &Value) -> Result<&str, Value> {
    params["sessionId"].as_str().ok_or_else(|| invalid("`sessionId` is missing"))
}

fn unknown(id: &str) -> Value {
    let message = format!("no session `{id}` is open; resume it first");
    json!({"code": -32002, "message": message, "data": {"sessionId": id}})
}
