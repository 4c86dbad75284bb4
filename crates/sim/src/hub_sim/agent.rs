//! Simulated agents: small ACP programs that talk early, talk late, ask, refuse, fall silent and die.

use super::{
    World,
    check::{What, Word},
    habits::RULED,
    peek,
};
use bytes::Bytes;
use jackfield_events::AgentSessionId;
use jackfield_hub::{AgentId, Exit, Input};
use jackfield_protocol::{Frame, Kind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The programs of this world: their names, and what they announce.
pub(super) const PROGRAMS: &[(&str, bool, bool)] = &[
    ("both", true, true),
    ("loads", true, false),
    ("resumes", false, true),
    ("forgets", false, false),
];

/// One agent process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each can be so or not, whatever the others are")]
pub(super) struct Process {
    pub(super) program: usize,
    /// Said to it and not yet read by it.
    pub(super) inbox: VecDeque<Frame>,
    /// Said by it and not yet read by the hub; ends with its death.
    pub(super) outbox: VecDeque<Input>,
    pub(super) paused: bool,
    pub(super) stop_asked: bool,
    pub(super) dead: bool,
    /// Reads nothing any more.
    pub(super) deaf: bool,
    ignores_cancel: bool,
    /// Its sessions, by its own names for them.
    pub(super) rooms: BTreeMap<AgentSessionId, Room>,
    /// What it was asked for, had and has lost: requests that waited for the journal may still name
    /// it.
    pub(super) known: BTreeSet<AgentSessionId>,
    /// The last request for each of them: the answer to an earlier one says nothing.
    pub(super) asked: BTreeMap<AgentSessionId, Box<str>>,
    /// The prompts the hub has sent and the hub has not heard answered, each with its session.
    pub(super) prompts: BTreeMap<u64, AgentSessionId>,
    asks: BTreeSet<u64>,
    /// The ids of all requests the hub has sent.
    pub(super) requests: BTreeSet<Box<str>>,
    /// Requests it has read and not answered.
    pub(super) duties: VecDeque<Frame>,
}

/// A session as its process has it.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The request that it answers to say that it serves.
    pub(super) opening: Option<Box<str>>,
    /// The hub has heard it say that it serves.
    pub(super) bound: bool,
    pub(super) turn: Option<Turn>,
    /// It says that it has the session and has none: its first prompt shows it.
    pretends: bool,
    /// It was asked to load and has told nothing: what it says next may be of the past.
    pub(super) may_retell: bool,
}

#[derive(Debug)]
pub(super) struct Turn {
    id: String,
    token: u64,
    left: u64,
    cancelled: bool,
}

impl Process {
    /// Whether it could still do something by itself.
    pub(super) fn is_busy(&self) -> bool {
        !self.dead
            && (self.stop_asked
                || (!self.deaf
                    && (!self.inbox.is_empty() || self.works() || !self.duties.is_empty())))
    }

    fn works(&self) -> bool {
        self.rooms.values().any(|it| it.turn.is_some())
    }

    /// The hub has let go of a session: what it was prompted there is nobody's.
    pub(super) fn forget_prompts(&mut self, theirs: &str) {
        self.prompts.retain(|_, it| &**it != theirs);
    }
}

impl World {
    pub(super) fn start_process(&mut self, agent: AgentId, program: &str) {
        let program = PROGRAMS.iter().position(|it| it.0 == program).expect("a known program");
        let broken = program == self.habits.favourite() && self.rng.chance(self.temper.broken);
        let fails = broken || self.rng.chance(self.temper.refuses / 4);
        let mut process = Process {
            program,
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            paused: false,
            stop_asked: false,
            dead: false,
            deaf: self.rng.chance(self.temper.deaf),
            ignores_cancel: self.rng.chance(self.temper.ignores_cancel),
            rooms: BTreeMap::new(),
            known: BTreeSet::new(),
            asked: BTreeMap::new(),
            prompts: BTreeMap::new(),
            asks: BTreeSet::new(),
            requests: BTreeSet::new(),
            duties: VecDeque::new(),
        };
        if fails {
            self.tally.count("agent could not start");
            process.dead = true;
            process.outbox.push_back(gone(agent, "not found", false));
        } else {
            let pid = u32::try_from(agent.0).expect("few are started");
            process.outbox.push_back(Input::AgentStarted { agent, pid });
        }
        self.procs.insert(agent, process);
    }

    pub(super) fn kill(&mut self, agent: AgentId, status: &str) {
        let Some(process) = self.procs.get_mut(&agent).filter(|it| !it.dead) else { return };
        process.dead = true;
        process.inbox.clear();
        process.rooms.values_mut().for_each(|it| it.turn = None);
        process.outbox.push_back(gone(agent, status, true));
    }

    /// One process does one thing.
    pub(super) fn agent_acts(&mut self) {
        let alive: Vec<AgentId> =
            self.procs.iter().filter(|(_, it)| !it.dead).map(|(&id, _)| id).collect();
        if alive.is_empty() {
            return;
        }
        let agent = self.rng.pick(&alive);
        self.act(agent);
    }

    pub(super) fn act(&mut self, agent: AgentId) {
        let Some(process) = self.procs.get(&agent) else { return };
        let (stops, deaf) = (process.stop_asked, process.deaf);
        let (reads, works) = (!process.inbox.is_empty(), process.works());
        if stops && self.rng.chance(40) {
            return self.kill(agent, "signal 15 (TERM)");
        }
        if self.rng.rarely(self.temper.die) {
            self.tally.count("agent died by itself");
            return self.kill(agent, "exit status 1");
        }
        if self.rng.rarely(self.temper.die / 4) {
            self.procs.get_mut(&agent).expect("found above").deaf = true;
            self.tally.count("agent fell silent");
        }
        if deaf {
            return;
        }
        match self.rng.below(10) {
            0..=4 if reads => self.read_inbox(agent),
            5..=6 => self.do_duty(agent),
            _ if works => self.work(agent),
            _ if reads => self.read_inbox(agent),
            9 if !self.calm => self.talk_idly(agent),
            _ => self.do_duty(agent),
        }
    }

    fn say(&mut self, agent: AgentId, text: String) {
        let frame = Frame::parse(text.into()).expect("agents of this world speak JSON-RPC");
        let process = self.procs.get_mut(&agent).expect("only processes speak");
        process.outbox.push_back(Input::AgentSpoke { agent, frame });
    }

    fn read_inbox(&mut self, agent: AgentId) {
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
                let theirs = frame.session_id().map(|it| AgentSessionId::from(&*it));
                for (name, room) in process.rooms.iter_mut().filter(|_| stops) {
                    let named = theirs.as_ref().is_none_or(|it| it == name);
                    let is_it = |it: &&mut Turn| {
                        named && frame.request_id().is_none_or(|request| request == it.id)
                    };
                    if let Some(turn) = room.turn.as_mut().filter(is_it) {
                        turn.cancelled = true;
                    }
                }
            }
            Kind::Response => {
                let mark = peek::number_after(frame.id().unwrap_or("").as_bytes(), "q-");
                process.asks.remove(&mark.unwrap_or(0));
            }
        }
    }

    fn on_request(&mut self, agent: AgentId, frame: &Frame) {
        let id = frame.id().expect("a request has an id").to_owned();
        match frame.method().as_deref() {
            Some("initialize") => self.on_hello(agent, &id),
            Some("session/new") => self.on_new(agent, &id, frame),
            Some("session/load" | "session/resume") => self.on_back(agent, &id, frame),
            Some("session/prompt") => {
                let token = peek::prompt(frame.bytes()).expect("prompts are marked");
                let left = self.rng.below(9);
                let theirs = frame.session_id().expect("a prompt names its session");
                let process = self.procs.get_mut(&agent).expect("it reads");
                let Some(room) = process.rooms.get_mut(&*theirs).filter(|it| !it.pretends) else {
                    process.rooms.remove(&*theirs);
                    return self.say(agent, refusal(&id, -32002, "no such session", token));
                };
                room.turn = Some(Turn { id, token, left, cancelled: false });
            }
            Some("session/close") => {
                let theirs = frame.session_id().expect("it names a session");
                self.tally.count("sessions closed in their process");
                let process = self.procs.get_mut(&agent).expect("it reads");
                process.rooms.remove(&*theirs);
                self.say(agent, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
            }
            _ => {
                let process = self.procs.get_mut(&agent).expect("it reads");
                process.duties.push_back(frame.clone());
            }
        }
    }

    fn on_hello(&mut self, agent: AgentId, id: &str) {
        if self.rng.chance(self.temper.refuses / 4) {
            self.tally.count("initialize refused");
            return self.say(agent, error(id, 0));
        }
        let (_, load, resume) = PROGRAMS[self.procs[&agent].program];
        let resume = if resume { r#"{"resume":{},"close":{}}"# } else { "{}" };
        self.say(agent, format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":1,"agentCapabilities":{{"loadSession":{load},"sessionCapabilities":{resume}}}}}}}"#
        ));
    }

    fn on_new(&mut self, agent: AgentId, id: &str, frame: &Frame) {
        let token = peek::token(frame.bytes()).unwrap_or(0);
        self.next_mark += 1;
        let name: AgentSessionId = format!("g-{}", self.next_mark).into();
        let program = self.procs[&agent].program;
        self.remembered[program].insert(name.clone());
        if self.rng.chance(self.temper.refuses) {
            self.tally.count("session/new refused");
            return self.say(agent, error(id, token));
        }
        self.begin_to_serve(agent, id, name.clone());
        if self.rng.chance(40) {
            for _ in 0..=self.rng.below(2) {
                self.tally.count("early updates");
                self.say_update(agent, &name, false);
            }
        }
        self.say(agent, format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"sessionId":"{name}","modes":{{"currentModeId":"ask"}},"token":{token}}}}}"#
        ));
    }

    fn on_back(&mut self, agent: AgentId, id: &str, frame: &Frame) {
        let name = frame.session_id().expect("it names a session").into_owned();
        let program = self.procs[&agent].program;
        if self.rng.chance(self.temper.loses) {
            self.remembered[program].remove(name.as_str());
        }
        let known = self.remembered[program].contains(name.as_str());
        let pretends = !known && self.rng.chance(self.temper.lies);
        if (!known && !pretends) || self.rng.chance(self.temper.refuses) {
            self.tally.count("load or resume refused");
            let code = self.rng.pick(&[-32603, -32002, -32602]);
            let why = self.rng.pick(&["no", "no such session", "the session is locked"]);
            return self.say(agent, refusal(id, code, why, 0));
        }
        let name: AgentSessionId = name.into();
        self.begin_to_serve(agent, id, name.clone());
        let mut told = false;
        self.room(agent, &name).pretends = pretends;
        let loads = frame.method().as_deref() == Some("session/load");
        if loads && !pretends {
            for _ in 0..self.rng.below(4) {
                self.tally.count("replayed updates");
                told |= self.say_update(agent, &name, true);
            }
        }
        self.room(agent, &name).may_retell = loads && !told;
        let result = self.rng.pick(&["null", "{}", r#"{"modes":{"currentModeId":"code"}}"#]);
        self.say(agent, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    fn begin_to_serve(&mut self, agent: AgentId, request: &str, name: AgentSessionId) {
        let process = self.procs.get_mut(&agent).expect("it speaks");
        let room = Room { opening: Some(request.into()), ..Room::default() };
        process.known.insert(name.clone());
        process.rooms.insert(name, room);
    }

    fn room(&mut self, agent: AgentId, theirs: &str) -> &mut Room {
        let process = self.procs.get_mut(&agent).expect("it speaks");
        process.rooms.get_mut(theirs).expect("it serves")
    }

    /// One of its sessions of which something is true.
    fn some_room(
        &mut self,
        agent: AgentId,
        is_so: impl Fn(&Room) -> bool,
    ) -> Option<AgentSessionId> {
        let rooms = self.procs[&agent].rooms.iter().filter(|(_, it)| is_so(it));
        let names: Vec<AgentSessionId> = rooms.map(|(name, _)| name.clone()).collect();
        (!names.is_empty()).then(|| names[self.rng.index(names.len())].clone())
    }

    /// Answers something it was asked earlier.
    fn do_duty(&mut self, agent: AgentId) {
        let process = self.procs.get_mut(&agent).expect("the caller found it");
        let Some(frame) = process.duties.pop_front() else { return };
        let id = frame.id().expect("a request has an id");
        let token = peek::token(frame.bytes()).unwrap_or(0);
        if self.rng.chance(10) {
            return self.say(agent, error(id, token));
        }
        let named = frame.session_id().filter(|_| self.rng.chance(20));
        let named = named.map(|it| format!(r#""sessionId":"{it}","#)).unwrap_or_default();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{named}"token":{token}}}}}"#);
        self.say(agent, text);
    }

    /// Goes on with its turn.
    fn work(&mut self, agent: AgentId) {
        let theirs = self.some_room(agent, |it| it.turn.is_some());
        let theirs = theirs.expect("the caller saw a turn");
        let process = self.procs.get_mut(&agent).expect("the caller found it");
        let asks = !process.asks.is_empty();
        let room = process.rooms.get_mut(&theirs).expect("found above");
        let turn = room.turn.as_mut().expect("found above");
        let (id, token, cancelled) = (turn.id.clone(), turn.token, turn.cancelled);
        if cancelled || turn.left == 0 {
            if asks && !cancelled && !self.calm && self.rng.chance(80) {
                return; // It waits for a human.
            }
            room.turn = None;
            let text = match self.rng.below(10) {
                0 if !cancelled => error(&id, token),
                _ => {
                    let stop = if cancelled { "cancelled" } else { "end_turn" };
                    format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"{stop}","token":{token}}}}}"#
                    )
                }
            };
            return self.say(agent, text);
        }
        turn.left -= 1;
        match self.rng.below(10) {
            0..=5 => drop(self.say_update(agent, &theirs, false)),
            6 => self.ask(agent, &theirs, "session/request_permission"),
            7 => self.ask(agent, &theirs, "fs/read_text_file"),
            8 => {
                let method = self.rng.pick(&["x/unheard_of", "elicitation/create"]);
                self.ask(agent, &theirs, method);
            }
            _ => self.say_in_passing(agent, &theirs),
        }
    }

    fn talk_idly(&mut self, agent: AgentId) {
        let Some(theirs) = self.some_room(agent, |it| !it.pretends) else { return };
        match self.rng.below(10) {
            0..=5 => {
                self.tally.count("updates outside a turn");
                self.say_update(agent, &theirs, false);
            }
            6 => self.ask(agent, &theirs, "session/request_permission"),
            7 => self.withdraw(agent),
            _ => self.say_in_passing(agent, &theirs),
        }
    }

    /// True if it tells the conversation.
    fn say_update(&mut self, agent: AgentId, theirs: &AgentSessionId, replay: bool) -> bool {
        self.next_mark += 1;
        let mark = self.next_mark;
        let big = self.rng.chance(self.temper.big);
        let padding = if big { "x".repeat(self.rng.index(1500)) } else { String::new() };
        let update = match self.rng.below(12) {
            0 => format!(r#""sessionUpdate":"session_info_update","title":"title {mark}""#),
            1 => format!(r#""sessionUpdate":"current_mode_update","currentModeId":"m{mark}""#),
            3 => {
                let status = self.rng.pick(&["pending", "in_progress", "completed"]);
                let call = self.rng.below(3);
                format!(r#""sessionUpdate":"tool_call","toolCallId":"t{call}","status":"{status}""#)
            }
            2 => r#""sessionUpdate":"never_heard_of","odd":[1.50, {"deep":null}]"#.to_owned(),
            _ => format!(
                r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{padding}"}}"#
            ),
        };
        let meta = self.rng.pick(&["", "", "", r#""_meta":{"x":1},"#]);
        let text: Bytes = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{{meta}"sessionId":"{theirs}","update":{{{update}}},"n":{mark}}}}}"#
        )
        .into();
        let (speaker, theirs) = ((self.lives, agent), theirs.clone());
        let word = Word { text: text.clone(), theirs, speaker, replay, heard: 0, seq: None };
        self.facts.words.insert(mark, word);
        let frame = Frame::parse(text).expect("well-formed by construction");
        let process = self.procs.get_mut(&agent).expect("it speaks");
        let tells = frame.update().as_deref() == Some("agent_message_chunk");
        process.outbox.push_back(Input::AgentSpoke { agent, frame });
        tells
    }

    fn say_in_passing(&mut self, agent: AgentId, theirs: &AgentSessionId) {
        self.next_mark += 1;
        let mark = self.next_mark;
        self.passing.insert(mark, theirs.clone());
        self.say(agent, format!(
            r#"{{"jsonrpc":"2.0","method":"x/by_the_way","params":{{"sessionId":"{theirs}","n":{mark}}}}}"#
        ));
    }

    fn ask(&mut self, agent: AgentId, theirs: &AgentSessionId, method: &str) {
        self.next_mark += 1;
        let mark = self.next_mark;
        let process = self.procs.get_mut(&agent).expect("it speaks");
        process.asks.insert(mark);
        let permission = method == "session/request_permission";
        let kind = self.rng.pick(&["read", "edit", "delete", "execute"]);
        let what = match method {
            _ if permission && self.habits.rules && RULED.contains(&kind) => What::Ruled,
            _ if permission => What::Permission,
            "elicitation/create" => What::Form,
            _ => What::Passing,
        };
        self.asks.on_asked(mark, agent, theirs, what);
        let tool = format!(
            r#","toolCall":{{"toolCallId":"t-{mark}","kind":"{kind}"}},"options":[{{"optionId":"ok","kind":"allow_once"}}]"#
        );
        let options = if permission { tool.as_str() } else { "" };
        self.say(agent, format!(
            r#"{{"jsonrpc":"2.0","id":"q-{mark}","method":"{method}","params":{{"sessionId":"{theirs}","n":{mark}{options}}}}}"#
        ));
    }

    fn withdraw(&mut self, agent: AgentId) {
        let Some(mark) = self.procs[&agent].asks.first().copied() else { return };
        self.tally.count("asks withdrawn by the agent");
        self.say(agent, format!(
            r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":"q-{mark}"}}}}"#
        ));
    }
}

fn gone(agent: AgentId, status: &str, started: bool) -> Input {
    let exit =
        Exit { status: status.to_owned(), stderr: "oh no".to_owned(), started, shortage: false };
    Input::AgentGone { agent, exit }
}

fn error(id: &str, token: u64) -> String {
    refusal(id, -32000, "no", token)
}

fn refusal(id: &str, code: i64, why: &str, token: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{why}","data":{{"token":{token}}}}}}}"#
    )
}
