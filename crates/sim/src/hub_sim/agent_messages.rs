//! Messages between the hub and its agents: updates the trackers and checks the hub's output.

use super::{
    HubWorld,
    check::{self, RequestKind},
    markers,
};
use bytes::Bytes;
use jackfield_events::AgentSessionId;
use jackfield_hub::AgentId;
use jackfield_protocol::{self as wire, Frame};

impl HubWorld {
    /// The hub receives a message of an agent. An update in a session that the agent serves must be written.
    pub(super) fn note_agent_message(&mut self, agent: AgentId, frame: &Frame) {
        self.log_tracker.received += 1;
        let now = self.log_tracker.received;
        self.restore_tracker.on_received(agent, frame);
        if frame.kind() == wire::Kind::Response {
            return self.note_agent_response(agent, frame, now);
        }
        let Some(mark) = markers::find_mark(frame.bytes()) else { return };
        let Some(update) = self.log_tracker.updates.get_mut(&mark) else { return };
        update.received = now;
        let (agent_session, replay) = (update.agent_session.clone(), update.replay);
        let process = &self.procs[&agent];
        let session_state = process.sessions.get(&agent_session);
        let is_served = session_state.is_some_and(|it| it.is_serving && !it.may_replay)
            && !process.stop_requested;
        if is_served && !replay && self.is_serving_session(agent, &agent_session) {
            self.log_tracker.pending_updates.insert(mark);
        }
    }

    /// The hub has received a response. If it completes the opening of a session, early updates of that session count.
    pub(super) fn check_serving(&mut self, agent: AgentId, frame: &Frame) {
        let Some(process) = self.procs.get(&agent).filter(|it| !it.stop_requested) else { return };
        let mut sessions = process.sessions.iter();
        let opens = sessions.find(|(_, it)| it.opening_request.as_deref() == frame.id());
        let latest = |it: &AgentSessionId| {
            process.restore_requests.get(it).is_none_or(|it| Some(&**it) == frame.id())
        };
        let agent_session = opens.map(|(it, _)| it.clone()).filter(latest);
        // A session that is restored under a new id is served after its settings are restored.
        if let Some(agent_session) = agent_session.filter(|it| self.is_serving_session(agent, it)) {
            self.start_serving(agent, &agent_session, frame.session_id().is_some());
        }
    }

    /// In a session with a `new` id, all early updates are wanted.
    pub(super) fn start_serving(
        &mut self,
        agent: AgentId,
        agent_session: &AgentSessionId,
        new: bool,
    ) {
        let session_state =
            self.procs.get_mut(&agent).and_then(|it| it.sessions.get_mut(agent_session));
        let Some(session_state) = session_state.filter(|it| !it.is_serving) else { return };
        session_state.is_serving = true;
        if !new {
            return;
        }
        let speaker = (self.hub_number, agent);
        let facts = &mut self.log_tracker;
        let updates = facts.updates.iter();
        let early =
            updates.filter(|(_, it)| it.speaker == speaker && it.agent_session == *agent_session);
        let early = early.filter(|(_, it)| it.received != 0 && !it.replay && it.seq.is_none());
        let early: Vec<u64> = early.map(|(&mark, _)| mark).collect();
        facts.pending_updates.extend(early);
    }

    /// The response of an agent must follow the updates that were sent before it.
    pub(super) fn note_agent_response(&mut self, agent: AgentId, frame: &Frame, now: u64) {
        let Some(token) = markers::find_token(frame.bytes()) else { return };
        if let Some(prompt) = self.log_tracker.prompts.get_mut(&token) {
            prompt.answered = now;
            if markers::contains(frame.bytes(), "\"code\":-32002") {
                self.tally.count("prompts refused for a lost session");
                prompt.missing_session_errors += 1;
            }
            self.procs.get_mut(&agent).expect("the process runs").prompts.remove(&token);
        }
        for it in self.conns.values_mut() {
            let Some(request) = it.pending.values_mut().find(|it| it.token == token) else {
                continue;
            };
            let stream = request.session.as_ref().and_then(|it| self.disk.streams.get(it));
            if let Some(stream) = stream.filter(|_| request.kind == RequestKind::Echo) {
                request.follows_seq = stream.head;
            }
        }
    }

    pub(super) fn on_agent_message(&mut self, agent: AgentId, text: &Bytes) {
        let frame = Frame::parse(text.clone()).expect("the hub sends valid frames");
        if !self.procs.contains_key(&agent) {
            return; // It has exited; the real transport ignores this.
        }
        self.agents_receive_their_own_session_ids(agent, &frame);
        match (frame.kind(), frame.method().as_deref()) {
            (wire::Kind::Response, _) => {
                let id = frame.id().expect("a response has an id");
                self.ask_tracker.agent_receives_one_response_per_ask(agent, id, text);
            }
            (_, Some("session/prompt")) => {
                self.prompt_is_sent_once(agent, &frame);
                let agent_session = frame.session_id().unwrap_or_default().as_ref().into();
                self.restored_session_has_its_mode(agent, &agent_session);
                let session = self.log_tracker.session_ids.get(&*agent_session);
                self.restore_tracker.on_prompted(&(agent, agent_session), session, &frame);
            }
            (_, Some("session/load" | "session/resume" | "session/close")) => {
                let agent_session = frame.session_id().unwrap_or_default();
                let process = self.procs.get_mut(&agent).expect("seen above");
                process.known_sessions.insert(agent_session.as_ref().into());
                let id = frame.id().expect("a request has an id");
                process.restore_requests.insert(agent_session.as_ref().into(), id.into());
                process.forget_prompts(&agent_session);
                // The process may still have the session; updates before its response belong to the replay.
                if let Some(session_state) = process.sessions.get_mut(&*agent_session) {
                    session_state.is_serving = false;
                }
            }
            (_, Some("session/set_mode")) => self.note_mode(agent, &frame),
            (_, Some("$/cancel_request")) => self.cancel_names_a_known_request(agent, &frame),
            (_, Some("session/cancel")) => {
                self.cancel_is_logged_before_it_is_sent(agent, &frame);
            }
            _ => {}
        }
        let token = markers::find_token(frame.bytes());
        let opens =
            |it: &check::ClientRequest| it.kind == RequestKind::New && Some(it.token) == token;
        let opening = self.conns.values().flat_map(|it| it.pending.values()).any(opens);
        self.restore_tracker.on_sent(agent, &frame, !opening);
        let process = self.procs.get_mut(&agent).expect("seen above");
        // Only a request in a session shows that the hub listens to it; responses and other requests do not.
        let of_session = frame.kind() == wire::Kind::Request && frame.session_id().is_some();
        let agent_session = frame.session_id().filter(|_| of_session);
        if let Some(session_state) = agent_session.and_then(|it| process.sessions.get_mut(&*it)) {
            session_state.may_replay = false;
        }
        process.request_ids.extend(frame.id().filter(|_| frame.method().is_some()).map(Into::into));
        if !process.has_exited {
            process.inbox.push_back(frame);
        }
    }
}
