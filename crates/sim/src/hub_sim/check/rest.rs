//! Invariants that look at the whole world.

use super::{Kind, Listener, Request, hold};
use crate::hub_sim::{World, agent::Process, client::Connection, peek};
use jackfield_events::{AgentSessionId, EventBody, SettingChanged};
use jackfield_hub::{AgentId, ConnId, SessionId};
use jackfield_protocol::{self as wire, Frame};

/// Plain clients hear plain ACP; the agents' names for sessions stay with the agents.
pub(in crate::hub_sim) fn names_stay_on_their_side(it: &Connection, conn: ConnId, frame: &Frame) {
    let told = frame.kind() != wire::Kind::Response;
    let plain = it.aware || !told || !peek::contains(frame.bytes(), "jackfield");
    hold("plain_clients_hear_plain_acp", plain, || format!("{conn} heard {frame:?}"));
    let may_name = it.aware && frame.method().is_some_and(|it| it.starts_with("_jackfield/"));
    let named = frame.session_id().is_some_and(|it| it.starts_with("g-"));
    hold("clients_hear_the_hubs_names", !named || may_name, || format!("{conn} heard {frame:?}"));
}

impl World {
    pub(in crate::hub_sim) fn agents_see_their_own_names(&self, agent: AgentId, frame: &Frame) {
        let Some(named) = frame.session_id() else { return };
        let process = &self.procs[&agent];
        let asks = matches!(frame.method().as_deref(), Some("session/load" | "session/resume"));
        let own = named.starts_with("g-") && (asks || process.known.contains(&*named));
        hold("agents_see_their_own_names", own, || {
            format!("{agent} knows {:?} and heard {frame:?}", process.known)
        });
    }

    /// Once, alone, and only when it stands in the log.
    pub(in crate::hub_sim) fn a_prompt_reaches_an_agent_once(
        &mut self,
        agent: AgentId,
        frame: &Frame,
    ) {
        let mark = peek::prompt(frame.bytes()).expect("prompts are marked");
        let prompt = self.facts.prompts.get_mut(&mark).expect("prompts are noted when sent");
        prompt.sent += 1;
        let sent = prompt.sent;
        hold("a_prompt_reaches_an_agent_once", sent == 1 + prompt.disowned, || {
            format!("{agent} heard prompt {mark}, which was sent {sent} times")
        });
        hold("a_prompt_is_written_before_it_is_sent", prompt.prompted.is_some(), || {
            format!("{agent} heard prompt {mark}, which is not in the log")
        });
        let process = self.procs.get_mut(&agent).expect("the caller found it");
        let theirs: AgentSessionId = frame.session_id().unwrap_or_default().as_ref().into();
        let has = process.prompts.values().any(|it| *it == theirs);
        hold("a_session_has_one_prompt_at_a_time", !has, || {
            format!("{agent} heard prompt {mark} and has {:?}", process.prompts)
        });
        if process.prompts.len() == 1 {
            self.tally.count("turns side by side in one process");
        }
        process.prompts.insert(mark, theirs);
    }

    /// Save for one that only says that the hub has let go of the session.
    pub(in crate::hub_sim) fn a_cancel_is_written_before_it_is_heard(
        &mut self,
        agent: AgentId,
        frame: &Frame,
    ) {
        let theirs = frame.session_id().unwrap_or_default();
        if !self.serves(agent, &theirs) {
            self.tally.count("sessions let go while they work");
            return self.procs.get_mut(&agent).expect("it hears").forget_prompts(&theirs);
        }
        let session = self.facts.names.get(&*theirs);
        let Some(stream) = session.and_then(|it| self.disk.streams.get(it)) else { return };
        let written = stream.events.iter().any(|it| matches!(it.body, EventBody::Cancelled(_)));
        hold("a_cancel_is_written_before_it_is_heard", written, || format!("{frame:?}"));
    }

    pub(in crate::hub_sim) fn a_cancel_follows_its_request(&self, agent: AgentId, frame: &Frame) {
        let known = frame.request_id().is_some_and(|it| self.procs[&agent].requests.contains(it));
        hold("a_cancel_follows_its_request", known, || format!("{agent} heard {frame:?}"));
    }

    pub(in crate::hub_sim) fn a_session_is_written_before_it_is_heard_of(
        &self,
        session: &SessionId,
    ) {
        let written = self.disk.streams.get(session).is_some_and(|it| 0 < it.durable());
        hold("a_session_is_written_before_it_is_heard_of", written, || session.to_string());
    }

    pub(in crate::hub_sim) fn a_setting_is_written_before_it_is_heard(&self, request: &Request) {
        let session = request.session.as_ref().expect("settings are of a session");
        let Some(stream) = self.disk.streams.get(session) else { return };
        let is_it = |body: &EventBody| matches!(body, EventBody::Configured(SettingChanged { frame, .. }) if peek::token(frame.bytes()) == Some(request.token));
        let written = stream.events.iter().any(|it| is_it(&it.body));
        hold("a_setting_is_written_before_it_is_heard", written, || format!("{request:?}"));
    }

    /// An attach is answered after the replay, a prompt after its turn, a request after what the
    /// agent said before it answered.
    pub(in crate::hub_sim) fn an_answer_follows_what_came_before(
        &mut self,
        conn: ConnId,
        request: &Request,
        frame: &Frame,
    ) {
        let Some(session) = &request.session else { return };
        let mut follows = request.follows;
        // Who is told that the session has left hears nothing more of it.
        let leaves = peek::contains(frame.bytes(), "\"code\":\"fenced\"");
        let leaves = leaves || self.fleet.is_away(session);
        if request.kind == Kind::Prompt {
            let same = |it: &Request| it.kind == Kind::Prompt && it.token == request.token;
            let said_twice = self.conns.values().flat_map(|it| it.open.values()).any(same);
            let prompt = self.facts.prompts.get_mut(&request.token).expect("noted when sent");
            // What waits when the hub stops or the session leaves is kept; all else that is refused
            // is over.
            let stops = leaves || peek::contains(frame.bytes(), "\"code\":\"stopping\"");
            let waits = self.queues.waits(session, request.token);
            let refused = prompt.prompted.is_none() && !(stops && waits);
            let first = request.number == request.token;
            prompt.refused |= first && refused && !said_twice;
            let over = !waits || stops || !self.disk.streams.contains_key(session);
            hold("a_prompt_is_withdrawn_before_that_is_heard", over, || {
                format!("{conn} heard {frame:?} of a prompt that waits")
            });
            follows = prompt.ended.unwrap_or(0);
            let ended = prompt.prompted.is_none() || prompt.ended.is_some();
            let there = self.disk.streams.contains_key(session);
            hold(
                "a_prompt_is_answered_when_its_turn_is_over",
                ended || (stops && !first) || leaves || !there,
                || format!("{conn} heard {frame:?} while the turn runs"),
            );
        }
        let Some(stream) = self.disk.streams.get(session).filter(|_| !leaves) else { return };
        let it = self.conns.get_mut(&conn).expect("the caller found it");
        if request.kind == Kind::Prompt && 0 < follows && !request.over {
            // Who prompts is attached, although it may have heard nothing yet.
            it.hearings.entry(session.clone()).or_insert(super::Hearing::new(follows));
        }
        let who = Listener { conn, aware: it.aware, session };
        let refused = request.kind != Kind::Prompt && frame.error().is_some();
        let Some(hearing) = it.hearings.get(session).filter(|_| !refused) else { return };
        hold("an_answer_follows_what_came_before", follows <= stream.durable(), || {
            format!("{conn} heard {frame:?}, which follows {follows}, which is not durable")
        });
        let missed = hearing.missed(who, stream, follows);
        hold("an_answer_follows_what_came_before", missed.is_none(), || {
            format!("{conn} heard {frame:?} before event {missed:?} of {session}")
        });
    }

    pub(in crate::hub_sim) fn after_each_step(&mut self) {
        self.places_are_limited();
        self.seats_are_limited();
        self.no_tenant_has_more_than_it_may();
        // The last frame may have been large, and clients' requests are written down as well.
        let slack = 8 * 1024;
        let max = self.limits.held_bytes_max + slack;
        for (session, stream) in self.disk.streams.iter().filter(|(_, it)| max < it.held_bytes()) {
            // What a process said before it died is read to its end.
            let read = |(id, it): (&AgentId, &Process)| {
                !it.dead && !it.paused && self.served_by(*id).contains(session)
            };
            if self.procs.iter().any(read) {
                super::held_events_are_bounded(stream.held_bytes(), max);
            }
        }
    }

    /// The hub says that it has ended: nothing runs, nothing is open, nobody waits.
    pub(in crate::hub_sim) fn nothing_is_left_after_the_stop(&self) {
        let name = "nothing_is_left_after_the_stop";
        let left = self.procs.iter().find(|(_, it)| !it.stop_asked && !it.dead);
        hold(name, left.is_none(), || format!("{left:?} still runs"));
        for (id, stream) in &self.disk.streams {
            hold(name, stream.is_quiet() || stream.acked == stream.head, || {
                format!("{id} has events that are not written")
            });
            let open = self.facts.open_in(id);
            let nobodys = self.fleet.is_away(id);
            hold(name, nobodys || open == (None, 0), || {
                format!("{id} leaves {open:?} open in its log")
            });
        }
        for (&conn, it) in &self.conns {
            // Who reads slowly, or still reads the journal, is not waited for.
            let reading = self.disk.streams.values().any(|it| !it.is_quiet());
            let slow = 0 < it.unwritten || reading;
            let behind = |session: &SessionId| {
                let attaches =
                    |it: &Request| it.kind.attaches() && it.session.as_ref() == Some(session);
                let who = Listener { conn, aware: it.aware, session };
                let stream = self.disk.streams.get(session);
                let heard = it.hearings.get(session).zip(stream);
                it.open.values().any(attaches)
                    || heard.is_some_and(|(it, stream)| it.missed(who, stream, u64::MAX).is_some())
            };
            let waits = it
                .open
                .values()
                .find(|it| it.delivered && !it.session.as_ref().is_some_and(behind));
            hold(name, slow || waits.is_none(), || format!("{conn} still waits for {waits:?}"));
        }
    }

    /// Trouble has stopped: everyone has caught up and everything is answered.
    pub(in crate::hub_sim) fn everyone_catches_up(&self) {
        for (&conn, it) in &self.conns {
            let waits = it.open.iter().next();
            hold("every_request_is_answered_in_the_end", waits.is_none(), || {
                format!("{conn} still waits for {waits:?}")
            });
            for (session, hearing) in &it.hearings {
                let Some(stream) = self.disk.streams.get(session) else { continue };
                let who = Listener { conn, aware: it.aware, session };
                let missed = hearing.missed(who, stream, u64::MAX);
                hold("everyone_catches_up", missed.is_none(), || {
                    format!("{conn} never heard event {missed:?} of {session}")
                });
            }
        }
        self.queues.nothing_waits_for_ever();
        let unwritten = self.facts.owed.first();
        hold("no_word_is_lost", unwritten.is_none(), || {
            let text = unwritten.map(|it| &self.facts.words[it].text);
            format!("update {text:?} was heard and never written")
        });
        let open = self.asks.open().find(|(_, agent, it)| self.has_listeners(*agent, it));
        hold("every_ask_is_answered_in_the_end", open.is_none(), || format!("{open:?}"));
    }

    /// Whether somebody is there who could answer an agent's ask.
    fn has_listeners(&self, agent: AgentId, theirs: &str) -> bool {
        let session = self.facts.names.get(theirs).filter(|_| self.serves(agent, theirs));
        let hears = |it: &Connection| {
            session.is_some_and(|it_id| it.hearings.contains_key(it_id)) && !it.finished
        };
        self.conns.values().any(hears)
    }

    /// Every process serves a session that is there and open, or waits for a client that is there;
    /// and no session has two.
    pub(in crate::hub_sim) fn no_process_is_left_over(&self) {
        let name = "no_process_is_left_over";
        let mut spare = 0;
        let runs = |it: &Process| !it.stop_asked && !it.dead;
        for (agent, process) in self.procs.iter().filter(|(_, it)| runs(it)) {
            let served =
                process.rooms.iter().filter(|(it, room)| room.bound && self.serves(*agent, it));
            let served: Vec<&AgentSessionId> = served.map(|(it, _)| it).collect();
            spare += usize::from(self.served_by(*agent).is_empty());
            for theirs in served {
                let session = self.facts.names.get(theirs);
                let stream = session.and_then(|it| self.disk.streams.get(it));
                let closed = stream.and_then(|it| it.events.last());
                let closed = closed.is_none_or(|it| matches!(it.body, EventBody::Closed));
                hold(name, !closed, || {
                    format!("{agent} runs for {theirs} ({session:?}), which is closed or gone")
                });
                let twins =
                    self.procs.iter().filter(|(id, it)| runs(it) && self.serves(**id, theirs));
                let twins = twins.count();
                hold(name, twins == 1, || format!("{twins} serve {theirs}"));
            }
        }
        hold(name, spare <= self.conns.len(), || {
            format!("{spare} processes wait for {} clients", self.conns.len())
        });
    }

    /// What is said in one session is heard in no other, however many a process serves.
    pub(in crate::hub_sim) fn words_stay_in_their_session(
        &self,
        theirs: &AgentSessionId,
        frame: &Frame,
    ) {
        let (of, heard) = (self.facts.names.get(theirs), frame.session_id());
        let same = of.is_none_or(|it| heard.as_deref() == Some(it));
        hold("words_stay_in_their_session", same, || {
            format!("{frame:?} was said in {theirs}, which is {of:?}")
        });
    }

    /// What the hub says that a process serves.
    fn served_by(&self, agent: AgentId) -> Vec<SessionId> {
        let processes = self.hub.gauges().processes.into_iter();
        let its = processes.filter(|it| u64::from(it.pid) == agent.0);
        its.flat_map(|it| it.sessions).collect()
    }

    /// The same by the process's name for it.
    pub(in crate::hub_sim) fn serves(&self, agent: AgentId, theirs: &str) -> bool {
        let name = |it: &SessionId| self.hub.session(it).map(|it| it.agent_session.clone());
        self.served_by(agent).iter().any(|it| name(it).as_deref() == Some(theirs))
    }

    /// No process serves more sessions than it may; and whom the hub has let go of it serves no more.
    fn seats_are_limited(&mut self) {
        let max = self.habits.seats;
        for process in self.hub.gauges().processes {
            hold("a_process_serves_no_more_than_it_may", process.sessions.len() <= max, || {
                format!("{process:?} and {max} are allowed")
            });
            let named = |it: &SessionId| self.hub.session(it).map(|it| it.agent_session.clone());
            let served: Vec<AgentSessionId> = process.sessions.iter().filter_map(named).collect();
            let rooms = self.procs.get_mut(&AgentId(process.pid.into())).map(|it| &mut it.rooms);
            for (theirs, room) in rooms.into_iter().flatten() {
                room.bound &= served.contains(theirs);
            }
        }
    }
}
