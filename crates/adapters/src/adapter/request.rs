//! Handles the requests of the client.

use super::{Adapter, AdapterOutput, AdapterSession, SessionRecord, SessionStore};
use crate::{ProgramSetting, PromptInput};
use jackfield_catalog::{LaunchError, LaunchOptions, PromptDelivery, check_model, check_reasoning};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// The result or the error of a request; no result if the response follows later.
type RequestResult = Result<Option<Value>, Value>;

/// The version of a program that was not probed.
const UNKNOWN_VERSION: &str = "unknown";

fn json_rpc_error(code: i32, message: impl Into<String>) -> Value {
    json!({"code": code, "message": message.into()})
}

fn invalid_params(message: impl Into<String>) -> Value {
    json_rpc_error(-32602, message)
}

impl Adapter {
    pub(super) fn on_request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        store: &mut dyn SessionStore,
    ) -> RequestResult {
        match Method::from_name(method) {
            Some(Method::Initialize) => Ok(Some(self.initialize_result())),
            Some(Method::Authenticate) => Ok(Some(json!({}))),
            Some(Method::SessionNew) => self.on_new(params, store),
            Some(Method::SessionResume | Method::SessionLoad) => self.on_resume(params, store),
            Some(Method::SessionClose) => Ok(Some(self.on_close(params))),
            Some(Method::SessionSetMode) => self.on_set_mode(params, store),
            Some(Method::SessionSetConfigOption) => self.on_set_option(params, store),
            Some(Method::SessionPrompt) => self.on_prompt(id, params, store),
            _ => Err(json_rpc_error(-32601, format!("the adapter does not support `{method}`"))),
        }
    }

    fn initialize_result(&self) -> Value {
        let capabilities = (self.new_dialect)().capabilities();
        let mut session = json!({"resume": {}, "close": {}});
        if !self.settings.variant.add_dir.is_empty() {
            session["additionalDirectories"] = json!({});
        }
        json!({
            "protocolVersion": 1,
            "agentInfo": {
                "name": *self.settings.spec.id,
                "title": *self.settings.spec.name,
                "version": self.settings.program_version.as_deref().unwrap_or(UNKNOWN_VERSION),
            },
            "agentCapabilities": {
                "loadSession": false,
                "promptCapabilities": {"image": capabilities.images, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": capabilities.mcp, "sse": capabilities.mcp},
                "sessionCapabilities": session,
            },
            "authMethods": [],
        })
    }

    fn on_new(&mut self, params: &Value, store: &mut dyn SessionStore) -> RequestResult {
        let cwd = params["cwd"]
            .as_str()
            .ok_or_else(|| invalid_params("`cwd` must be an absolute path"))?;
        let variant = &self.settings.variant;
        let approves_all = params.pointer("/_meta/jackfield/approve") == Some(&json!("all"));
        let approve_all = variant.approve_all.clone().filter(|_| approves_all);
        let mode = approve_all.or_else(|| variant.modes.first().map(|mode| mode.id.clone()));
        let additional_directories = self.read_directories(params)?.unwrap_or_default();
        let cwd = cwd.to_owned();
        let record =
            SessionRecord { cwd, mode, additional_directories, ..SessionRecord::default() };
        let id = store.create_session_id();
        store.save_record(&id, &record);
        let mut result = self.session_state(&record);
        result["sessionId"] = json!(id);
        self.open_session(id, record, params)?;
        Ok(Some(result))
    }

    fn on_resume(&mut self, params: &Value, store: &mut dyn SessionStore) -> RequestResult {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let Some(mut record) = store.load_record(id) else {
            return Err(json!({
                "code": -32002,
                "message": format!("no session `{id}` is stored by the adapter; start a new one"),
                "data": {"sessionId": id},
            }));
        };
        if let Some(cwd) = params["cwd"].as_str() {
            cwd.clone_into(&mut record.cwd);
        }
        if let Some(dirs) = self.read_directories(params)? {
            record.additional_directories = dirs;
        }
        let result = self.session_state(&record);
        self.open_session(id.to_owned(), record, params)?;
        Ok(Some(result))
    }

    /// `additionalDirectories`, if the request has it.
    fn read_directories(&self, params: &Value) -> Result<Option<Vec<String>>, Value> {
        let Some(dirs) = params.get("additionalDirectories").filter(|it| !it.is_null()) else {
            return Ok(None);
        };
        let dirs: Vec<String> = serde_json::from_value(dirs.clone())
            .ok()
            .filter(|it: &Vec<String>| it.iter().all(|dir| dir.starts_with('/')))
            .ok_or_else(|| invalid_params("`additionalDirectories` must list absolute paths"))?;
        if !dirs.is_empty() && self.settings.variant.add_dir.is_empty() {
            let name = &self.settings.spec.name;
            return Err(invalid_params(format!(
                "{name} has no option for extra directories; leave out `additionalDirectories`, or \
                 choose a `cwd` that contains them all"
            )));
        }
        Ok(Some(dirs))
    }

    fn open_session(
        &mut self,
        id: String,
        record: SessionRecord,
        params: &Value,
    ) -> Result<(), Value> {
        let mcp_servers = params["mcpServers"].as_array().cloned().unwrap_or_default();
        let dialect = (self.new_dialect)();
        if !mcp_servers.is_empty() && !dialect.capabilities().mcp {
            let name = &self.settings.spec.name;
            return Err(invalid_params(format!(
                "the adapter of {name} does not support MCP servers; configure them in {name} itself"
            )));
        }
        let is_sandboxed = self.settings.is_sandboxed;
        let session = AdapterSession::new(record, mcp_servers, dialect, is_sandboxed);
        self.sessions.insert(id, session);
        Ok(())
    }

    fn on_close(&mut self, params: &Value) -> Value {
        let id = params["sessionId"].as_str().unwrap_or_default();
        // Closing an unknown session succeeds: it is not open.
        if let Some(session) = self.sessions.remove(id) {
            let programs = session.program.into_iter().chain(session.stopping_program);
            self.outputs.extend(programs.map(|program| AdapterOutput::StopProgram { program }));
            if let Some(request) = session.prompt_request {
                self.send_result(&request, &json!({"stopReason": "cancelled"}));
            }
        }
        json!({})
    }

    fn on_set_mode(&mut self, params: &Value, store: &mut dyn SessionStore) -> RequestResult {
        let mode = params["modeId"].as_str().unwrap_or_default();
        if !self.settings.variant.modes.iter().any(|it| *it.id == *mode) {
            return Err(invalid_params(format!("unknown mode `{mode}`")));
        }
        self.apply_setting(params, ProgramSetting::Mode(mode), store)?;
        Ok(Some(json!({})))
    }

    fn on_set_option(&mut self, params: &Value, store: &mut dyn SessionStore) -> RequestResult {
        let value = params["value"].as_str().unwrap_or_default();
        let refused = |error: LaunchError| invalid_params(error.to_string());
        let setting = match params["configId"].as_str() {
            Some("model") => {
                if value != "default" {
                    check_model(&self.settings.spec, &self.settings.models, value)
                        .map_err(refused)?;
                }
                ProgramSetting::Model(value)
            }
            Some("reasoning") => {
                if value != "default" {
                    check_reasoning(&self.settings.spec, value).map_err(refused)?;
                }
                ProgramSetting::Reasoning(value)
            }
            other => {
                return Err(invalid_params(format!(
                    "unknown config option `{}`",
                    other.unwrap_or_default()
                )));
            }
        };
        let record = self.apply_setting(params, setting, store)?;
        Ok(Some(json!({"configOptions": self.config_options(&record)})))
    }

    fn apply_setting(
        &mut self,
        params: &Value,
        setting: ProgramSetting<'_>,
        store: &mut dyn SessionStore,
    ) -> Result<SessionRecord, Value> {
        let id = session_id_of(params)?;
        let session = self.sessions.get_mut(id).ok_or_else(|| unknown_session(id))?;
        session.apply_setting(setting);
        let record = session.record.clone();
        store.save_record(id, &record);
        self.apply_effects(id, store);
        Ok(record)
    }

    fn on_prompt(
        &mut self,
        id: &Value,
        params: &Value,
        store: &mut dyn SessionStore,
    ) -> RequestResult {
        let session_id = session_id_of(params)?;
        let session =
            self.sessions.get_mut(session_id).ok_or_else(|| unknown_session(session_id))?;
        if session.prompt_request.is_some() {
            return Err(json_rpc_error(-32600, "a turn is already running in this session"));
        }
        let prompt = PromptInput::parse(&params["prompt"], session.dialect.capabilities())
            .map_err(invalid_params)?;
        session.turn.begin();
        session.prompt_request = Some(id.clone());
        session.pending_prompt = Some(prompt);
        if session.needs_restart {
            // Only a new process can apply the new settings.
            session.stopping_program = session.program.take();
            self.outputs.extend(
                session.stopping_program.map(|program| AdapterOutput::FinishProgram { program }),
            );
        }
        if session.stopping_program.is_none() {
            self.start_pending_prompt(session_id, store);
        }
        Ok(None)
    }

    /// Starts a program for the pending prompt if none runs, and passes the prompt to it.
    pub(super) fn start_pending_prompt(&mut self, id: &str, store: &mut dyn SessionStore) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(prompt) = session.pending_prompt.take() else { return };
        if session.program.is_none()
            && let Err(error) = self.start_program(id, &prompt)
        {
            let request =
                self.sessions.get_mut(id).and_then(|session| session.prompt_request.take());
            if let Some(request) = request {
                self.send_error(&request, &error);
            }
            return;
        }
        let delivery = self.settings.variant.prompt;
        let Some(session) = self.sessions.get_mut(id) else { return };
        self.outputs
            .extend(session.program.map(|program| AdapterOutput::MarkTurnStart { program }));
        if session.dialect.can_write_prompt() {
            session.dialect.on_prompt(&prompt, &mut session.turn);
        } else {
            if delivery == PromptDelivery::Stdin {
                session.turn.write_line(&prompt.to_text());
            }
            session.dialect.on_prompt(&prompt, &mut session.turn);
            session.turn.close_stdin();
        }
        self.apply_effects(id, store);
    }

    fn start_program(&mut self, id: &str, prompt: &PromptInput) -> Result<(), Value> {
        let Some(session) = self.sessions.get_mut(id) else { return Ok(()) };
        let (variant, program) = (&self.settings.variant, self.programs_started + 1);
        let text = prompt.to_text();
        let file = (variant.prompt == PromptDelivery::File)
            .then(|| format!("{}/prompt-{program}.txt", self.settings.scratch));
        let start = session.start_context();
        let options = LaunchOptions {
            session: start.agent_session_id,
            model: start.model,
            reasoning: start.reasoning,
            mode: start.mode,
            prompt: &text,
            file: file.as_deref(),
            cwd: start.cwd,
            add_dirs: &session.record.additional_directories,
            flags: &self.settings.flags,
        };
        let mut argv =
            variant.compose_argv(&options).map_err(|error| invalid_params(error.to_string()))?;
        let mut files: Vec<(String, String)> = file.map(|path| (path, text)).into_iter().collect();
        if let Some(file) = session.dialect.private_file(&start) {
            let path = format!("{}/handover-{program}", self.settings.scratch);
            argv.extend([file.option.to_owned(), path.clone()]);
            files.push((path, file.text));
        }
        let cwd = start.cwd.to_owned();
        self.programs_started = program;
        self.programs.insert(program, id.to_owned());
        self.outputs.push_back(AdapterOutput::StartProgram { program, argv, cwd, files });
        session.on_start(program);
        Ok(())
    }

    pub(super) fn on_cancel(&mut self, params: &Value, store: &mut dyn SessionStore) {
        let Ok(id) = session_id_of(params) else { return };
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.on_cancel() {
            let program = session.program;
            self.outputs.extend(program.map(|program| AdapterOutput::StopProgram { program }));
        }
        self.apply_effects(id, store);
    }

    /// Modes and config options for the results of `session/new` and `session/resume`.
    fn session_state(&self, record: &SessionRecord) -> Value {
        let mut state = json!({"configOptions": self.config_options(record)});
        let modes = &self.settings.variant.modes;
        if let Some(first) = modes.first() {
            let current = record.mode.as_deref().unwrap_or(&first.id);
            let available: Vec<Value> =
                modes.iter().map(|mode| json!({"id": *mode.id, "name": *mode.name})).collect();
            state["modes"] = json!({"currentModeId": current, "availableModes": available});
        }
        state
    }

    fn config_options(&self, record: &SessionRecord) -> Value {
        let mut options = Vec::new();
        if !self.settings.variant.model.is_empty() || !self.settings.models.is_empty() {
            let models = self.settings.models.iter().map(|it| (it.id.as_str(), it.name.as_str()));
            options.push(select_option("model", "Model", "model", record.model.as_deref(), models));
        }
        let levels = self.settings.spec.reasoning.iter().map(|it| (it.as_str(), it.as_str()));
        if levels.len() != 0 {
            let current = record.reasoning.as_deref();
            options.push(select_option("reasoning", "Reasoning", "thought_level", current, levels));
        }
        Value::Array(options)
    }
}

/// A config option with the additional value `default`, which leaves the choice to the program.
fn select_option<'a>(
    id: &str,
    name: &str,
    category: &str,
    current: Option<&str>,
    values: impl Iterator<Item = (&'a str, &'a str)>,
) -> Value {
    let default = [("default", "Default")];
    let mut options: Vec<Value> = Vec::new();
    let mut is_listed = false;
    for (value, name) in default.into_iter().chain(values) {
        is_listed |= Some(value) == current;
        options.push(json!({"value": value, "name": name}));
    }
    if let Some(custom) = current.filter(|_| !is_listed) {
        options.push(json!({"value": custom, "name": custom}));
    }
    let current = current.unwrap_or("default");
    json!({"id": id, "name": name, "category": category, "type": "select",
           "currentValue": current, "options": options})
}

fn session_id_of(params: &Value) -> Result<&str, Value> {
    params["sessionId"].as_str().ok_or_else(|| invalid_params("`sessionId` is missing"))
}

fn unknown_session(id: &str) -> Value {
    let message = format!("no session `{id}` is open; resume it first");
    json!({"code": -32002, "message": message, "data": {"sessionId": id}})
}
