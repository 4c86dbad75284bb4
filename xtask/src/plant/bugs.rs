//! The bugs that are planted: each a mistake that could be made, most of them made once.

/// A change of the source that breaks a promise.
pub(super) struct Bug {
    pub(super) name: &'static str,
    pub(super) breaks: &'static str,
    pub(super) edits: &'static [Edit],
}

/// `old` stands once in `file`.
pub(super) struct Edit {
    pub(super) file: &'static str,
    pub(super) old: &'static str,
    pub(super) new: &'static str,
}

pub(super) const fn edit(file: &'static str, old: &'static str, new: &'static str) -> Edit {
    Edit { file, old, new }
}

const HUB: &str = "crates/core/src/hub.rs";
const DELIVER: &str = "crates/core/src/fanout/deliver.rs";
const SUBSCRIBER: &str = "crates/core/src/fanout/subscriber.rs";
const ATTACH: &str = "crates/core/src/session/attach.rs";
const TURN: &str = "crates/core/src/session/turn.rs";
const QUEUE: &str = "crates/core/src/session/queue.rs";
const FORK: &str = "crates/core/src/session/fork.rs";
const ANSWER: &str = "crates/core/src/session/answer.rs";
const ASK: &str = "crates/core/src/session/ask.rs";
const FALLBACK: &str = "crates/core/src/session/fallback.rs";
const HEARD: &str = "crates/core/src/agent/heard.rs";
const GONE: &str = "crates/core/src/agent/gone.rs";
const CLIENT: &str = "crates/core/src/peer/client.rs";
const GATE: &str = "crates/core/src/log/gate.rs";
const FOLD: &str = "crates/events/src/summary.rs";
const LADDER: &str = "crates/core/src/session/ladder.rs";
const SETTINGS: &str = "crates/core/src/session/settings.rs";
const TRIAL: &str = "crates/core/src/session/trial.rs";
const WAY: &str = "crates/core/src/session/way.rs";
const SLEEP: &str = "crates/core/src/session/sleep.rs";
const LIVENESS: &str = "crates/core/src/session/liveness.rs";
const PLACES: &str = "crates/core/src/agent/places.rs";
const EVENT: &str = "crates/events/src/event.rs";

const NEXT_PROMPT: &str = "        self.sessions.get_mut(id)?.queue.pop_front()";

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "publish-at-append",
        breaks: "events are heard before they are durable",
        edits: &[
            edit(
                HUB,
                "            self.outputs.push_back(Output::Append { session: id.clone(), event, summary });
        }
        if may_have_key {",
                "            let early = event.clone();
            self.outputs.push_back(Output::Append { session: id.clone(), event, summary });
            self.publish(id, &early);
        }
        if may_have_key {",
            ),
            edit(DELIVER, "    fn publish(", "    pub(crate) fn publish("),
        ],
    },
    Bug {
        name: "open-the-gate-early",
        breaks: "one durable event releases everything that is held",
        edits: &[edit(
            DELIVER,
            "in session.gate.release(upto) {",
            "in { let all = session.gate.head().max(upto); session.gate.release(all) } {",
        )],
    },
    Bug {
        name: "go-live-without-reading-again",
        breaks: "what became durable during a read is never heard",
        edits: &[edit(
            DELIVER,
            "        } else {
            self.read_on(id, conn);
        }",
            "        } else if let Some(it) =
            self.sessions.get_mut(id).and_then(|it| it.subscribers.get_mut(&conn))
        {
            it.phase = Phase::Live;
        }",
        )],
    },
    Bug {
        name: "attach-straight-to-live",
        breaks: "who attaches hears nothing of what was",
        edits: &[edit(ATTACH, "        self.read_on(session_id, conn);\n", "")],
    },
    Bug {
        name: "ignore-lag",
        breaks: "a client that does not read fills the memory",
        edits: &[edit(
            DELIVER,
            "            if self.is_full(conn) {
                self.fall_behind(id, conn);
            } else {
                act(self, conn);
            }",
            "            act(self, conn);",
        )],
    },
    Bug {
        name: "drop-the-stale-read-guard",
        breaks: "an old read is delivered again",
        edits: &[edit(SUBSCRIBER, " && self.heard == after\n", " && after.0 != u64::MAX\n")],
    },
    Bug {
        name: "read-past-the-gate",
        breaks: "what the journal has and has not said is heard twice",
        edits: &[edit(
            DELIVER,
            "events.iter().take_while(|it| it.seq <= durable)",
            "events.iter().take_while(|it| it.seq <= durable || true)",
        )],
    },
    Bug {
        name: "forget-the-head-on-recovery",
        breaks: "a restarted hub numbers events from 1 again",
        edits: &[edit(
            GATE,
            "Gate { head: durable, durable, ..Gate::default() }",
            "Gate { durable: Seq(durable.0 - durable.0), ..Gate::default() }",
        )],
    },
    Bug {
        name: "forget-the-turn-in-the-summary",
        breaks: "a turn that a crash interrupted never ends",
        edits: &[edit(
            FOLD,
            "    pub open_turn: Option<u64>,",
            "    #[serde(skip)]\n    pub open_turn: Option<u64>,",
        )],
    },
    Bug {
        name: "forget-interrupted-turns",
        breaks: "after a restart a turn has no outcome",
        edits: &[edit(TURN, "        let turn = state.open_turn;", "        let turn = state.open_turn.filter(|_| false);")],
    },
    Bug {
        name: "lose-what-was-held-at-a-retry",
        breaks: "events appended during a retry never reach the journal",
        edits: &[edit(HUB, "if !session.stalled {", "if session.append_failures == 0 {")],
    },
    Bug {
        name: "use-the-clients-ids",
        breaks: "two clients with one id get each other's answers",
        edits: &[edit(
            CLIENT,
            "let splice = Splice { id: Some(&our_id), session_id: theirs.as_deref(), request_id: None };",
            "let splice = Splice { id: frame.id(), session_id: theirs.as_deref(), request_id: None };",
        )],
    },
    Bug {
        name: "speak-the-hubs-names-to-agents",
        breaks: "an agent is asked about a session it does not know",
        edits: &[edit(
            CLIENT,
            "session_id: theirs.as_deref(), request_id: None };",
            "session_id: theirs.as_deref().filter(|_| false), request_id: None };",
        )],
    },
    Bug {
        name: "answer-a-prompt-at-once",
        breaks: "a prompt is answered before the updates of its turn",
        edits: &[edit(
            TURN,
            "        if matches!(outcome, TurnOutcome::Stopped(_)) {
            session.restarts",
            "        let driver = turn.driver;
        if let TurnOutcome::Stopped(result) = &outcome
            && let Some(owed) =
                session.subscribers.get_mut(&driver).and_then(|it| it.owed.remove(&number))
            && let Some(request) = owed.into_iter().next()
        {
            let result = result.as_str().to_owned();
            self.answer(driver, &request, Ok(&result));
        }
        let session = self.sessions.get_mut(id).expect(\"found above\");
        if matches!(outcome, TurnOutcome::Stopped(_)) {
            session.restarts",
        )],
    },
    Bug {
        name: "let-the-second-answer-through",
        breaks: "two clients answer one ask, and the agent hears both",
        edits: &[edit(
            ASK,
            "let Some(ask) = session.asks.remove(&number) else { return };",
            "let Some(it) = session.asks.get(&number) else { return };
        let (seq, at, agent, theirs) = (it.seq, it.at, it.agent, it.theirs.clone());
        let (asked, decision) = (it.frame.clone(), it.decision.clone());
        let ask = Ask { seq, at, agent, theirs, frame: asked, decision };",
        )],
    },
    Bug {
        name: "take-an-error-for-an-answer",
        breaks: "a client that cannot ask its user answers for everyone",
        edits: &[edit(
            ASK,
            "if permission && frame.result().is_none() {",
            "if permission && frame.result().is_none() && number == 0 {",
        )],
    },
    Bug {
        name: "pass-on-what-was-not-offered",
        breaks: "an agent hears an option it never offered",
        edits: &[edit(
            ANSWER,
            "if !offered.contains(&chosen) {",
            "if !offered.contains(&chosen) && chosen.is_empty() {",
        )],
    },
    Bug {
        name: "forget-open-asks-at-attach",
        breaks: "an ask that nobody was there for is never answered",
        edits: &[edit(ATTACH, "        self.issue_open_asks(session_id, conn);\n", "")],
    },
    Bug {
        name: "forget-who-waits-for-a-dead-agent",
        breaks: "a request to an agent that dies is never answered",
        edits: &[edit(GONE, "        self.answer_all(agent, &fault);\n", "        drop(agent);\n")],
    },
    Bug {
        name: "run-a-prompt-twice",
        breaks: "a prompt stays in the queue while its turn runs",
        edits: &[edit(
            QUEUE,
            NEXT_PROMPT,
            "        let session = self.sessions.get_mut(id)?;
        if session.state.turns != 0 {
            return session.queue.pop_front();
        }
        let it = session.queue.front()?;
        let (conn, waiters, by) = (it.conn, it.waiters.clone(), it.by.clone());
        let (frame, number, steers) = (it.frame.clone(), it.number, it.steers);
        Some(Prompt { conn, waiters, by, frame, number, steers })",
        )],
    },
    Bug {
        name: "two-outcomes-for-one-turn",
        breaks: "an agent's late answer ends a turn again",
        edits: &[edit(
            TURN,
            "        let Some(mut turn) = session.turn.take_if(|it| it.number == number) else {
            return; // It ended otherwise before the agent answered.
        };",
            "        let (driver, began) = (ConnId(0), self.now);
        let (asked, unasked, overdue) = (BTreeSet::new(), false, None);
        let late = Turn { number, driver, our_id: 0, cancelled: 0, began, asked, unasked, overdue };
        let mut turn = session.turn.take_if(|it| it.number == number).unwrap_or(late);",
        )],
    },
    Bug {
        name: "lose-early-updates",
        breaks: "what an agent says before it answers `session/new` is lost",
        edits: &[edit(
            HEARD,
            "return agent.early.push((frame, charge)),",
            "return agent.early = vec![(frame, charge)],",
        )],
    },
    Bug {
        name: "run-effects-at-once",
        breaks: "an agent hears a prompt that is not written down",
        edits: &[edit(
            DELIVER,
            "        if session.gate.is_clear() {
            let head",
            "        if session.gate.is_clear() || session.gate.head().0 != 0 {
            let head",
        )],
    },
    Bug {
        name: "keep-the-replay-of-a-load",
        breaks: "a reloaded session says everything twice",
        edits: &[edit(LADDER, "(!past).then_some(frame)", "(!past || journaled).then_some(frame)")],
    },
    Bug {
        name: "count-half-of-what-was-written",
        breaks: "a client that fell behind never catches up",
        edits: &[edit(
            DELIVER,
            "conn.outbox.resize(unwritten - bytes);",
            "conn.outbox.resize(unwritten - bytes / 2);",
        )],
    },
    Bug {
        name: "lose-answers-with-the-session",
        breaks: "who waits in a session that is deleted waits for ever",
        edits: &[edit(ATTACH, "in session.gate.unsaid() {", "in session.gate.unsaid().skip(1) {")],
    },
    Bug {
        name: "listen-to-a-released-agent",
        breaks: "two agents speak in one session",
        edits: &[edit(
            HEARD,
            "if session.agent != Some(agent) {",
            "if session.agent != Some(agent) && agent.0 == 0 {",
        )],
    },
    Bug {
        name: "bind-a-released-agent",
        breaks: "a session is bound to a process that is being stopped",
        edits: &[edit(HEARD, "if agent.stopping && waiting.is_start() {", "if agent.stopping && waiting.is_start() && id.0 == 0 {")],
    },
    Bug {
        name: "skip-what-is-owed",
        breaks: "a `session/resume` skips the end of one's own turn",
        edits: &[edit(SUBSCRIBER, "self.heard = self.heard.min(from);", "self.heard = from;")],
    },
    Bug {
        name: "let-a-cancel-overtake-its-request",
        breaks: "an agent hears that a request is withdrawn before it hears the request",
        edits: &[edit(
            CLIENT,
            "Some(session) => self.after_log(&session, Effect::ToAgent { agent, text }),
                    None",
            "Some(session) if session.is_empty() => {
                        self.after_log(&session, Effect::ToAgent { agent, text });
                    }
                    _",
        )],
    },
    Bug {
        name: "stop-climbing-the-cancel-ladder",
        breaks: "a turn of an agent that does not listen never ends",
        edits: &[edit(
            TURN,
            "            self.timers.set(at, Timer::Cancel(id.clone(), number, 2));\n",
            "            let _ = at;\n",
        )],
    },
    Bug {
        name: "leave-the-agent-of-a-closed-session",
        breaks: "a closed session keeps its process",
        edits: &[edit(
            TURN,
            "        let turn = session.turn.as_ref().map(|it| it.number);
        self.release_agent(id);",
            "        let turn = session.turn.as_ref().map(|it| it.number);",
        )],
    },
    Bug {
        name: "forget-who-waits-at-the-stop",
        breaks: "the hub stops and leaves requests without an answer",
        edits: &[edit(HUB, "            self.refuse_waiting(session, &Fault::Stopping);\n", "            let _ = (session, &Fault::Stopping);\n")],
    },
    Bug {
        name: "tell-plain-clients-everything",
        breaks: "an editor hears notifications it does not know",
        edits: &[edit(DELIVER, "        if notices && let Some(text)", "        if let Some(text)")],
    },
    Bug {
        name: "ask-people-what-a-rule-answered",
        breaks: "an ask that a rule has answered is asked of clients all the same",
        edits: &[edit(
            "crates/core/src/session/ask.rs",
            "            return self.answer_by_rule(agent, id, number, &theirs, &result);",
            "            self.answer_by_rule(agent, id, number, &theirs, &result);",
        )],
    },
    Bug {
        name: "run-what-is-held",
        breaks: "after a restart, what waited runs by itself",
        edits: &[edit(
            QUEUE,
            NEXT_PROMPT,
            "        let session = self.sessions.get_mut(id)?;
        if let Some(prompt) = session.queue.pop_front() {
            return Some(prompt);
        }
        let (&number, it) = session.state.queue.first_key_value()?;
        let frame = Frame::parse(it.frame.bytes().clone()).ok()?;
        let (number, by) = (Some(number), it.by.clone());
        Some(Prompt { conn: ConnId(0), request: None, by, frame, number, steers: false })",
        )],
    },
    Bug {
        name: "run-what-is-held-in-any-order",
        breaks: "prompts that are released run the last first",
        edits: &[edit(
            QUEUE,
            "        for (number, queued) in held {",
            "        for (number, queued) in held.into_iter().rev() {",
        )],
    },
    Bug {
        name: "cancel-without-a-word",
        breaks: "the log does not say that a cancelled prompt will not run",
        edits: &[edit(
            QUEUE,
            "            self.withdraw(id, &prompt, SESSION_CANCELLED, |it| Frame::result_for(it, cancelled));",
            "            for (conn, request) in &prompt.waiters {
                self.answer_in(id, *conn, &Frame::result_for(request, cancelled));
            }",
        )],
    },
    Bug {
        name: "withdraw-twice",
        breaks: "a prompt leaves the queue of a closed session twice",
        edits: &[edit(
            TURN,
            "        self.refuse_waiting(id, fault);
        self.withdraw_held(id, &fault.to_string());",
            "        let all: Vec<u64> = self.sessions[id].state.queue.keys().copied().collect();
        self.refuse_waiting(id, fault);
        for prompt in all {
            self.append(id, Body::Withdrawn { prompt, why: fault.to_string().into() });
        }",
        )],
    },
    Bug {
        name: "steer-behind-the-queue",
        breaks: "a prompt that steers runs after what waits",
        edits: &[edit(
            QUEUE,
            "            queue.insert(behind, prompt);",
            "            queue.insert(behind.max(queue.len()), prompt);",
        )],
    },
    Bug {
        name: "fork-under-the-old-name",
        breaks: "a setting in a fork's log names the session it came from",
        edits: &[edit(
            EVENT,
            "            | EventBody::Asked(UserAsked { frame, .. })
            | EventBody::Configured(SettingChanged { frame, .. }) => Some(frame),",
            "            | EventBody::Asked(UserAsked { frame, .. }) => Some(frame),",
        )],
    },
    Bug {
        name: "fork-what-waits",
        breaks: "a prompt that waits in a session waits in its fork, too",
        edits: &[edit(
            FOLD,
            "        self.params = forked.params.clone();\n        self.queue.clear();\n",
            "        self.params = forked.params.clone();\n",
        )],
    },
    Bug {
        name: "fork-an-open-turn",
        breaks: "a turn that a fork cut never ends there",
        edits: &[edit(
            FORK,
            "        self.settle(id, \"the session was forked before it was answered\", why);\n",
            "        let _ = why;\n",
        )],
    },
    Bug {
        name: "sleep-while-somebody-is-asked",
        breaks: "a session is put to sleep while its agent waits for an answer",
        edits: &[edit(
            SLEEP,
            "let waits = !session.parked.is_empty() || !session.asks.is_empty();",
            "let waits = !session.parked.is_empty();",
        )],
    },
    Bug {
        name: "sleep-with-a-request-in-flight",
        breaks: "an agent is stopped although a client waits for its answer",
        edits: &[edit(SLEEP, "let idle = !works && !waits && !owes &&", "let idle = !waits &&")],
    },
    Bug {
        name: "one-agent-too-many",
        breaks: "more agents are alive than may be",
        edits: &[edit(
            PLACES,
            ".max(1).saturating_sub(alive)",
            ".max(1).saturating_add(1).saturating_sub(alive)",
        )],
    },
    Bug {
        name: "forget-who-waits-for-a-place",
        breaks: "a start that found no place is never tried again",
        edits: &[edit(
            PLACES,
            "        if !self.starts.contains(start) {
            self.starts.push_back(start.clone());
        }
",
            "",
        )],
    },
    Bug {
        name: "call-a-session-quiet-that-asks",
        breaks: "a session is called quiet while a person is asked",
        edits: &[edit(
            LIVENESS,
            "        if !session.asks.is_empty() {
            return Some(Phase::Human);
        }
",
            "",
        )],
    },
    Bug {
        name: "prompt-before-the-settings",
        breaks: "a woken agent is prompted before it has taken the session's settings",
        edits: &[edit(
            SETTINGS,
            "            self.ask_agent(agent, method.name(), &params.to_string(), waiting);
        }
",
            "            self.ask_agent(agent, method.name(), &params.to_string(), waiting);
        }
        self.bind(agent, id);
        if true {
            return;
        }
",
        )],
    },
    Bug {
        name: "forget-the-mode-at-a-wake",
        breaks: "a woken session has lost its mode",
        edits: &[edit(SETTINGS, "if let Some(mode) = &state.mode {", "if let Some(mode) = state.mode.as_ref().filter(|it| it.is_empty()) {")],
    },
    Bug {
        name: "tell-nothing-to-a-new-agent",
        breaks: "an agent that has lost a session goes on as if nothing had been said",
        edits: &[edit(LADDER, "session.standing.digest = found.digest;", "session.standing.digest = found.digest.filter(String::is_empty);")],
    },
    Bug {
        name: "tell-the-digest-for-ever",
        breaks: "every prompt after a reseed carries the digest again",
        edits: &[edit(TRIAL, "session.standing.digest = None;", "session.standing.trial = None;")],
    },
    Bug {
        name: "send-a-failed-prompt-again",
        breaks: "a prompt that an agent had begun is run a second time",
        edits: &[edit(TRIAL, "            session.standing.trial = None;
        }
    }", "            let _ = session;
        }
    }"), edit(TRIAL, "|| !refusal.is_unknown() ", "")],
    },
    Bug {
        name: "resume-what-was-never-seeded",
        breaks: "after a crash an agent resumes an empty session and is told nothing",
        edits: &[edit(WAY, "            Way::Resume | Way::Load if state.unseeded => {", "            Way::Resume | Way::Load if state.unseeded && state.seq == 0 => {")],
    },
    Bug {
        name: "route-by-agent",
        breaks: "words of one session in a process are taken for another's",
        edits: &[edit(
            HEARD,
            "        match agent.seats.only() {",
            "        match agent.seats.sessions.first() {",
        )],
    },
    Bug {
        name: "one-seat-too-many",
        breaks: "a process serves more sessions than it may",
        edits: &[edit(
            "crates/core/src/agent/seats.rs",
            "0 < taken && taken < seats;",
            "0 < taken && taken <= seats;",
        )],
    },
    Bug {
        name: "bury-only-the-first",
        breaks: "of the sessions of a process that died only one is told",
        edits: &[edit(
            GONE,
            "        for session in &agent.seats.sessions {",
            "        for session in agent.seats.sessions.iter().take(1) {",
        )],
    },
    Bug {
        name: "fall-back-in-silence",
        breaks: "another agent is used and nobody is told",
        edits: &[edit(
            FALLBACK,
            "let facts = facts(agent, &opening.fallen, unheard);",
            "let facts = facts(agent, &[], unheard);",
        )],
    },
];
