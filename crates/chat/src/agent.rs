//! The agent on its connection: which method does what.
//!
//! The SDK hands us one message at a time and waits until we have taken it. So what a message changes
//! is changed at once, in the order of the messages: a cancel finds the prompt that came before it.
//! Whatever takes time after that is spawned.

use crate::{
    Host, commands,
    model::Model,
    options::MODE,
    session::Session,
    sessions::{Sessions, Wish, choose, tell_history},
    store::{Page, Store},
};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, on_receive_notification, on_receive_request,
    v1::{
        ConnectionTo, Responder,
        schema::{
            AgentCapabilities, AgentResponse, AuthenticateResponse, CancelNotification,
            ClientRequest, CloseSessionResponse, DeleteSessionResponse, ForkSessionResponse,
            Implementation, InitializeResponse, ListSessionsResponse, LoadSessionResponse,
            McpCapabilities, McpServer, NewSessionResponse, PromptCapabilities, PromptRequest,
            ResumeSessionResponse, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
            SessionCloseCapabilities, SessionConfigOption, SessionConfigOptionValue,
            SessionDeleteCapabilities, SessionForkCapabilities, SessionInfo,
            SessionListCapabilities, SessionModeState, SessionResumeCapabilities,
            SetSessionConfigOptionResponse, SetSessionModeResponse,
        },
    },
};
use jackfield_wire::rfc3339;
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};

/// Serves one client until it is gone.
pub async fn serve(
    host: Host,
    transport: impl ConnectTo<Agent> + 'static,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let model = Model::new(&host.settings)?;
    let store = Store::open(&host.store)?;
    let sessions = Arc::new(Sessions::new(host, model, store));
    let stopper = Arc::clone(&sessions);
    Agent
        .v1()
        .name("jackfield-agent")
        .on_receive_request(
            async move |request: ClientRequest, responder, client: ConnectionTo<Client>| {
                Desk { sessions: &sessions, client, responder }.receive(request)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |it: CancelNotification, _client| {
                // A session that is not open has nothing to cancel.
                if let Ok(session) = stopper.find(&it.session_id) {
                    session.cancel();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await?;
    Ok(())
}

/// One request, and who waits for its answer.
struct Desk<'a> {
    sessions: &'a Arc<Sessions>,
    client: ConnectionTo<Client>,
    responder: Responder<Value>,
}

/// What a client is told of a session it has opened.
type Opened = fn(&Session, SessionModeState, Vec<SessionConfigOption>) -> AgentResponse;

impl Desk<'_> {
    fn receive(self, request: ClientRequest) -> Result<(), Error> {
        let all = self.sessions;
        match request {
            ClientRequest::InitializeRequest(it) => {
                all.on_introduced(it.client_capabilities);
                let info = Implementation::new("jackfield", env!("CARGO_PKG_VERSION"));
                let answer = InitializeResponse::new(it.protocol_version)
                    .agent_info(info)
                    .agent_capabilities(capabilities());
                self.answer(Ok(AgentResponse::InitializeResponse(answer)))
            }
            // The key is in the environment: there is nothing to do.
            ClientRequest::AuthenticateRequest(_) => {
                self.answer(Ok(AgentResponse::AuthenticateResponse(AuthenticateResponse::new())))
            }
            ClientRequest::ListSessionsRequest(it) => {
                let page = all.list(it.cwd.as_deref(), it.cursor.as_deref());
                self.answer(page.map(|it| AgentResponse::ListSessionsResponse(listed(it))))
            }
            ClientRequest::CloseSessionRequest(it) => {
                let answer = AgentResponse::CloseSessionResponse(CloseSessionResponse::new());
                let closed = all.close(&it.session_id);
                self.answer(closed.map(|()| answer))
            }
            ClientRequest::DeleteSessionRequest(it) => {
                let answer = AgentResponse::DeleteSessionResponse(DeleteSessionResponse::new());
                let deleted = all.delete(&it.session_id);
                self.answer(deleted.map(|()| answer))
            }
            ClientRequest::SetSessionModeRequest(it) => {
                let session = all.find(&it.session_id);
                let session = session.and_then(|session| {
                    choose(&session, MODE, &it.mode_id.0)?;
                    Ok(AgentResponse::SetSessionModeResponse(SetSessionModeResponse::new()))
                });
                self.answer(session)
            }
            ClientRequest::SetSessionConfigOptionRequest(it) => {
                let value = match &it.value {
                    SessionConfigOptionValue::ValueId { value } => value.0.to_string(),
                    _ => String::new(),
                };
                let chosen = all.find(&it.session_id).and_then(|session| {
                    choose(&session, &it.config_id.0, &value)?;
                    Ok(session)
                });
                self.answer_opened(chosen, |_, _, options| {
                    let answer = SetSessionConfigOptionResponse::new(options);
                    AgentResponse::SetSessionConfigOptionResponse(answer)
                })
            }
            ClientRequest::PromptRequest(it) => self.prompt(it),
            other => self.open(other),
        }
    }

    /// The four ways to open a session.
    fn open(self, request: ClientRequest) -> Result<(), Error> {
        let all = self.sessions;
        match request {
            ClientRequest::NewSessionRequest(it) => {
                let wish = wish(it.cwd, it.additional_directories, it.mcp_servers);
                let session = all.create(wish, &self.client);
                self.answer_opened(session, |session, modes, options| {
                    let answer = NewSessionResponse::new(session.site.session.clone());
                    let answer = answer.modes(modes).config_options(options);
                    AgentResponse::NewSessionResponse(answer)
                })
            }
            ClientRequest::LoadSessionRequest(it) => {
                let wish = wish(it.cwd, it.additional_directories, it.mcp_servers);
                let session = all.reopen(&it.session_id, wish, &self.client);
                let session = session.inspect(|it| tell_history(it));
                self.answer_opened(session, |_, modes, options| {
                    let answer = LoadSessionResponse::new().modes(modes).config_options(options);
                    AgentResponse::LoadSessionResponse(answer)
                })
            }
            ClientRequest::ResumeSessionRequest(it) => {
                let wish = wish(it.cwd, it.additional_directories, it.mcp_servers);
                let session = all.reopen(&it.session_id, wish, &self.client);
                self.answer_opened(session, |_, modes, options| {
                    let answer = ResumeSessionResponse::new().modes(modes).config_options(options);
                    AgentResponse::ResumeSessionResponse(answer)
                })
            }
            ClientRequest::ForkSessionRequest(it) => {
                let wish = wish(it.cwd, it.additional_directories, it.mcp_servers);
                let session = all.fork(&it.session_id, wish, &self.client);
                self.answer_opened(session, |session, modes, options| {
                    let answer = ForkSessionResponse::new(session.site.session.clone());
                    let answer = answer.modes(modes).config_options(options);
                    AgentResponse::ForkSessionResponse(answer)
                })
            }
            _ => self.answer(Err(Error::method_not_found())),
        }
    }

    /// The turn begins here and not in its task, so that a cancel right behind it finds it.
    fn prompt(self, it: PromptRequest) -> Result<(), Error> {
        let all = self.sessions;
        let begun = all.find(&it.session_id).and_then(|session| {
            let cancelled = session.begin().ok_or_else(is_busy)?;
            Ok((session, cancelled))
        });
        let (session, cancelled) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.answer(Err(error)),
        };
        let (sessions, responder) = (Arc::clone(all), self.responder);
        self.client.spawn(async move {
            let answer = sessions.prompt(&session, it.prompt, cancelled).await;
            respond(responder, answer.map(AgentResponse::PromptResponse))
        })
    }

    fn answer(self, answer: Result<AgentResponse, Error>) -> Result<(), Error> {
        respond(self.responder, answer)
    }

    /// Answers with the options of a session, as soon as it is known which models there are.
    fn answer_opened(
        self,
        session: Result<Arc<Session>, Error>,
        opened: Opened,
    ) -> Result<(), Error> {
        let session = match session {
            Ok(session) => session,
            Err(error) => return self.answer(Err(error)),
        };
        let (sessions, responder) = (Arc::clone(self.sessions), self.responder);
        self.client.spawn(async move {
            let options = sessions.options(&session).await;
            let answer = opened(&session, session.choices().modes(), options);
            let is_new = !matches!(answer, AgentResponse::SetSessionConfigOptionResponse(_));
            respond(responder, Ok(answer))?;
            if is_new {
                session.tell(commands::available());
            }
            Ok(())
        })
    }
}

fn respond(responder: Responder<Value>, answer: Result<AgentResponse, Error>) -> Result<(), Error> {
    let value = answer.and_then(|it| serde_json::to_value(it).map_err(Error::into_internal_error));
    responder.respond_with_result(value)
}

fn is_busy() -> Error {
    let why = "a prompt is running in this session: wait for it, or cancel it";
    Error::invalid_request().data(why)
}

fn capabilities() -> AgentCapabilities {
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

fn wish(cwd: PathBuf, more: Vec<PathBuf>, servers: Vec<McpServer>) -> Wish {
    Wish { cwd, more, servers }
}

fn listed(page: Page) -> ListSessionsResponse {
    let infos = page.records.into_iter().map(|it| {
        let mut dirs = it.dirs.into_iter();
        let cwd = dirs.next().unwrap_or_default();
        SessionInfo::new(it.id, cwd)
            .additional_directories(dirs.collect())
            .title(it.title)
            .updated_at(rfc3339(u64::try_from(it.updated).unwrap_or_default()))
    });
    ListSessionsResponse::new(infos.collect()).next_cursor(page.next)
}
