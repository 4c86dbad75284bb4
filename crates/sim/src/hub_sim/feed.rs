//! Between the hub and its world: what goes in is noted, what comes out is checked and carried out.

use super::{
    World,
    check::{self, Hearing, Kind, Try, hold},
    copy::Copying,
    disk::FOR_THE_HUB,
    peek,
};
use bytes::Bytes;
use jackfield_events::{AgentSessionId, EventBody, SessionEvent, TurnStarted};
use jackfield_hub::{AgentId, ConnId, Input, Note, Output, SessionId};
use jackfield_protocol::{self as wire, Frame};

impl World {
    /// One input, then everything the hub says to it.
    pub(super) fn feed(&mut self, input: Input) {
        self.trace.input(self.now, &input);
        self.before(&input);
        self.wakes.now = self.now;
        let answered = match &input {
            Input::AgentSpoke { agent, frame } if frame.result().is_some() => {
                Some((*agent, frame.clone()))
            }
            _ => None,
        };
        let tried = self.tried_by(&input);
        self.hub.handle(self.now, input);
        if let Some((agent, frame)) = answered {
            self.begins_to_serve(agent, &frame);
        }
        self.drain_after(tried.as_ref());
    }

    pub(super) fn drain(&mut self) {
        self.drain_after(None);
    }

    fn drain_after(&mut self, tried: Option<&Try>) {
        while let Some(output) = self.hub.poll_output() {
            self.trace.output(self.now, &output);
            if let Some(tried) = tried {
                tried.touches_nothing(&output);
            }
            self.carry_out(output);
        }
        self.after_each_step();
    }

    /// What an input makes true.
    fn before(&mut self, input: &Input) {
        match input {
            Input::ClientSpoke { conn, frame } => self.before_request(*conn, frame),
            Input::ClientWrote { conn, bytes } => {
                let it = self.conns.get_mut(conn).expect("open until it is gone");
                it.unwritten -= bytes;
            }
            Input::ClientGone { conn } => drop(self.conns.remove(conn)),
            Input::AgentSpoke { agent, frame } => self.before_words(*agent, frame),
            Input::AgentGone { agent, .. } => {
                self.note_end(*agent);
                self.asks.on_agent_gone(*agent);
                self.wakes.on_agent_gone(*agent);
                self.procs.remove(agent);
            }
            Input::Durable { session, upto } => {
                if let Some(stream) = self.disk.streams.get_mut(session) {
                    stream.acked = upto.0;
                }
            }
            Input::AppendFailed { session, why } => {
                self.tally.count("appends failed");
                if *why == jackfield_hub::AppendFailure::Fenced {
                    self.tally.count("sessions fenced");
                    self.on_fenced(session);
                }
            }
            _ => {}
        }
    }

    /// Another hub has the session: for good, or until it is adopted.
    fn on_fenced(&mut self, session: &SessionId) {
        let written = self.disk.streams.get(session).is_some_and(|it| 0 < it.durable());
        let heard_of = self.known.contains(session);
        if written && (!heard_of || self.rng.chance(60)) {
            self.is_taken_away(session);
        } else {
            self.forget_session(session);
        }
    }

    /// The hub takes a request: what it is about, and how far the log reaches, is fixed now.
    fn before_request(&mut self, conn: ConnId, frame: &Frame) {
        if frame.kind() == wire::Kind::Response {
            let id = frame.id().and_then(|it| it.parse::<u64>().ok());
            let mark = id.and_then(|it| self.conns[&conn].issued.get(&it));
            if mark.is_some_and(|it| self.asks.is_settled(*it)) {
                self.tally.count("asks raced");
            }
        }
        if frame.kind() != wire::Kind::Request {
            return;
        }
        let id = frame.id().and_then(|it| it.parse::<u64>().ok()).expect("ids are numbers here");
        let it = self.conns.get_mut(&conn).expect("open until it is gone");
        let request = it.open.get_mut(&id).expect("noted when it was sent");
        request.delivered = true;
        let Some(session) = request.session.clone() else { return };
        if self.is_strange(conn, &session) {
            return;
        }
        let it = self.conns.get_mut(&conn).expect("open until it is gone");
        let request = it.open.get_mut(&id).expect("noted when it was sent");
        if request.kind == Kind::Prompt {
            let (token, number) = (request.token, request.number);
            let over = self.before_prompt(&session, token, number);
            let it = self.conns.get_mut(&conn).expect("open until it is gone");
            it.open.get_mut(&id).expect("found above").over = over;
            if !over {
                it.prompted.insert(session);
            }
            return;
        }
        if self.is_too_late(&session) {
            return;
        }
        let it = self.conns.get_mut(&conn).expect("open until it is gone");
        let request = it.open.get_mut(&id).expect("noted when it was sent");
        if request.kind == Kind::Release {
            it.prompted.insert(session.clone());
            let only = peek::number_after(frame.bytes(), "\"prompt\":");
            if 0 < self.queues.on_release(&session, request.token, only) {
                self.tally.count("prompts released");
            }
        }
        let prompts = it.prompts_in(&session) || it.opens();
        let request = it.open.get_mut(&id).expect("found above");
        let Some(stream) = self.disk.streams.get(&session) else { return };
        let from = match request.kind {
            Kind::Load => 0,
            Kind::Resume => stream.acked,
            Kind::Attach => {
                peek::number_after(frame.bytes(), "\"after\":").unwrap_or(0).min(stream.acked)
            }
            _ => return,
        };
        request.follows = stream.head;
        // Who was attached before may still hear what it was asked then.
        let observes = !it.hearings.contains_key(&session)
            && !prompts
            && peek::contains(frame.bytes(), "\"observe\":true");
        request.before = (it.hearings.get(&session).copied(), it.observes.get(&session).copied());
        it.observes.insert(session.clone(), observes);
        let fresh = Hearing { heard: from, loose: prompts };
        let hearing = it.hearings.entry(session).or_insert(fresh);
        hearing.heard = hearing.heard.min(from);
    }

    /// The hub hears an agent: what it takes from an agent that serves must come to be written.
    fn before_words(&mut self, agent: AgentId, frame: &Frame) {
        self.facts.heard += 1;
        let now = self.facts.heard;
        self.wakes.on_heard(agent, frame);
        if frame.kind() == wire::Kind::Response {
            return self.before_answer(agent, frame, now);
        }
        let Some(mark) = peek::mark(frame.bytes()) else { return };
        let Some(word) = self.facts.words.get_mut(&mark) else { return };
        word.heard = now;
        let (theirs, replay) = (word.theirs.clone(), word.replay);
        let process = &self.procs[&agent];
        let room = process.rooms.get(&theirs);
        let there = room.is_some_and(|it| it.bound && !it.may_retell) && !process.stop_asked;
        if there && !replay && self.serves(agent, &theirs) {
            self.facts.owed.insert(mark);
        }
    }

    /// The hub has heard an answer: if it was the one that gives it a session, then what was said
    /// there early counts from now on.
    fn begins_to_serve(&mut self, agent: AgentId, frame: &Frame) {
        let Some(process) = self.procs.get(&agent).filter(|it| !it.stop_asked) else { return };
        let mut rooms = process.rooms.iter();
        let opens = rooms.find(|(_, it)| it.opening.as_deref() == frame.id());
        let latest =
            |it: &AgentSessionId| process.asked.get(it).is_none_or(|it| Some(&**it) == frame.id());
        let theirs = opens.map(|(it, _)| it.clone()).filter(latest);
        // A session that wakes under a new name is served when its settings are set again.
        if let Some(theirs) = theirs.filter(|it| self.serves(agent, it)) {
            self.serves_from_now_on(agent, &theirs, frame.session_id().is_some());
        }
    }

    /// Under a `new` name nothing was said that the hub did not want to hear.
    fn serves_from_now_on(&mut self, agent: AgentId, theirs: &AgentSessionId, new: bool) {
        let room = self.procs.get_mut(&agent).and_then(|it| it.rooms.get_mut(theirs));
        let Some(room) = room.filter(|it| !it.bound) else { return };
        room.bound = true;
        if !new {
            return;
        }
        let speaker = (self.lives, agent);
        let facts = &mut self.facts;
        let said = facts.words.iter();
        let early = said.filter(|(_, it)| it.speaker == speaker && it.theirs == *theirs);
        let early = early.filter(|(_, it)| it.heard != 0 && !it.replay && it.seq.is_none());
        let early: Vec<u64> = early.map(|(&mark, _)| mark).collect();
        facts.owed.extend(early);
    }

    /// An agent's answer must not overtake what the agent said before it.
    fn before_answer(&mut self, agent: AgentId, frame: &Frame, now: u64) {
        let Some(token) = peek::token(frame.bytes()) else { return };
        if let Some(prompt) = self.facts.prompts.get_mut(&token) {
            prompt.answered = now;
            if peek::contains(frame.bytes(), "\"code\":-32002") {
                self.tally.count("prompts disowned");
                prompt.disowned += 1;
            }
            self.procs.get_mut(&agent).expect("it speaks").prompts.remove(&token);
        }
        for it in self.conns.values_mut() {
            let Some(request) = it.open.values_mut().find(|it| it.token == token) else { continue };
            let stream = request.session.as_ref().and_then(|it| self.disk.streams.get(it));
            if let Some(stream) = stream.filter(|_| request.kind == Kind::Echo) {
                request.follows = stream.head;
            }
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Append { session, event, summary } => {
                self.facts.on_appended(&session, &event);
                self.check_rest(&session, &event);
                self.wakes.on_appended(&session, &event);
                let stream = self.disk.streams.entry(session).or_default();
                stream.collect(event, summary);
            }
            Output::Summarize { session, upto, summary } => {
                self.tally.count("summaries after their events");
                let stream = self.disk.streams.get_mut(&session).expect("it has events");
                check::a_summary_follows_its_events(&session, upto, stream.durable());
                stream.collect_summary(summary);
            }
            Output::Read { conn, session, after } => {
                if let Some(stream) = self.disk.streams.get_mut(&session) {
                    stream.ask_read(conn, after);
                }
            }
            Output::Delete { session } => {
                self.tally.count("sessions deleted");
                self.forget_session(&session);
            }
            Output::ToClient { conn, text } => self.told_client(conn, &text),
            Output::CloseClient { conn } => self.hang_up(conn),
            Output::Spawn { agent, launch } => {
                hold("nothing_starts_after_the_stop", !self.stopping, || {
                    format!("{agent} was started after the hub was told to stop")
                });
                self.start_process(agent, &launch.name);
            }
            Output::ToAgent { agent, text } => self.told_agent(agent, &text),
            Output::PauseAgent { agent } => {
                self.tally.count("agents paused");
                self.procs.get_mut(&agent).expect("it runs").paused = true;
            }
            Output::ResumeAgent { agent } => {
                self.procs.get_mut(&agent).expect("it runs").paused = false;
            }
            Output::StopAgent { agent, .. } => {
                let refused =
                    !self.hub.gauges().processes.iter().any(|it| u64::from(it.pid) == agent.0);
                if refused {
                    self.note_end(agent);
                }
                if let Some(process) = self.procs.get_mut(&agent) {
                    process.stop_asked = true;
                }
            }
            Output::EndTools { agent, .. } => {
                self.tally.count("tools ended after a cancel");
                assert!(self.procs.contains_key(&agent), "only an agent that runs has tools");
            }
            Output::Note(note) => self.on_note(&note),
            Output::Recall { session, after } => {
                if let Some(stream) = self.disk.streams.get_mut(&session) {
                    stream.ask_read(FOR_THE_HUB, after);
                }
            }
            Output::Serve { agent, frame, .. } => self.serve(agent, &frame),
            Output::Copy { from, upto, to, last } => {
                self.disk.copies.push(Copying::new(from, upto, to, last));
            }
            Output::StopAsked => {}
            Output::LetGone { session } => self.on_let_gone(&session),
            Output::Stopped => self.on_stopped(),
        }
    }

    /// No files here: the answer is an error, and like every answer it may come late or never.
    fn serve(&mut self, agent: AgentId, frame: &Frame) {
        self.tally.count("asks served by the hub");
        let why = "this world has no files".to_owned();
        let id = frame.id().expect("a request has an id");
        let frame = Frame::error_for(id, &wire::Fault::Internal { why });
        if let Some(process) = self.procs.get_mut(&agent).filter(|it| !it.dead) {
            process.outbox.push_back(Input::Served { agent, frame });
        }
    }

    fn tally_waiting(&mut self, event: &SessionEvent) {
        self.tally.count(match &event.body {
            EventBody::Queued(_) => "prompts queued",
            EventBody::Withdrawn(_) => "prompts withdrawn",
            EventBody::Prompted(TurnStarted { prompt: Some(_), frame, .. }) => {
                if peek::contains(frame.bytes(), "\"steer\":true") {
                    "prompts steered"
                } else {
                    "prompts run after a wait"
                }
            }
            _ => return,
        });
    }

    fn on_note(&mut self, note: &Note) {
        let what = match note {
            Note::SessionOpened { .. } => "sessions opened",
            Note::SessionWoke { session, agent, rung } => {
                let theirs = self.hub.session(session).map(|it| it.agent_session.clone());
                let key = (*agent, theirs.expect("the hub knows whom it woke"));
                self.wakes.on_woke(session, &key, rung);
                self.serves_from_now_on(key.0, &key.1, true);
                match *rung {
                    "resumed" => "sessions resumed",
                    "reloaded" => "sessions reloaded",
                    _ => "sessions reseeded",
                }
            }
            Note::ClientBehind { .. } => "clients fell behind",
            Note::AppendRetried { .. } => "appends retried",
            Note::TurnEnded { how: "stopped", .. } => "turns stopped",
            Note::TurnEnded { how: "failed", .. } => "turns failed",
            Note::TurnEnded { .. } => "turns interrupted",
            Note::Unclaimed { .. } => "words that were nobody's",
            _ => return,
        };
        self.tally.count(what);
    }

    /// A session is deleted or another's: nobody hears of it any more.
    fn forget_session(&mut self, session: &SessionId) {
        self.facts.forget(session);
        self.queues.forget(session);
        self.wakes.forget(session);
        self.fleet.forget(session);
        self.disk.streams.remove(session);
        for it in self.conns.values_mut() {
            it.hearings.remove(session);
        }
        for client in &mut self.clients {
            client.cursors.remove(session);
            client.again.retain(|(it, _)| it != session);
        }
    }

    fn told_agent(&mut self, agent: AgentId, text: &Bytes) {
        let frame = Frame::parse(text.clone()).expect("the hub speaks JSON-RPC");
        if !self.procs.contains_key(&agent) {
            return; // It ended; the edge ignores this.
        }
        self.agents_see_their_own_names(agent, &frame);
        match (frame.kind(), frame.method().as_deref()) {
            (wire::Kind::Response, _) => {
                let id = frame.id().expect("a response has an id");
                self.asks.the_agent_hears_one_answer(agent, id, text);
            }
            (_, Some("session/prompt")) => {
                self.a_prompt_reaches_an_agent_once(agent, &frame);
                let theirs = frame.session_id().unwrap_or_default().as_ref().into();
                self.who_wakes_is_who_slept(agent, &theirs);
                let session = self.facts.names.get(&*theirs);
                self.wakes.on_prompted(&(agent, theirs), session, &frame);
            }
            (_, Some("session/load" | "session/resume" | "session/close")) => {
                let theirs = frame.session_id().unwrap_or_default();
                let process = self.procs.get_mut(&agent).expect("seen above");
                process.known.insert(theirs.as_ref().into());
                let id = frame.id().expect("a request has an id");
                process.asked.insert(theirs.as_ref().into(), id.into());
                process.forget_prompts(&theirs);
                // It may have it still; what it says before it answers is of the past.
                if let Some(room) = process.rooms.get_mut(&*theirs) {
                    room.bound = false;
                }
            }
            (_, Some("session/set_mode")) => self.note_mode(agent, &frame),
            (_, Some("$/cancel_request")) => self.a_cancel_follows_its_request(agent, &frame),
            (_, Some("session/cancel")) => {
                self.a_cancel_is_written_before_it_is_heard(agent, &frame);
            }
            _ => {}
        }
        let token = peek::token(frame.bytes());
        let opens = |it: &check::Request| it.kind == Kind::New && Some(it.token) == token;
        let opening = self.conns.values().flat_map(|it| it.open.values()).any(opens);
        self.wakes.on_told(agent, &frame, !opening);
        let process = self.procs.get_mut(&agent).expect("seen above");
        // What it is answered meanwhile says nothing about the session.
        // A request about no session says nothing of whether the hub still listens.
        let of_session = frame.kind() == wire::Kind::Request && frame.session_id().is_some();
        let theirs = frame.session_id().filter(|_| of_session);
        if let Some(room) = theirs.and_then(|it| process.rooms.get_mut(&*it)) {
            room.may_retell = false;
        }
        process.requests.extend(frame.id().filter(|_| frame.method().is_some()).map(Into::into));
        if !process.dead {
            process.inbox.push_back(frame);
        }
    }

    /// Events that became durable.
    pub(super) fn landed(&mut self, session: &SessionId, events: &[SessionEvent]) {
        for event in events {
            self.facts.on_landed(session, event);
            self.queues.on_landed(session, event);
            self.tally_waiting(event);
            match self.asks.on_landed(session, &event.body) {
                Some(check::Ended::Ruled) => self.tally.count("asks answered by a rule"),
                Some(check::Ended::Chosen) => self.tally.count("asks answered"),
                Some(check::Ended::Void) => self.tally.count("asks voided"),
                None => {}
            }
        }
    }
}
