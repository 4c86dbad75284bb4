//! The connections of the interface to the hub.
//!
//! One follows the lists, one each session that is shown, one is for short requests, one for the prompts of each
//! session; a request for which an agent starts has its own. All of them are opened again when they are lost.

mod access;
mod agent_launch;
mod list_watch;
mod log_follow;
mod prompts;
mod retry;
mod short_requests;
#[cfg(test)]
mod tests;

pub use access::{DaemonAccess, DaemonStart};

use crate::hub::{HubRequest, HubUpdate, RequestNumber, SessionRow};
use access::{HubAccess, LinkError};
use prompts::OutgoingPrompt;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

/// Updates that wait for the interface. The hub keeps the rest.
const UPDATES_MAX: usize = 64;
/// Requests that wait for the hub; more are refused.
const REQUESTS_MAX: usize = 64;

/// How long the end of the interface may wait for answers.
const FINISH_MAX: Duration = Duration::from_secs(2);

type UpdateSender = mpsc::Sender<HubUpdate>;

/// The tasks that exchange messages with the hub. They end when this is dropped.
pub(crate) struct HubLink {
    hub: HubAccess,
    updates: UpdateSender,
    requests: mpsc::Sender<(RequestNumber, HubRequest)>,
    followed: BTreeMap<String, AbortHandle>,
    prompts: BTreeMap<String, mpsc::Sender<OutgoingPrompt>>,
    /// The rows of all sessions.
    rows: BTreeMap<String, SessionRow>,
    /// Random, so that keys are unique.
    key_seed: u64,
    /// They send what was asked for, and end when nothing more is asked for.
    senders: JoinSet<()>,
    /// All other tasks.
    tasks: JoinSet<()>,
}

impl HubLink {
    /// Connects in the background. The updates arrive on the receiver.
    pub(crate) fn start(
        daemon: Arc<dyn DaemonAccess>,
        environment: Map<String, Value>,
        key_seed: u64,
    ) -> (HubLink, mpsc::Receiver<HubUpdate>) {
        let hub = HubAccess { daemon, environment: Arc::new(environment) };
        let (updates, received) = mpsc::channel(UPDATES_MAX);
        let (requests, pending) = mpsc::channel(REQUESTS_MAX);
        let (mut tasks, mut senders) = (JoinSet::new(), JoinSet::new());
        tasks.spawn(list_watch::run_watch(hub.clone(), updates.clone()));
        senders.spawn(short_requests::run_requests(hub.clone(), pending, updates.clone()));
        let link = HubLink {
            hub,
            updates,
            requests,
            followed: BTreeMap::new(),
            prompts: BTreeMap::new(),
            rows: BTreeMap::new(),
            key_seed,
            senders,
            tasks,
        };
        (link, received)
    }

    /// Keeps the rows of sessions, which some requests need.
    pub(crate) fn note_update(&mut self, update: &HubUpdate) {
        match update {
            HubUpdate::Lists { sessions, .. } => {
                self.rows = sessions.iter().map(|it| (it.session_id.clone(), it.clone())).collect();
            }
            HubUpdate::Changes { sessions, removed, .. } => {
                self.rows.extend(sessions.iter().map(|it| (it.session_id.clone(), it.clone())));
                for it in removed {
                    self.rows.remove(it);
                }
            }
            _ => {}
        }
        // Tasks that have ended hold no resources.
        while self.tasks.try_join_next().is_some() {}
    }

    /// Sends a request. Returns its outcome if it is refused at once.
    pub(crate) fn send(&mut self, number: RequestNumber, request: HubRequest) -> Option<HubUpdate> {
        match request {
            HubRequest::Follow { session, after } => self.follow(session, after),
            HubRequest::Unfollow { session } => {
                self.followed.remove(&session).iter().for_each(AbortHandle::abort);
            }
            HubRequest::Prompt { session, blocks, delivery } => {
                let key = format!("{:016x}-{}", self.key_seed, number.0);
                let row = self.rows.get(&session).cloned();
                let prompt = OutgoingPrompt { number, key, blocks, delivery, row };
                return self.send_prompt(session, prompt);
            }
            HubRequest::NewSession { agent, cwd } => {
                self.spawn(number, agent_launch::open_session(self.hub.clone(), agent, cwd));
            }
            HubRequest::ForkSession { session, at } => {
                let cwd = self.rows.get(&session).map(|it| it.cwd.clone()).unwrap_or_default();
                let fork = agent_launch::fork_session(self.hub.clone(), session, cwd, at);
                self.spawn(number, fork);
            }
            HubRequest::ChangeSetting { session, value } => {
                let updates = self.updates.clone();
                let change =
                    agent_launch::change_setting(self.hub.clone(), session, value, updates);
                self.spawn(number, change);
            }
            HubRequest::ListAgents => self.list_agents(),
            request => {
                if self.requests.try_send((number, request)).is_err() {
                    return Some(refuse(number));
                }
            }
        }
        None
    }

    /// Waits until short requests and prompts that were sent are answered: the interface ends.
    pub(crate) async fn finish(self, mut updates: mpsc::Receiver<HubUpdate>) {
        let HubLink { requests, prompts, mut senders, tasks, .. } = self;
        drop((requests, prompts, tasks));
        let finished = async {
            loop {
                tokio::select! {
                    ended = senders.join_next() => if ended.is_none() { return },
                    // They would wait for the interface.
                    _ignored = updates.recv() => {}
                }
            }
        };
        // What takes longer is lost with the connection.
        let _finished = tokio::time::timeout(FINISH_MAX, finished).await;
    }

    fn follow(&mut self, session: String, after: u64) {
        let (hub, updates) = (self.hub.clone(), self.updates.clone());
        let task = log_follow::follow_log(hub, session.clone(), after, updates);
        let task = self.tasks.spawn(task);
        self.followed.insert(session, task).iter().for_each(AbortHandle::abort);
    }

    fn send_prompt(&mut self, session: String, prompt: OutgoingPrompt) -> Option<HubUpdate> {
        let number = prompt.number;
        let (hub, updates) = (self.hub.clone(), self.updates.clone());
        let sender = self.prompts.entry(session.clone()).or_insert_with(|| {
            let (sender, pending) = mpsc::channel(REQUESTS_MAX);
            self.senders.spawn(prompts::run_prompts(hub, session, pending, updates));
            sender
        });
        sender.try_send(prompt).is_err().then(|| refuse(number))
    }

    fn list_agents(&mut self) {
        let (daemon, updates) = (self.hub.daemon.clone(), self.updates.clone());
        self.tasks.spawn(async move {
            let agents = tokio::task::spawn_blocking(move || daemon.list_agents()).await;
            // The interface may have ended.
            let _sent = updates.send(HubUpdate::Agents(agents.unwrap_or_default())).await;
        });
    }

    /// Runs a request in its own task, and reports its outcome.
    fn spawn(
        &mut self,
        number: RequestNumber,
        request: impl Future<Output = Result<Value, LinkError>> + Send + 'static,
    ) {
        let updates = self.updates.clone();
        self.tasks.spawn(async move {
            let result = request.await.map_err(|it| it.describe());
            // The interface may have ended.
            let _sent = updates.send(HubUpdate::Outcome { number, result }).await;
        });
    }
}

fn refuse(number: RequestNumber) -> HubUpdate {
    let why = "too many requests wait for the daemon".to_owned();
    HubUpdate::Outcome { number, result: Err(why) }
}
