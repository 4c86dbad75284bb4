//! Sessions that leave the hub and come back: they are let go or taken away, belong to nobody for a
//! while, and are adopted. What a gateway's relay connection asked meanwhile it says again.

use super::{
    World,
    check::{Kind, Prompt, Request, hold, summary_and_tail_give_the_whole},
    disk::Stream,
};
use jackfield_hub::{ConnId, Input, SessionId};
use jackfield_protocol::Frame;
use std::collections::{BTreeMap, BTreeSet};

/// Which sessions are on their way, and what was said under which key.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    /// The hub was asked to let these go.
    leaving: BTreeSet<SessionId>,
    /// Nobody has these, and who had them last was lost or was not.
    away: BTreeMap<SessionId, bool>,
    /// The marks of prompts that had a key.
    keyed: BTreeMap<SessionId, Vec<u64>>,
}

impl Fleet {
    pub(super) fn is_away(&self, session: &SessionId) -> bool {
        self.away.contains_key(session)
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        self.leaving.remove(session);
        self.away.remove(session);
        self.keyed.remove(session);
    }

    /// Whoever was to let something go is no more.
    pub(super) fn on_restart(&mut self) {
        self.leaving.clear();
    }

    /// A prompt said for the first time, and its key: only what goes by a relay connection has one.
    pub(super) fn on_prompted(&mut self, session: &SessionId, token: u64) -> String {
        self.keyed.entry(session.clone()).or_default().push(token);
        key_of(token)
    }
}

fn key_of(token: u64) -> String {
    format!("k{token}")
}

impl World {
    /// A session leaves, or one comes.
    pub(super) fn move_a_session(&mut self) {
        let away = self.fleet.away.len();
        if away != 0 && self.rng.chance(60) {
            let at = self.rng.index(away);
            let session = self.fleet.away.keys().nth(at).expect("within").clone();
            return self.adopt(&session);
        }
        if self.known.is_empty() {
            return;
        }
        let session = self.known[self.rng.index(self.known.len())].clone();
        if self.rng.chance(10) {
            return self.adopt_again(&session);
        }
        if self.hub.session(&session).is_some() {
            self.fleet.leaving.insert(session.clone());
            self.feed(Input::LetGo { session });
        }
    }

    /// Whether every session is where it should be, and nothing is left to be said again.
    pub(super) fn has_settled(&self) -> bool {
        let said = self.clients.iter().all(|it| it.again.is_empty());
        said && self.fleet.away.is_empty() && self.fleet.leaving.is_empty()
    }

    pub(super) fn waits_for_what_was_said_again(&self) -> bool {
        let open = self.conns.values().flat_map(|it| it.open.values());
        open.into_iter().any(|it| it.number != it.token)
    }

    /// Whether the hub does nothing more in a session, because it is on its way out.
    pub(super) fn is_too_late(&self, session: &SessionId) -> bool {
        let idle = |it: &jackfield_events::SessionSummary| it.open_turn.is_none();
        self.fleet.leaving.contains(session) && self.hub.session(session).is_some_and(idle)
    }

    pub(super) fn adopt_all(&mut self) {
        for session in self.fleet.away.keys().cloned().collect::<Vec<_>>() {
            self.adopt(&session);
        }
    }

    /// Whoever looks for a session may be late: the hub has it, and nothing changes.
    fn adopt_again(&mut self, session: &SessionId) {
        let stream = self.disk.streams.get(session).filter(|_| self.hub.session(session).is_some());
        let Some(state) = stream.filter(|it| 0 < it.durable()).map(Stream::recovered) else {
            return;
        };
        let from = Some("west".into());
        let state = Box::new(state);
        self.feed(Input::Adopted { session: session.clone(), state, from });
    }

    /// A relay connection can ask again elsewhere: what the agent was not told any more is not refused to it.
    pub(super) fn a_relay_is_left_to_ask_again(
        &self,
        conn: ConnId,
        request: &Request,
        error: &Frame,
    ) {
        let leaves = request.session.as_ref().is_some_and(|it| self.fleet.leaving.contains(it));
        let refused = super::peek::contains(error.bytes(), "has let go of its agent");
        hold(
            "a_relay_is_left_to_ask_again",
            !(self.conns[&conn].relay && leaves && refused),
            || format!("{conn} heard {error:?}"),
        );
    }

    fn adopt(&mut self, session: &SessionId) {
        if self.stopping {
            return;
        }
        let lost = self.fleet.away.remove(session).expect("it is away");
        let stream = self.disk.streams.get_mut(session).expect("its log is there");
        stream.take_over();
        let state = stream.recovered();
        summary_and_tail_give_the_whole(session, &state, &stream.events);
        self.wakes.on_adopted(session, &state);
        self.rest.on_adopted(session, &state);
        self.tally.count("sessions adopted");
        if state.open_turn.is_some() {
            self.tally.count("turns lost with their host");
        }
        let from = (lost || self.rng.chance(50)).then(|| "west".into());
        self.feed(Input::Adopted { session: session.clone(), state: Box::new(state), from });
    }

    /// The hub says that it is done with a session.
    pub(super) fn on_let_gone(&mut self, session: &SessionId) {
        if self.fleet.is_away(session) || !self.disk.streams.contains_key(session) {
            return; // It was deleted or taken away meanwhile.
        }
        let wanted = self.fleet.leaving.remove(session) || self.habits.forgets;
        hold("only_who_is_asked_lets_go", wanted, || session.to_string());
        hold("who_lets_go_has_forgotten", self.hub.session(session).is_none(), || {
            format!("{session} is still there")
        });
        let stream = &self.disk.streams[session];
        let (head, durable, acked) = (stream.head, stream.durable(), stream.acked);
        hold("what_is_let_go_is_written", head == durable && acked == durable, || {
            format!("{session} ends at {head}, {durable} is written and {acked} is known to be")
        });
        let summed = stream.summed_up();
        hold("what_is_let_go_is_summed_up", summed == durable, || {
            format!("{session} ends at {durable}, and its summary at {summed}")
        });
        let open = self.facts.open_in(session);
        hold("nothing_is_open_in_what_is_let_go", open == (None, 0), || {
            format!("{session} leaves {open:?} open in its log")
        });
        let theirs = |it: &super::agent::Process| {
            it.rooms.keys().any(|it| self.facts.names.get(it) == Some(session))
        };
        // One that serves others goes on.
        let alone = self.habits.seats == 1;
        let ends = self.hub.gauges().processes;
        let ends = ends
            .iter()
            .filter_map(|it| self.procs.get_key_value(&jackfield_hub::AgentId(it.pid.into())));
        let ends =
            ends.filter(|(_, it)| alone && it.stop_asked && theirs(it)).map(|(id, _)| *id).next();
        hold("who_is_let_go_has_no_process", ends.is_none(), || {
            format!("{ends:?} still ends, and {session} is gone")
        });
        self.tally.count("sessions let go");
        self.goes_away(session, false);
    }

    /// Another hub writes to a session now: what this one had not written is nowhere.
    pub(super) fn is_taken_away(&mut self, session: &SessionId) {
        self.tally.count("sessions taken away");
        self.fleet.leaving.remove(session);
        self.goes_away(session, true);
    }

    fn goes_away(&mut self, session: &SessionId, lost: bool) {
        self.fleet.away.insert(session.clone(), lost);
        self.facts.forget(session);
        self.queues.hold(session);
        for it in self.conns.values_mut() {
            it.hearings.remove(session);
            it.prompted.remove(session);
        }
    }

    /// A relay connection is told that a session is not here: what it asked there it asks again, later.
    pub(super) fn on_moved(&mut self, conn: ConnId, frame: &Frame) {
        let session: SessionId = frame.session_id().unwrap_or_default().into();
        let it = self.conns.get_mut(&conn).expect("held by the caller");
        hold("only_relays_are_sent_away", it.relay, || format!("{conn} heard {frame:?}"));
        it.hearings.remove(&session);
        it.prompted.remove(&session);
        let unanswered =
            it.open.extract_if(.., |_, it| it.delivered && it.session.as_ref() == Some(&session));
        let client = it.client;
        let unanswered: Vec<Request> = unanswered.map(|(_, it)| it).collect();
        self.tally.count("relays sent away");
        if !self.disk.streams.contains_key(&session) {
            return; // It is nowhere, and the gateway says so.
        }
        for request in unanswered {
            match request.kind {
                Kind::Release => self.queues.on_release_refused(&session, request.token),
                Kind::Prompt => {
                    self.queues.on_release_refused(&session, request.number);
                    self.clients[client].again.push((session.clone(), request.token));
                }
                _ => {}
            }
        }
    }

    /// Says what was not answered once more, or anything else that had a key.
    pub(super) fn say_again(&mut self, conn: ConnId, client: usize) {
        let (session, token) = if let Some(again) = self.clients[client].again.pop() {
            again
        } else {
            let all = &self.fleet.keyed;
            let all: Vec<(SessionId, u64)> =
                all.iter().flat_map(|(id, it)| it.iter().map(|it| (id.clone(), *it))).collect();
            let may_know = |it: &(SessionId, u64)| !self.is_strange(conn, &it.0);
            let all: Vec<(SessionId, u64)> = all.into_iter().filter(may_know).collect();
            if all.is_empty() || !self.conns[&conn].aware {
                return;
            }
            all[self.rng.index(all.len())].clone()
        };
        if self.facts.prompts.get(&token).is_some_and(|it: &Prompt| it.refused) {
            return;
        }
        self.tally.count("prompts said again");
        let key = key_of(token);
        let params = format!(
            r#""_meta":{{"jackfield":{{"key":"{key}"}}}},"prompt":[{{"type":"text","text":"p#{token}"}}]"#
        );
        self.request_as(conn, Kind::Prompt, Some(&session), "session/prompt", &params, token);
    }

    /// The hub takes a prompt that may have been said before: if it is held, it runs now; if it is
    /// over, its client is answered and hears nothing else.
    pub(super) fn before_prompt(&mut self, session: &SessionId, token: u64, number: u64) -> bool {
        let Some(state) = self.hub.session(session) else { return false };
        let known = state.keys.find(&key_of(token));
        let over = known.is_some_and(|it| it.outcome.is_some());
        if known.is_some() && !over {
            self.queues.on_said_again(session, number, token);
        }
        over
    }
}
