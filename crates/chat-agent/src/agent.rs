//! The ACP connection of the agent: dispatches requests and notifications.
//!
//! The SDK delivers one message at a time and waits until its handler returns. A handler therefore
//! changes the state at once, in the order of the messages, so that a cancel finds the prompt that
//! was sent before it. Everything that takes time runs in a spawned task.

use crate::{
    AgentProfile, ChatAgentConfig, bridge,
    commands::available_commands_update,
    model::ModelClient,
    options::{MODE, MODEL},
    session::ChatSession,
    session_registry::{SessionRegistry, SessionSetup, replay_history, set_option},
    store::{ChatSessionStore, StoredSessionPage},
    tool::ToolFeatures,
};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo, Responder,
        schema::{
            AgentCapabilities, AgentResponse, AuthenticateResponse, CancelNotification,
            ClientRequest, CloseSessionResponse, DeleteSessionResponse, ForkSessionResponse,
            Implementation, InitializeResponse, ListSessionsResponse, LoadSessionResponse,
            McpCapabilities, McpServer, Meta, NewSessionResponse, PromptCapabilities,
            PromptRequest, ResumeSessionResponse, SessionAdditionalDirectoriesCapabilities,
            SessionCapabilities, SessionCloseCapabilities, SessionConfigOption,
            SessionConfigOptionValue, SessionDeleteCapabilities, SessionForkCapabilities,
            SessionInfo, SessionListCapabilities, SessionModeState, SessionResumeCapabilities,
            SetSessionConfigOptionResponse, SetSessionModeResponse,
        },
    },
};
use jackfield_protocol::rfc3339;
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};

/// Serves one client until it disconnects.
pub async fn serve_agent(
    mut config: ChatAgentConfig,
    transport: impl ConnectTo<Agent> + 'static,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let store = match config.profile {
        AgentProfile::CodingAgent => ChatSessionStore::open(&config.store_path)?,
        AgentProfile::ChatBridge => {
            config.settings.tools = false;
            ChatSessionStore::open_in_memory()?
        }
    };
    let model = ModelClient::new(&config.settings)?;
    let features = ToolFeatures::from_settings(&config.settings)?;
    let sessions = Arc::new(SessionRegistry::new(config, features, model, store));
    let cancel_sessions = Arc::clone(&sessions);
    Agent
        .v1()
        .name("jackfield-agent")
        .on_receive_request(
            async move |request: ClientRequest, responder, client: ConnectionTo<Client>| {
                RequestHandler { sessions: &sessions, client, responder }.handle_request(request)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |it: CancelNotification, _client| {
                // A session that is not open has no turn to cancel.
                if let Ok(session) = cancel_sessions.find_session(&it.session_id) {
                    session.cancel_turn();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await?;
    Ok(())
}

/// Handles one request.
struct RequestHandler<'a> {
    sessions: &'a Arc<SessionRegistry>,
    client: ConnectionTo<Client>,
    responder: Responder<Value>,
}

/// Builds the response to a request that opens a session or changes its options.
type BuildResponse = fn(&ChatSession, SessionModeState, Vec<SessionConfigOption>) -> AgentResponse;

impl RequestHandler<'_> {
    fn handle_request(self, request: ClientRequest) -> Result<(), Error> {
        let sessions = self.sessions;
        match request {
            ClientRequest::InitializeRequest(it) => {
                sessions.set_client_capabilities(it.client_capabilities);
                let response = match sessions.profile() {
                    AgentProfile::CodingAgent => initialize_response(it.protocol_version),
                    AgentProfile::ChatBridge => bridge::initialize_response(it.protocol_version),
                };
                self.send_response(Ok(AgentResponse::InitializeResponse(response)))
            }
            // The API key is in the environment, so there is nothing to do.
            ClientRequest::AuthenticateRequest(_) => self.send_response(Ok(
                AgentResponse::AuthenticateResponse(AuthenticateResponse::new()),
            )),
            ClientRequest::ListSessionsRequest(it) => {
                let page = sessions.list_sessions(it.cwd.as_deref(), it.cursor.as_deref());
                self.send_response(
                    page.map(|it| AgentResponse::ListSessionsResponse(to_list_response(it))),
                )
            }
            ClientRequest::CloseSessionRequest(it) => {
                let response = AgentResponse::CloseSessionResponse(CloseSessionResponse::new());
                let closed = sessions.close_session(&it.session_id);
                self.send_response(closed.map(|()| response))
            }
            ClientRequest::DeleteSessionRequest(it) => {
                let response = AgentResponse::DeleteSessionResponse(DeleteSessionResponse::new());
                let deleted = sessions.delete_session(&it.session_id);
                self.send_response(deleted.map(|()| response))
            }
            ClientRequest::SetSessionModeRequest(it) => {
                let session = sessions.find_session(&it.session_id);
                let response = session.and_then(|session| {
                    set_option(&session, MODE, &it.mode_id.0)?;
                    Ok(AgentResponse::SetSessionModeResponse(SetSessionModeResponse::new()))
                });
                self.send_response(response)
            }
            ClientRequest::SetSessionConfigOptionRequest(it) => {
                let value = match &it.value {
                    SessionConfigOptionValue::ValueId { value } => value.0.to_string(),
                    _ => String::new(),
                };
                let session = sessions.find_session(&it.session_id).and_then(|session| {
                    set_option(&session, &it.config_id.0, &value)?;
                    Ok(session)
                });
                self.respond_with_options(session, |_, _, options| {
                    let response = SetSessionConfigOptionResponse::new(options);
                    AgentResponse::SetSessionConfigOptionResponse(response)
                })
            }
            ClientRequest::PromptRequest(it) => self.start_prompt(it),
            other => self.handle_open_request(other),
        }
    }

    /// Handles the four requests that open a session.
    fn handle_open_request(self, request: ClientRequest) -> Result<(), Error> {
        let sessions = self.sessions;
        let is_bridge = sessions.profile() == AgentProfile::ChatBridge;
        match request {
            ClientRequest::LoadSessionRequest(_)
            | ClientRequest::ResumeSessionRequest(_)
            | ClientRequest::ForkSessionRequest(_)
                if is_bridge =>
            {
                self.send_response(Err(bridge::sessions_not_stored()))
            }
            ClientRequest::NewSessionRequest(it) => {
                let setup = session_setup(it.cwd, it.additional_directories, it.mcp_servers);
                let choices = requested_options(it.meta.as_ref());
                let session = sessions.create_session(setup, &choices, &self.client);
                if is_bridge {
                    return self.send_response(session.map(|it| {
                        let response = NewSessionResponse::new(it.context.session_id.clone());
                        AgentResponse::NewSessionResponse(response)
                    }));
                }
                self.respond_with_options(session, |session, modes, options| {
                    let response = NewSessionResponse::new(session.context.session_id.clone());
                    let response = response.modes(modes).config_options(options);
                    AgentResponse::NewSessionResponse(response)
                })
            }
            ClientRequest::LoadSessionRequest(it) => {
                let setup = session_setup(it.cwd, it.additional_directories, it.mcp_servers);
                let session = sessions.reopen_session(&it.session_id, setup, &self.client);
                let session = session.inspect(|it| replay_history(it));
                self.respond_with_options(session, |_, modes, options| {
                    let response = LoadSessionResponse::new().modes(modes).config_options(options);
                    AgentResponse::LoadSessionResponse(response)
                })
            }
            ClientRequest::ResumeSessionRequest(it) => {
                let setup = session_setup(it.cwd, it.additional_directories, it.mcp_servers);
                let session = sessions.reopen_session(&it.session_id, setup, &self.client);
                self.respond_with_options(session, |_, modes, options| {
                    let response =
                        ResumeSessionResponse::new().modes(modes).config_options(options);
                    AgentResponse::ResumeSessionResponse(response)
                })
            }
            ClientRequest::ForkSessionRequest(it) => {
                let setup = session_setup(it.cwd, it.additional_directories, it.mcp_servers);
                let session = sessions.fork_session(&it.session_id, setup, &self.client);
                self.respond_with_options(session, |session, modes, options| {
                    let response = ForkSessionResponse::new(session.context.session_id.clone());
                    let response = response.modes(modes).config_options(options);
                    AgentResponse::ForkSessionResponse(response)
                })
            }
            _ => self.send_response(Err(Error::method_not_found())),
        }
    }

    /// Starts a turn here and not in its task, so that a cancel that follows at once finds it.
    fn start_prompt(self, it: PromptRequest) -> Result<(), Error> {
        let started = self.sessions.find_session(&it.session_id).and_then(|session| {
            let canceled = session.begin_turn().ok_or_else(turn_running_error)?;
            Ok((session, canceled))
        });
        let (session, canceled) = match started {
            Ok(started) => started,
            Err(error) => return self.send_response(Err(error)),
        };
        let (sessions, responder) = (Arc::clone(self.sessions), self.responder);
        self.client.spawn(async move {
            let response = sessions.run_prompt(&session, it.prompt, canceled).await;
            send_response(responder, response.map(AgentResponse::PromptResponse))
        })
    }

    fn send_response(self, response: Result<AgentResponse, Error>) -> Result<(), Error> {
        send_response(self.responder, response)
    }

    /// Responds with the options of a session, as soon as the models are known.
    fn respond_with_options(
        self,
        session: Result<Arc<ChatSession>, Error>,
        build_response: BuildResponse,
    ) -> Result<(), Error> {
        let session = match session {
            Ok(session) => session,
            Err(error) => return self.send_response(Err(error)),
        };
        let (sessions, responder) = (Arc::clone(self.sessions), self.responder);
        self.client.spawn(async move {
            let options = sessions.config_options(&session).await;
            let response = build_response(&session, session.options().to_mode_state(), options);
            if matches!(response, AgentResponse::SetSessionConfigOptionResponse(_)) {
                return send_response(responder, Ok(response));
            }
            let mut value = serde_json::to_value(response).map_err(Error::into_internal_error)?;
            value["models"] = sessions.model_state(&session);
            responder.respond(value)?;
            session.send_update(available_commands_update());
            Ok(())
        })
    }
}

fn send_response(
    responder: Responder<Value>,
    response: Result<AgentResponse, Error>,
) -> Result<(), Error> {
    let value =
        response.and_then(|it| serde_json::to_value(it).map_err(Error::into_internal_error));
    responder.respond_with_result(value)
}

fn turn_running_error() -> Error {
    let message = "a prompt is running in this session: wait for it, or cancel it";
    Error::invalid_request().data(message)
}

fn initialize_response(version: ProtocolVersion) -> InitializeResponse {
    let info = Implementation::new("jackfield", env!("CARGO_PKG_VERSION"));
    InitializeResponse::new(version).agent_info(info).agent_capabilities(agent_capabilities())
}

fn agent_capabilities() -> AgentCapabilities {
    let session = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .fork(SessionForkCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
    AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
        .session_capabilities(session)
}

fn session_setup(
    cwd: PathBuf,
    additional_dirs: Vec<PathBuf>,
    mcp_servers: Vec<McpServer>,
) -> SessionSetup {
    SessionSetup { cwd, additional_dirs, mcp_servers }
}

/// The options that `session/new` sets, each with its value.
fn requested_options(meta: Option<&Meta>) -> Vec<(&'static str, String)> {
    let metadata = meta.and_then(|it| it.get("jackfield"));
    let value = |name: &str| Some(metadata?.get(name)?.as_str()?.to_owned());
    [MODEL, MODE].into_iter().filter_map(|it| Some((it, value(it)?))).collect()
}

fn to_list_response(page: StoredSessionPage) -> ListSessionsResponse {
    let sessions = page.records.into_iter().map(|it| {
        let mut dirs = it.dirs.into_iter();
        let cwd = dirs.next().unwrap_or_default();
        SessionInfo::new(it.id, cwd)
            .additional_directories(dirs.collect())
            .title(it.title)
            .updated_at(rfc3339(u64::try_from(it.updated_at_ms).unwrap_or_default()))
    });
    ListSessionsResponse::new(sessions.collect()).next_cursor(page.next_cursor)
}
