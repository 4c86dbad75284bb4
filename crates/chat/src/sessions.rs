//! All sessions of this process: opened, found again, copied, closed.

use crate::{
    Host,
    commands::{self, Command},
    history::{Entry, replay},
    mcp::{Ground, Servers},
    model::{Listed, Model, Tokens},
    options::{Choices, Mode},
    session::{Session, lock},
    store::{Page, Record, Store, StoreError, now},
    tool::{Offers, Site},
    turn::{Hears, Turn, usage_of},
};
use agent_client_protocol::{
    Client, Error,
    v1::{
        ConnectionTo,
        schema::{
            self, ClientCapabilities, ConfigOptionUpdate, ContentBlock, ContentChunk,
            CurrentModeUpdate, McpServer, PromptResponse, SessionConfigOption, SessionId,
            SessionUpdate, StopReason,
        },
    },
};
use jackfield_wire::chain;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

/// A session does not wait longer than this to know which models there are.
const MODELS_MAX: Duration = Duration::from_millis(1500);

/// All that handlers share.
pub(crate) struct Sessions {
    pub(crate) host: Host,
    model: Model,
    store: Arc<Mutex<Store>>,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// What the server serves; asked once it is needed, and again if it did not answer.
    listed: OnceCell<Vec<Listed>>,
    client: Mutex<ClientCapabilities>,
}

/// Where a client wants a session to work.
pub(crate) struct Wish {
    pub(crate) cwd: PathBuf,
    pub(crate) more: Vec<PathBuf>,
    pub(crate) servers: Vec<McpServer>,
}

impl Wish {
    /// Asked before anything is changed, so that a wrong wish changes nothing.
    fn must_be_possible(&self) -> Result<(), Error> {
        if self.cwd.is_absolute() {
            return Ok(());
        }
        let why = format!("`{}` is no absolute path", self.cwd.display());
        Err(Error::invalid_params().data(why))
    }
}

impl Sessions {
    pub(crate) fn new(host: Host, model: Model, store: Store) -> Sessions {
        Sessions {
            host,
            model,
            store: Arc::new(Mutex::new(store)),
            open: Mutex::default(),
            listed: OnceCell::new(),
            client: Mutex::default(),
        }
    }

    pub(crate) fn on_introduced(&self, client: ClientCapabilities) {
        *lock(&self.client) = client;
    }

    /// A new session.
    pub(crate) fn create(
        &self,
        wish: Wish,
        client: &ConnectionTo<Client>,
    ) -> Result<Arc<Session>, Error> {
        wish.must_be_possible()?;
        let record = Record {
            id: fresh_id()?,
            dirs: Vec::new(),
            title: None,
            choices: Choices {
                mode: Mode::default(),
                model: self.host.settings.model.clone(),
                effort: None,
            },
            allowed: Vec::new(),
            updated: now(),
        };
        self.enter(record, Vec::new(), wish, client)
    }

    /// A session of the store, opened as the client wishes.
    pub(crate) fn reopen(
        &self,
        id: &SessionId,
        wish: Wish,
        client: &ConnectionTo<Client>,
    ) -> Result<Arc<Session>, Error> {
        wish.must_be_possible()?;
        let store = lock(&self.store);
        let record = store.get(&id.0).map_err(told)?.ok_or_else(|| no_session(id))?;
        let history = store.entries(&id.0).map_err(told)?;
        drop(store);
        if let Some(open) = lock(&self.open).remove(id) {
            open.cancel();
        }
        self.enter(record, history, wish, client)
    }

    /// A copy of a session, from which both go on by themselves.
    pub(crate) fn fork(
        &self,
        id: &SessionId,
        wish: Wish,
        client: &ConnectionTo<Client>,
    ) -> Result<Arc<Session>, Error> {
        wish.must_be_possible()?;
        let store = lock(&self.store);
        let record = store.get(&id.0).map_err(told)?.ok_or_else(|| no_session(id))?;
        let record = Record { id: fresh_id()?, ..record };
        store.copy(&id.0, &record.id).map_err(told)?;
        let history = store.entries(&record.id).map_err(told)?;
        drop(store);
        self.enter(record, history, wish, client)
    }

    fn enter(
        &self,
        record: Record,
        history: Vec<Entry>,
        wish: Wish,
        client: &ConnectionTo<Client>,
    ) -> Result<Arc<Session>, Error> {
        let dirs: Vec<PathBuf> = std::iter::once(wish.cwd).chain(wish.more).collect();
        let record = Record { dirs: dirs.clone(), ..record };
        lock(&self.store).put(&record).map_err(told)?;
        let id = SessionId::new(record.id.clone());
        let can = lock(&self.client).clone();
        let offers = Offers {
            read: can.fs.read_text_file,
            write: can.fs.write_text_file,
            terminal: can.terminal,
        };
        let site = Site {
            session: id.clone(),
            dirs,
            client: client.clone(),
            offers,
            guard: self.host.guard.clone(),
            ledger: self.host.ledger.clone(),
            fetch: self.host.settings.fetch,
        };
        let ground = Ground::of(&site);
        let limit = self.host.settings.mcp_start_max;
        let servers = Servers::start(wish.servers, &ground, limit);
        let session = Session::new(site, servers, Arc::clone(&self.store), record, history);
        let session = Arc::new(session);
        lock(&self.open).insert(id, Arc::clone(&session));
        Ok(session)
    }

    pub(crate) fn find(&self, id: &SessionId) -> Result<Arc<Session>, Error> {
        lock(&self.open).get(id).cloned().ok_or_else(|| no_session(id))
    }

    /// Ends what runs in a session and forgets it here; the store keeps it.
    pub(crate) fn close(&self, id: &SessionId) -> Result<(), Error> {
        let session = lock(&self.open).remove(id).ok_or_else(|| no_session(id))?;
        session.cancel();
        Ok(())
    }

    pub(crate) fn delete(&self, id: &SessionId) -> Result<(), Error> {
        // It may be open or not, and who deletes twice wants it gone.
        let _closed = self.close(id);
        lock(&self.store).delete(&id.0).map_err(told)
    }

    pub(crate) fn list(&self, cwd: Option<&Path>, cursor: Option<&str>) -> Result<Page, Error> {
        lock(&self.store).list(cwd, cursor).map_err(told)
    }

    /// The options of a session. Waits a little for the server to say which models it has; if that
    /// takes longer, they are told when it has.
    pub(crate) async fn options(
        self: &Arc<Self>,
        session: &Arc<Session>,
    ) -> Vec<SessionConfigOption> {
        let all = Arc::clone(self);
        let mut asking = tokio::spawn(async move { all.listed().await });
        if tokio::time::timeout(MODELS_MAX, &mut asking).await.is_err() {
            let (all, session) = (Arc::clone(self), Arc::clone(session));
            tokio::spawn(async move {
                if asking.await.is_ok() && all.listed.initialized() {
                    let options = all.known_options(&session.choices());
                    session
                        .tell(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)));
                }
            });
        }
        self.known_options(&session.choices())
    }

    fn known_options(&self, choices: &Choices) -> Vec<SessionConfigOption> {
        choices.options(self.listed.get().map_or(&[], Vec::as_slice))
    }

    /// One prompt, which has begun.
    pub(crate) async fn prompt(
        &self,
        session: &Session,
        content: Vec<ContentBlock>,
        cancelled: CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let mut tokens = Tokens::default();
        let stop = cancelled.run_until_cancelled(self.answer(session, content, &mut tokens)).await;
        session.end();
        let stop = stop.unwrap_or(Ok(StopReason::Cancelled)).map_err(told)?;
        Ok(PromptResponse::new(stop).usage(usage_of(tokens)))
    }

    async fn answer(
        &self,
        session: &Session,
        content: Vec<ContentBlock>,
        tokens: &mut Tokens,
    ) -> Result<StopReason, StoreError> {
        let mut talk = session.talk.lock().await;
        let choices = session.choices();
        let can = lock(&self.client).session.clone().unwrap_or_default();
        let hears = Hears { notices: can.notices.is_some(), compaction: can.compaction.is_some() };
        let about = self.listed.get().and_then(|it| it.iter().find(|it| it.id == choices.model));
        let mut turn = Turn {
            session,
            talk: &mut talk,
            model: &self.model,
            settings: &self.host.settings,
            about: about.cloned(),
            choices,
            hears,
            tokens,
        };
        let Some(command) = Command::read(&content) else { return turn.run(content).await };
        let said = match command {
            Command::Help => commands::help(),
            Command::Compact if turn.talk.is_empty() => "Nothing was said yet.".to_owned(),
            Command::Compact => match turn.compact().await? {
                Ok(()) => "The conversation is summed up.".to_owned(),
                Err(trouble) => trouble.to_string(),
            },
            Command::Model(None) => format!("The model is `{}`.", turn.choices.model),
            Command::Model(Some(model)) => {
                let record = session.change(|it| model.clone_into(&mut it.choices.model))?;
                let options = self.known_options(&record.choices);
                session.tell(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)));
                format!("The model is `{model}` from now on.")
            }
        };
        session.tell(SessionUpdate::AgentMessageChunk(ContentChunk::new(said.as_str().into())));
        Ok(StopReason::EndTurn)
    }

    /// The models of the server, asked for once.
    async fn listed(&self) {
        let listed = self.listed.get_or_try_init(|| self.model.models()).await;
        if let Err(trouble) = listed {
            tracing::info!("the server does not say which models it has: {trouble}");
        }
    }
}

/// Chooses, and tells clients that know only modes.
pub(crate) fn choose(session: &Session, option: &str, value: &str) -> Result<(), Error> {
    let mut choices = session.choices();
    let before = choices.mode;
    let refused = |error: crate::options::Refused| Error::invalid_params().data(error.to_string());
    choices.set(option, value).map_err(refused)?;
    if choices.mode != before {
        let update = CurrentModeUpdate::new(choices.mode.id());
        session.tell(SessionUpdate::CurrentModeUpdate(update));
    }
    session.change(|record| record.choices = choices).map_err(told)?;
    Ok(())
}

/// Tells a client all that was said before, in a session that it has just opened.
pub(crate) fn tell_history(session: &Session) {
    let talk = session.talk.try_lock().expect("no turn has begun");
    for update in replay(&talk) {
        session.tell(update);
    }
}

fn no_session(id: &SessionId) -> Error {
    schema::Error::session_not_found(id.clone()).into()
}

/// An error with all its causes, for a client.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn told(error: StoreError) -> Error {
    let why = chain(&error);
    match error {
        StoreError::Cursor(_) => Error::invalid_params().data(why),
        _ => Error::internal_error().data(why),
    }
}

/// 16 random letters: unique among all processes that share the store.
fn fresh_id() -> Result<String, Error> {
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
    fn no_two_sessions_have_one_name() {
        let ids: BTreeSet<String> = (0..1000).map(|_| fresh_id().unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|it| it.len() == 18 && it.starts_with("c-")));
    }
}
