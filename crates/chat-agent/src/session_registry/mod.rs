//! The open sessions of this process: creates, reopens, forks, closes and deletes them. `prompts`
//! runs their prompts.

mod prompts;

use crate::{
    AgentProfile, ChatAgentConfig,
    history::{HistoryEntry, to_session_updates},
    mcp::McpServers,
    model::{ModelClient, ModelInfo},
    mutex::lock,
    options::{AgentMode, OptionError, SessionOptions},
    session::ChatSession,
    store::{ChatSessionStore, StoreError, StoredSession, StoredSessionPage, unix_time_ms},
    tool::{IoCapabilities, LanguageServers, SessionContext, ToolFeatures},
};
use agent_client_protocol::{
    Client, Error,
    v1::{
        ConnectionTo,
        schema::{
            self, ClientCapabilities, ConfigOptionUpdate, CurrentModeUpdate, McpServer,
            SessionConfigOption, SessionId, SessionUpdate,
        },
    },
};
use jackfield_protocol::chain;
use serde_json::Value;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::OnceCell;

/// How long opening a session waits for the list of models.
const MODEL_LIST_WAIT_MAX: Duration = Duration::from_millis(1500);

/// The state that all request handlers share.
pub(crate) struct SessionRegistry {
    config: ChatAgentConfig,
    features: ToolFeatures,
    model: ModelClient,
    store: Arc<Mutex<ChatSessionStore>>,
    open: Mutex<HashMap<SessionId, Arc<ChatSession>>>,
    /// The models of the server. Requested on first use, and again if the request failed.
    models: OnceCell<Vec<ModelInfo>>,
    client_capabilities: Mutex<ClientCapabilities>,
}

/// The directories and MCP servers that a client requests for a session.
pub(crate) struct SessionSetup {
    pub(crate) cwd: PathBuf,
    pub(crate) additional_dirs: Vec<PathBuf>,
    pub(crate) mcp_servers: Vec<McpServer>,
}

impl SessionSetup {
    /// Called before anything changes, so that an invalid request has no effect.
    fn validate(&self) -> Result<(), Error> {
        if self.cwd.is_absolute() {
            return Ok(());
        }
        let message = format!("`{}` is not an absolute path", self.cwd.display());
        Err(Error::invalid_params().data(message))
    }
}

impl SessionRegistry {
    pub(crate) fn new(
        config: ChatAgentConfig,
        features: ToolFeatures,
        model: ModelClient,
        store: ChatSessionStore,
    ) -> SessionRegistry {
        SessionRegistry {
            config,
            features,
            model,
            store: Arc::new(Mutex::new(store)),
            open: Mutex::default(),
            models: OnceCell::new(),
            client_capabilities: Mutex::default(),
        }
    }

    pub(crate) fn profile(&self) -> AgentProfile {
        self.config.profile
    }

    pub(crate) fn set_client_capabilities(&self, capabilities: ClientCapabilities) {
        *lock(&self.client_capabilities) = capabilities;
    }

    /// Creates a session. `choices` are options with their values.
    pub(crate) fn create_session(
        &self,
        setup: SessionSetup,
        choices: &[(&'static str, String)],
        client: &ConnectionTo<Client>,
    ) -> Result<Arc<ChatSession>, Error> {
        setup.validate()?;
        let mut options = SessionOptions {
            mode: AgentMode::default(),
            model: self.config.settings.model.clone(),
            effort: None,
        };
        for (option, value) in choices {
            options.set_option(option, value).map_err(to_invalid_params)?;
        }
        let record = StoredSession {
            id: new_session_id()?,
            dirs: Vec::new(),
            title: None,
            options,
            granted_permissions: Vec::new(),
            updated_at_ms: unix_time_ms(),
        };
        self.open_session(record, Vec::new(), setup, client)
    }

    /// Opens a stored session. If it is open, its running turn is canceled.
    pub(crate) fn reopen_session(
        &self,
        id: &SessionId,
        setup: SessionSetup,
        client: &ConnectionTo<Client>,
    ) -> Result<Arc<ChatSession>, Error> {
        setup.validate()?;
        let store = lock(&self.store);
        let record = load_record(&store, id)?;
        let history = store.load_entries(&id.0).map_err(to_acp_error)?;
        drop(store);
        if let Some(open) = lock(&self.open).remove(id) {
            open.cancel_turn();
        }
        self.open_session(record, history, setup, client)
    }

    /// Opens an independent copy of a session.
    pub(crate) fn fork_session(
        &self,
        id: &SessionId,
        setup: SessionSetup,
        client: &ConnectionTo<Client>,
    ) -> Result<Arc<ChatSession>, Error> {
        setup.validate()?;
        let store = lock(&self.store);
        let record = StoredSession { id: new_session_id()?, ..load_record(&store, id)? };
        store.copy_entries(&id.0, &record.id).map_err(to_acp_error)?;
        let history = store.load_entries(&record.id).map_err(to_acp_error)?;
        drop(store);
        self.open_session(record, history, setup, client)
    }

    fn open_session(
        &self,
        record: StoredSession,
        history: Vec<HistoryEntry>,
        setup: SessionSetup,
        client: &ConnectionTo<Client>,
    ) -> Result<Arc<ChatSession>, Error> {
        let dirs: Vec<PathBuf> = std::iter::once(setup.cwd).chain(setup.additional_dirs).collect();
        let record = StoredSession { dirs: dirs.clone(), ..record };
        lock(&self.store).save_record(&record).map_err(to_acp_error)?;
        let id = SessionId::new(record.id.clone());
        let capabilities = lock(&self.client_capabilities).clone();
        let client_io = IoCapabilities {
            reads_files: capabilities.fs.read_text_file,
            writes_files: capabilities.fs.write_text_file,
            has_terminals: capabilities.terminal,
        };
        let context = SessionContext {
            session_id: id.clone(),
            dirs,
            client: client.clone(),
            client_io,
            guard: self.config.guard.clone(),
            ledger_dir: self.config.ledger_dir.clone(),
            features: self.features.clone(),
            language_servers: Arc::new(LanguageServers::new(
                self.config.settings.language_servers.clone(),
            )),
            profile: self.config.profile,
        };
        let spawn_context = context.to_spawn_context();
        let start_timeout = self.config.settings.mcp_start_max;
        let mcp_servers = match self.config.profile {
            AgentProfile::CodingAgent => setup.mcp_servers,
            AgentProfile::ChatBridge => Vec::new(),
        };
        let mcp_servers = McpServers::start(mcp_servers, &spawn_context, start_timeout);
        let session =
            ChatSession::new(context, mcp_servers, Arc::clone(&self.store), record, history);
        let session = Arc::new(session);
        lock(&self.open).insert(id, Arc::clone(&session));
        Ok(session)
    }

    pub(crate) fn find_session(&self, id: &SessionId) -> Result<Arc<ChatSession>, Error> {
        lock(&self.open).get(id).cloned().ok_or_else(|| session_not_found(id))
    }

    /// Closes a session and cancels its running turn. The session stays in the store.
    pub(crate) fn close_session(&self, id: &SessionId) -> Result<(), Error> {
        let session = lock(&self.open).remove(id).ok_or_else(|| session_not_found(id))?;
        session.cancel_turn();
        Ok(())
    }

    /// Deletes a session, open or not. Succeeds if it does not exist.
    pub(crate) fn delete_session(&self, id: &SessionId) -> Result<(), Error> {
        let _closed = self.close_session(id);
        lock(&self.store).delete_session(&id.0).map_err(to_acp_error)
    }

    pub(crate) fn list_sessions(
        &self,
        cwd: Option<&Path>,
        cursor: Option<&str>,
    ) -> Result<StoredSessionPage, Error> {
        lock(&self.store).list_sessions(cwd, cursor).map_err(to_acp_error)
    }

    /// Returns the options of a session. Waits briefly for the list of models; if it arrives later,
    /// an update is sent.
    pub(crate) async fn config_options(
        self: &Arc<Self>,
        session: &Arc<ChatSession>,
    ) -> Vec<SessionConfigOption> {
        let registry = Arc::clone(self);
        let mut loading = tokio::spawn(async move { registry.load_models().await });
        if tokio::time::timeout(MODEL_LIST_WAIT_MAX, &mut loading).await.is_err() {
            let (registry, session) = (Arc::clone(self), Arc::clone(session));
            tokio::spawn(async move {
                if loading.await.is_ok() && registry.models.initialized() {
                    registry.send_options_update(&session, &session.options());
                }
            });
        }
        self.to_config_options(&session.options())
    }

    fn to_config_options(&self, options: &SessionOptions) -> Vec<SessionConfigOption> {
        options.to_config_options(self.listed_models())
    }

    /// Returns the models in the form that clients without support for options read.
    pub(crate) fn model_state(&self, session: &ChatSession) -> Value {
        session.options().to_model_state(self.listed_models())
    }

    /// The models of the server, as far as they are known.
    fn listed_models(&self) -> &[ModelInfo] {
        self.models.get().map_or(&[], Vec::as_slice)
    }

    fn send_options_update(&self, session: &ChatSession, options: &SessionOptions) {
        let update = ConfigOptionUpdate::new(self.to_config_options(options));
        session.send_update(SessionUpdate::ConfigOptionUpdate(update));
    }

    /// Requests the list of models, unless it is known.
    async fn load_models(&self) {
        if let Err(error) = self.models.get_or_try_init(|| self.model.list_models()).await {
            tracing::info!("failed to list the models of the server: {error}");
        }
    }
}

/// Sets an option. Sends an update of the mode for clients that support only modes.
pub(crate) fn set_option(session: &ChatSession, option: &str, value: &str) -> Result<(), Error> {
    let mut options = session.options();
    let previous_mode = options.mode;
    options.set_option(option, value).map_err(to_invalid_params)?;
    if options.mode != previous_mode {
        let update = CurrentModeUpdate::new(options.mode.id());
        session.send_update(SessionUpdate::CurrentModeUpdate(update));
    }
    session.update_record(|record| record.options = options).map_err(to_acp_error)?;
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` needs")]
fn to_invalid_params(error: OptionError) -> Error {
    Error::invalid_params().data(error.to_string())
}

/// Sends the history of a session that was just opened to its client.
pub(crate) fn replay_history(session: &ChatSession) {
    let history = session.history.try_lock().expect("no turn has started");
    for update in to_session_updates(&history) {
        session.send_update(update);
    }
}

fn load_record(store: &ChatSessionStore, id: &SessionId) -> Result<StoredSession, Error> {
    store.load_record(&id.0).map_err(to_acp_error)?.ok_or_else(|| session_not_found(id))
}

fn session_not_found(id: &SessionId) -> Error {
    schema::Error::session_not_found(id.clone()).into()
}

/// Converts an error with all its causes.
#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` needs")]
fn to_acp_error(error: StoreError) -> Error {
    let message = chain(&error);
    match error {
        StoreError::InvalidCursor(_) => Error::invalid_params().data(message),
        _ => Error::internal_error().data(message),
    }
}

/// Returns an id with 16 random letters, unique among all processes that share the store.
fn new_session_id() -> Result<String, Error> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Error::into_internal_error)?;
    let letters = bytes.iter().map(|it| char::from(LETTERS[usize::from(it % 32)]));
    Ok(format!("c-{}", letters.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn session_ids_are_unique() {
        let ids: BTreeSet<String> = (0..1000).map(|_| new_session_id().unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|it| it.len() == 18 && it.starts_with("c-")));
    }
}
