//! What the hub says to clients: each message is checked, and put in the way of whoever reads it.

use super::{
    World,
    check::{self, Answer, Hearing, Kind, Listener, Rendered, hold},
    client::Means,
    peek,
};
use bytes::Bytes;
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::{self as wire, Frame};

impl World {
    pub(super) fn told_client(&mut self, conn: ConnId, text: &Bytes) {
        hold("nobody_speaks_to_the_gone", self.conns.contains_key(&conn), || {
            format!("{conn} is gone and was told {text:?}")
        });
        let frame = Frame::parse(text.clone());
        hold("what_the_hub_says_is_a_message", frame.is_ok(), || format!("{text:?}"));
        let frame = frame.expect("held above");
        check::names_stay_on_their_side(&self.conns[&conn], conn, &frame);
        if frame.error().is_none() {
            self.nobody_hears_of_another_tenant(conn, text);
        }
        let means = match frame.kind() {
            wire::Kind::Response => self.on_answer(conn, &frame),
            wire::Kind::Request => self.on_asked(conn, &frame),
            wire::Kind::Notification => self.on_told(conn, &frame),
        };
        self.post(conn, text, means);
    }

    fn on_answer(&mut self, conn: ConnId, frame: &Frame) -> Means {
        let id = frame.id().expect("a response has an id");
        if id == "null" {
            return Means::Nothing; // To a babble.
        }
        let it = self.conns.get_mut(&conn).expect("held by the caller");
        let open = id.parse::<u64>().ok().and_then(|it_id| it.open.remove(&it_id));
        let answer = Answer { conn, id, text: frame.bytes(), is_result: frame.result().is_some() };
        let request = answer.every_request_gets_one_answer(open);
        if peek::contains(answer.text, "\"code\":\"quota\"") {
            self.tally.count("quotas met");
        }
        if request.session.as_ref().is_some_and(|it| self.is_strange(conn, it)) {
            self.a_stranger_hears_that_there_is_none(&answer);
            return Means::Nothing;
        }
        if peek::contains(answer.text, "\"overloaded\"") {
            self.tally.count("overloaded");
        } else if peek::contains(answer.text, "\"stopReason\":\"cancelled\"") {
            self.tally.count("prompts cancelled");
        }
        self.a_relay_is_left_to_ask_again(conn, &request, frame);
        answer.an_answer_reaches_who_asked(&request);
        answer.a_good_answer_is_the_agents(&request);
        self.only_who_keeps_failing_is_left_alone(&answer);
        if request.kind == Kind::New
            && let Some(session) = frame.session_id()
        {
            let session: SessionId = session.into();
            self.a_fallback_is_never_silent(&answer, request.token, &session);
            self.a_session_is_written_before_it_is_heard_of(&session);
            let it = self.conns.get_mut(&conn).expect("held by the caller");
            it.hearings.entry(session.clone()).or_insert(Hearing::new(0));
            return Means::Opened(session);
        }
        if request.kind == Kind::Fork
            && answer.is_result
            && let Some(fork) = frame.session_id()
        {
            return self.on_forked(conn, fork.into());
        }
        if request.kind == Kind::Release && !answer.is_result {
            let session = request.session.as_ref().expect("released in a session");
            self.queues.on_release_refused(session, request.token);
        }
        if request.kind == Kind::Answer && answer.is_result {
            self.tally.count("asks answered from outside");
            self.asks.an_answer_that_counts_is_in_the_log(request.token);
        }
        if request.kind == Kind::Setting && answer.is_result {
            self.a_setting_is_written_before_it_is_heard(&request);
        }
        if answer.is_result || !request.kind.attaches() {
            self.an_answer_follows_what_came_before(conn, &request, frame);
        } else if !peek::contains(answer.text, "\"code\":\"fenced\"") {
            self.was_refused(conn, request);
        }
        Means::Nothing
    }

    /// The fork is there, and says what it is.
    fn on_forked(&mut self, conn: ConnId, session: SessionId) -> Means {
        self.a_session_is_written_before_it_is_heard_of(&session);
        let branch = self.branch(&session);
        hold("a_fork_says_what_it_is", branch.is_some(), || format!("{conn} heard of {session}"));
        let it = self.conns.get_mut(&conn).expect("held by the caller");
        it.hearings.entry(session.clone()).or_insert(Hearing::new(branch.unwrap_or(0)));
        Means::Opened(session)
    }

    /// It hears on as it did before it asked.
    fn was_refused(&mut self, conn: ConnId, request: check::Request) {
        let it = self.conns.get_mut(&conn).expect("held by the caller");
        let there = |it: &SessionId| self.disk.streams.contains_key(it);
        let Some(session) = request.session.filter(there) else { return };
        let (hearing, observes) = request.before;
        match hearing {
            Some(hearing) => it.hearings.insert(session.clone(), hearing),
            None => it.hearings.remove(&session),
        };
        it.observes.insert(session, observes.unwrap_or(false));
    }

    fn on_asked(&mut self, conn: ConnId, frame: &Frame) -> Means {
        let mark = self.asks.a_client_is_asked_what_an_agent_asked(conn, frame.bytes());
        let said_in = self.asks.theirs(mark).expect("an agent asked it").clone();
        self.words_stay_in_their_session(&said_in, frame);
        let id = frame.id().and_then(|it| it.parse::<u64>().ok()).expect("the hub's ids");
        let it = self.conns.get_mut(&conn).expect("held by the caller");
        let fresh = it.issued.insert(id, mark).is_none();
        hold("an_ask_reaches_a_client_once", fresh, || format!("{conn} was asked {id} twice"));
        if let Some(session) = frame.session_id() {
            let observes = it.observes.get(session.as_ref()).copied().unwrap_or(false);
            hold("observers_are_asked_nothing", !observes, || format!("{conn}: {frame:?}"));
        }
        self.tally.count("asks issued");
        Means::Asked { id, mark }
    }

    fn on_told(&mut self, conn: ConnId, frame: &Frame) -> Means {
        let method = frame.method().expect("a notification has a method");
        match method.as_ref() {
            "session/update" => self.on_update(conn, frame),
            "_jackfield/moved" => {
                self.on_moved(conn, frame);
                Means::Nothing
            }
            "_jackfield/storage" => {
                let aware = self.conns[&conn].aware;
                hold("storage_notices_are_for_aware_clients", aware, || {
                    format!("{conn}: {frame:?}")
                });
                self.tally.count("storage notices");
                Means::Nothing
            }
            "$/cancel_request" => {
                let id = frame.request_id().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
                let asked = self.conns[&conn].issued.contains_key(&id);
                hold("only_what_was_asked_is_withdrawn", asked, || format!("{conn}: {frame:?}"));
                Means::Withdrawn { id }
            }
            "x/by_the_way" => {
                let mark = peek::mark(frame.bytes()).unwrap_or(0);
                let said_in = self.passing.get(&mark).cloned();
                hold("what_passes_was_said", said_in.is_some(), || format!("{conn}: {frame:?}"));
                self.words_stay_in_their_session(&said_in.expect("held above"), frame);
                self.tally.count("passing words heard");
                Means::Nothing
            }
            _ => {
                let seq = peek::number_after(frame.bytes(), "\"seq\":").unwrap_or(0);
                self.hear(conn, frame, seq, Rendered::Notice)
            }
        }
    }

    fn on_update(&mut self, conn: ConnId, frame: &Frame) -> Means {
        let said = peek::mark(frame.bytes());
        let how = if said.is_some() { Rendered::Said } else { Rendered::Chunk };
        let seq = if self.conns[&conn].aware {
            peek::number_after(frame.bytes(), "\"jackfield\":{\"seq\":")
        } else if let Some(mark) = said {
            self.facts.words.get(&mark).and_then(|it| it.seq)
        } else {
            let mark = peek::prompt(frame.bytes());
            mark.and_then(|it| self.facts.prompts.get(&it)).and_then(|it| it.prompted)
        };
        self.hear(conn, frame, seq.unwrap_or(0), how)
    }

    fn hear(&mut self, conn: ConnId, frame: &Frame, seq: u64, how: Rendered) -> Means {
        let session: SessionId = frame.session_id().unwrap_or_default().into();
        self.starts_to_hear(conn, &session, seq);
        let it = self.conns.get_mut(&conn).expect("held by the caller");
        let who = Listener { conn, aware: it.aware, session: &session };
        let stream = &self.disk.streams[&session];
        check::outboxes_are_bounded(it.unwritten, self.limits.outbox_bytes_max);
        let hearing = it.hearings.get_mut(&session).expect("started above");
        hearing.hear(who, stream, seq, how, frame.bytes());
        Means::Event(session, seq)
    }

    /// Only who opened the session, attached to it or prompted in it hears it.
    fn starts_to_hear(&mut self, conn: ConnId, session: &SessionId, seq: u64) {
        let it = self.conns.get_mut(&conn).expect("held by the caller");
        let exists = self.disk.streams.contains_key(session);
        let prompts = it.prompts_in(session);
        let opens = it.opens();
        let known = it.hearings.contains_key(session);
        let branch = self.branch(session);
        let begins = seq == 1 || branch.is_some_and(|it| it < seq);
        hold("only_who_asked_hears", exists && (known || prompts || (opens && begins)), || {
            format!("{conn} heard event {seq} of {session} and never asked for it")
        });
        let first = branch.unwrap_or(0);
        let from = Hearing::new(if prompts { seq.saturating_sub(1) } else { first });
        let it = self.conns.get_mut(&conn).expect("held by the caller");
        it.hearings.entry(session.clone()).or_insert(from);
    }
}
