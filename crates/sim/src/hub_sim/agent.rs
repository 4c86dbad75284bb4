//! Simulated agents: small ACP programs that send updates early and late, ask the user, refuse requests, hang and exit.

use super::{HubWorld, markers};
use jackfield_events::AgentSessionId;
use jackfield_hub::{AgentId, Exit, Input};
use jackfield_protocol::{Frame, Kind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The agent programs: name, whether it announces `session/load`, and whether it announces `session/resume`.
pub(super) const PROGRAMS: &[(&str, bool, bool)] = &[
    ("both", true, true),
    ("loads", true, false),
    ("resumes", false, true),
    ("forgets", false, false),
];

/// One agent process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each can be so or not, whatever the others are")]
pub(super) struct AgentProcess {
    pub(super) program: usize,
    /// Frames from the hub that the agent has not read yet.
    pub(super) inbox: VecDeque<Frame>,
    /// Inputs from the agent that the hub has not received yet. The last one is the agent's exit.
    pub(super) outbox: VecDeque<Input>,
    pub(super) paused: bool,
    pub(super) stop_requested: bool,
    pub(super) has_exited: bool,
    /// The agent no longer reads its input.
    pub(super) hung: bool,
    ignores_cancel: bool,
    /// The sessions of this process by the agent's session id.
    pub(super) sessions: BTreeMap<AgentSessionId, AgentSession>,
    /// Every session that the process was asked for, including lost ones: requests that waited for the journal may
    /// still name them.
    pub(super) known_sessions: BTreeSet<AgentSessionId>,
    /// The id of the latest restore request per session. Responses to earlier ones are ignored.
    pub(super) restore_requests: BTreeMap<AgentSessionId, Box<str>>,
    /// The prompts that the hub has sent and that are unanswered, each with its session.
    pub(super) prompts: BTreeMap<u64, AgentSessionId>,
    pub(super) open_asks: BTreeSet<u64>,
    /// The ids of all requests that the hub has sent.
    pub(super) request_ids: BTreeSet<Box<str>>,
    /// Requests that the agent has read and not answered.
    pub(super) unanswered: VecDeque<Frame>,
}

/// The state of a session in its agent process.
#[derive(Debug, Default)]
pub(super) struct AgentSession {
    /// The id of the request whose response starts the service of this session.
    pub(super) opening_request: Option<Box<str>>,
    /// The hub has received that response.
    pub(super) is_serving: bool,
    pub(super) turn: Option<AgentTurn>,
    /// The agent claims to have the session and does not: its first prompt fails.
    pub(super) is_fake: bool,
    /// The agent was asked to load and has sent no message yet: the next updates may belong to the replay.
    pub(super) may_replay: bool,
}

#[derive(Debug)]
pub(super) struct AgentTurn {
    pub(super) id: String,
    pub(super) token: u64,
    pub(super) remaining: u64,
    pub(super) cancelled: bool,
}

impl AgentProcess {
    /// Whether the process can still act without further input.
    pub(super) fn is_busy(&self) -> bool {
        !self.has_exited
            && (self.stop_requested
                || (!self.hung
                    && (!self.inbox.is_empty()
                        || self.has_open_turn()
                        || !self.unanswered.is_empty())))
    }

    fn has_open_turn(&self) -> bool {
        self.sessions.values().any(|it| it.turn.is_some())
    }

    /// The hub has released the session: its open prompts no longer count.
    pub(super) fn forget_prompts(&mut self, agent_session: &str) {
        self.prompts.retain(|_, it| &**it != agent_session);
    }
}

impl HubWorld {
    pub(super) fn start_process(&mut self, agent: AgentId, program: &str) {
        let program = PROGRAMS.iter().position(|it| it.0 == program).expect("a known program");
        let broken = program == self.hub_settings.preferred_program()
            && self.rng.chance(self.fault_rates.start_fails);
        let fails = broken || self.rng.chance(self.fault_rates.refuses / 4);
        let mut process = AgentProcess {
            program,
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            paused: false,
            stop_requested: false,
            has_exited: false,
            hung: self.rng.chance(self.fault_rates.hung),
            ignores_cancel: self.rng.chance(self.fault_rates.ignores_cancel),
            sessions: BTreeMap::new(),
            known_sessions: BTreeSet::new(),
            restore_requests: BTreeMap::new(),
            prompts: BTreeMap::new(),
            open_asks: BTreeSet::new(),
            request_ids: BTreeSet::new(),
            unanswered: VecDeque::new(),
        };
        if fails {
            self.tally.count("agent starts failed");
            process.has_exited = true;
            process.outbox.push_back(exit_input(agent, "not found", false));
        } else {
            let pid = u32::try_from(agent.0).expect("few are started");
            process.outbox.push_back(Input::AgentStarted { agent, pid });
        }
        self.procs.insert(agent, process);
    }

    pub(super) fn kill_process(&mut self, agent: AgentId, status: &str) {
        let Some(process) = self.procs.get_mut(&agent).filter(|it| !it.has_exited) else { return };
        process.has_exited = true;
        process.inbox.clear();
        process.sessions.values_mut().for_each(|it| it.turn = None);
        process.outbox.push_back(exit_input(agent, status, true));
    }

    /// Runs one step of one process.
    pub(super) fn run_some_agent(&mut self) {
        let alive: Vec<AgentId> =
            self.procs.iter().filter(|(_, it)| !it.has_exited).map(|(&id, _)| id).collect();
        if alive.is_empty() {
            return;
        }
        let agent = self.rng.pick(&alive);
        self.run_agent(agent);
    }

    pub(super) fn run_agent(&mut self, agent: AgentId) {
        let Some(process) = self.procs.get(&agent) else { return };
        let (is_stopping, hung) = (process.stop_requested, process.hung);
        let (reads, works) = (!process.inbox.is_empty(), process.has_open_turn());
        if is_stopping && self.rng.chance(40) {
            return self.kill_process(agent, "signal 15 (TERM)");
        }
        if self.rng.chance_per_ten_thousand(self.fault_rates.exit) {
            self.tally.count("agent exits");
            return self.kill_process(agent, "exit status 1");
        }
        if self.rng.chance_per_ten_thousand(self.fault_rates.exit / 4) {
            self.procs.get_mut(&agent).expect("found above").hung = true;
            self.tally.count("agent hangs");
        }
        if hung {
            return;
        }
        match self.rng.below(10) {
            0..=4 if reads => self.read_frame(agent),
            5..=6 => self.answer_request(agent),
            _ if works => self.continue_turn(agent),
            _ if reads => self.read_frame(agent),
            9 if !self.faults_stopped => self.send_outside_turn(agent),
            _ => self.answer_request(agent),
        }
    }

    pub(super) fn send_from_agent(&mut self, agent: AgentId, text: String) {
        let frame = Frame::parse(text.into()).expect("simulated agents send valid frames");
        let process = self.procs.get_mut(&agent).expect("the process runs");
        process.outbox.push_back(Input::AgentSpoke { agent, frame });
    }

    fn read_frame(&mut self, agent: AgentId) {
        let process = self.procs.get_mut(&agent).expect("the caller found it");
        let Some(frame) = process.inbox.pop_front() else { return };
        match frame.kind() {
            Kind::Request => self.on_request(agent, &frame),
            Kind::Notification => {
                let stops = match frame.method().as_deref() {
                    Some("session/cancel") => !process.ignores_cancel,
                    Some("$/cancel_request") => self.rng.chance(50),
                    _ => false,
                };
                let process = self.procs.get_mut(&agent).expect("found above");
                let agent_session = frame.session_id().map(|it| AgentSessionId::from(&*it));
                for (name, session_state) in process.sessions.iter_mut().filter(|_| stops) {
                    let named = agent_session.as_ref().is_none_or(|it| it == name);
                    let is_named = |it: &&mut AgentTurn| {
                        named && frame.request_id().is_none_or(|request| request == it.id)
                    };
                    if let Some(turn) = session_state.turn.as_mut().filter(is_named) {
                        turn.cancelled = true;
                    }
                }
            }
            Kind::Response => {
                let mark = markers::number_after(frame.id().unwrap_or("").as_bytes(), "q-");
                process.open_asks.remove(&mark.unwrap_or(0));
            }
        }
    }

    fn on_request(&mut self, agent: AgentId, frame: &Frame) {
        let id = frame.id().expect("a request has an id").to_owned();
        match frame.method().as_deref() {
            Some("initialize") => self.on_initialize(agent, &id),
            Some("session/new") => self.on_new(agent, &id, frame),
            Some("session/load" | "session/resume") => self.on_restore(agent, &id, frame),
            Some("session/prompt") => {
                let token = markers::find_prompt(frame.bytes()).expect("prompts are marked");
                let remaining = self.rng.below(9);
                let agent_session = frame.session_id().expect("a prompt names its session");
                let process = self.procs.get_mut(&agent).expect("the process runs");
                let Some(session_state) =
                    process.sessions.get_mut(&*agent_session).filter(|it| !it.is_fake)
                else {
                    process.sessions.remove(&*agent_session);
                    return self.send_from_agent(
                        agent,
                        error_response_with_code(&id, -32002, "no such session", token),
                    );
                };
                session_state.turn = Some(AgentTurn { id, token, remaining, cancelled: false });
            }
            Some("session/close") => {
                let agent_session = frame.session_id().expect("it names a session");
                self.tally.count("sessions closed in their process");
                let process = self.procs.get_mut(&agent).expect("the process runs");
                process.sessions.remove(&*agent_session);
                self.send_from_agent(
                    agent,
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
                );
            }
            _ => {
                let process = self.procs.get_mut(&agent).expect("the process runs");
                process.unanswered.push_back(frame.clone());
            }
        }
    }

    fn on_initialize(&mut self, agent: AgentId, id: &str) {
        if self.rng.chance(self.fault_rates.refuses / 4) {
            self.tally.count("initialize refused");
            return self.send_from_agent(agent, error_response(id, 0));
        }
        let (_, load, resume) = PROGRAMS[self.procs[&agent].program];
        let resume = if resume { r#"{"resume":{},"close":{}}"# } else { "{}" };
        self.send_from_agent(agent, format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":1,"agentCapabilities":{{"loadSession":{load},"sessionCapabilities":{resume}}}}}}}"#
        ));
    }

    fn on_new(&mut self, agent: AgentId, id: &str, frame: &Frame) {
        let token = markers::find_token(frame.bytes()).unwrap_or(0);
        self.next_mark += 1;
        let name: AgentSessionId = format!("g-{}", self.next_mark).into();
        let program = self.procs[&agent].program;
        self.stored_sessions[program].insert(name.clone());
        if self.rng.chance(self.fault_rates.refuses) {
            self.tally.count("session/new refused");
            return self.send_from_agent(agent, error_response(id, token));
        }
        self.add_session(agent, id, name.clone());
        if self.rng.chance(40) {
            for _ in 0..=self.rng.below(2) {
                self.tally.count("early updates");
                self.send_update(agent, &name, false);
            }
        }
        self.send_from_agent(agent, format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"sessionId":"{name}","modes":{{"currentModeId":"ask"}},"token":{token}}}}}"#
        ));
    }

    fn on_restore(&mut self, agent: AgentId, id: &str, frame: &Frame) {
        let name = frame.session_id().expect("it names a session").into_owned();
        let program = self.procs[&agent].program;
        if self.rng.chance(self.fault_rates.session_lost) {
            self.stored_sessions[program].remove(name.as_str());
        }
        let known = self.stored_sessions[program].contains(name.as_str());
        let is_fake = !known && self.rng.chance(self.fault_rates.false_restore);
        if (!known && !is_fake) || self.rng.chance(self.fault_rates.refuses) {
            self.tally.count("load or resume refused");
            let code = self.rng.pick(&[-32603, -32002, -32602]);
            let why = self.rng.pick(&["no", "no such session", "the session is locked"]);
            return self.send_from_agent(agent, error_response_with_code(id, code, why, 0));
        }
        let name: AgentSessionId = name.into();
        self.add_session(agent, id, name.clone());
        let mut has_replayed = false;
        self.session_state(agent, &name).is_fake = is_fake;
        let loads = frame.method().as_deref() == Some("session/load");
        if loads && !is_fake {
            for _ in 0..self.rng.below(4) {
                self.tally.count("replayed updates");
                has_replayed |= self.send_update(agent, &name, true);
            }
        }
        self.session_state(agent, &name).may_replay = loads && !has_replayed;
        let result = self.rng.pick(&["null", "{}", r#"{"modes":{"currentModeId":"code"}}"#]);
        self.send_from_agent(agent, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    fn add_session(&mut self, agent: AgentId, request: &str, name: AgentSessionId) {
        let process = self.procs.get_mut(&agent).expect("the process runs");
        let session_state =
            AgentSession { opening_request: Some(request.into()), ..AgentSession::default() };
        process.known_sessions.insert(name.clone());
        process.sessions.insert(name, session_state);
    }

    fn session_state(&mut self, agent: AgentId, agent_session: &str) -> &mut AgentSession {
        let process = self.procs.get_mut(&agent).expect("the process runs");
        process.sessions.get_mut(agent_session).expect("the process has the session")
    }

    /// Picks one of the sessions that match.
    pub(super) fn pick_session(
        &mut self,
        agent: AgentId,
        is_so: impl Fn(&AgentSession) -> bool,
    ) -> Option<AgentSessionId> {
        let sessions = self.procs[&agent].sessions.iter().filter(|(_, it)| is_so(it));
        let names: Vec<AgentSessionId> = sessions.map(|(name, _)| name.clone()).collect();
        (!names.is_empty()).then(|| names[self.rng.index(names.len())].clone())
    }

    /// Answers a request that was read earlier.
    fn answer_request(&mut self, agent: AgentId) {
        let process = self.procs.get_mut(&agent).expect("the caller found it");
        let Some(frame) = process.unanswered.pop_front() else { return };
        let id = frame.id().expect("a request has an id");
        let token = markers::find_token(frame.bytes()).unwrap_or(0);
        if self.rng.chance(10) {
            return self.send_from_agent(agent, error_response(id, token));
        }
        let named = frame.session_id().filter(|_| self.rng.chance(20));
        let named = named.map(|it| format!(r#""sessionId":"{it}","#)).unwrap_or_default();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{named}"token":{token}}}}}"#);
        self.send_from_agent(agent, text);
    }
}

fn exit_input(agent: AgentId, status: &str, started: bool) -> Input {
    let exit =
        Exit { status: status.to_owned(), stderr: "oh no".to_owned(), started, shortage: false };
    Input::AgentGone { agent, exit }
}

pub(super) fn error_response(id: &str, token: u64) -> String {
    error_response_with_code(id, -32000, "no", token)
}

fn error_response_with_code(id: &str, code: i64, why: &str, token: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{why}","data":{{"token":{token}}}}}}}"#
    )
}
