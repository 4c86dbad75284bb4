//! A recording that begins with `session/load` or `session/resume`, played as the process that wakes
//! a session of the hub's: the agent tells its past again, and the hub knows it already.

use super::{
    replay::{Client, Replay},
    tape::{Line, Side, Tape},
    world::World,
};
use jackfield_hub::SessionId;
use serde_json::{Value, json};

/// Updates that say what the session is now. All others tell the conversation, or what the journal
/// knows better: a title, a mode.
const PRESENT: [&str; 3] = ["available_commands_update", "config_option_update", "usage_update"];

pub(crate) struct Wake {
    pub(crate) replay: Replay,
    /// What the agent told of the past, before and after it answered: nobody heard it.
    pub(crate) past: [usize; 2],
    loads: bool,
    retells: bool,
}

impl Wake {
    pub(crate) fn of(name: &str) -> Wake {
        let tape = Tape::read(name);
        let find = |method: &str| tape.lines.iter().position(|it| it.method() == method);
        let load = find("session/load").or_else(|| find("session/resume")).expect("it wakes");
        let prompt = find("session/prompt").expect("a prompt wakes it");
        let mut wake = Wake::begin(&tape, load, prompt);
        for line in &tape.lines[..prompt] {
            wake.play_start(line, &tape.lines[prompt]);
        }
        let replay = &mut wake.replay;
        replay.world.pass(tape.lines[prompt].at);
        if replay.prompts == 0 {
            replay.tell_prompt(&tape.lines[prompt]);
        }
        replay.agent_is_asked(&tape.lines[prompt]);
        for line in &tape.lines[prompt + 1..] {
            replay.play(line);
            replay.world.all_is_heard(&line.place);
        }
        replay.finish(name);
        wake
    }

    /// The session is asleep, a client comes to it as the recorded one did, and prompts.
    fn begin(tape: &Tape, load: usize, prompt: usize) -> Wake {
        let (hello, load, prompt) = (&tape.lines[0], &tape.lines[load], &tape.lines[prompt]);
        let theirs = load.session().expect("it names the session");
        let ours = SessionId::from("the-hubs-own-name");
        let mut params = load.said["params"].clone();
        params.as_object_mut().expect("an object").remove("sessionId");
        let world = World::after(&ours, theirs, &params.to_string());
        let mut replay = Replay::new(world, Some(theirs.to_owned()), Client::Recorded);
        replay.ours = Some(ours.clone());
        for line in [hello, load] {
            replay.world.client_says(replay.conn, &line.with_session(&ours));
            assert_eq!(replay.client_hears(line)["id"], line.said["id"], "{}", line.place);
        }
        replay.world.client_says(replay.conn, &prompt.with_session(&ours));
        Wake { replay, past: [0, 0], loads: load.method() == "session/load", retells: false }
    }

    fn play_start(&mut self, line: &Line, prompt: &Line) {
        self.replay.world.pass(line.at);
        self.note_prompt(prompt);
        let past = line.method() == "session/update" && self.is_past(line);
        let replay = &mut self.replay;
        match (line.from, line.method()) {
            (Side::Client, "initialize") => replay.agent_is_asked(line),
            (Side::Client, _) => self.agent_is_asked_for_the_session(line),
            (Side::Agent, "") => replay.play(line),
            (Side::Agent, _) if past => {
                replay.world.agent_says(&line.text, &line.place);
                let answered = replay.asked_agent.is_empty();
                self.past[usize::from(answered)] += 1;
            }
            (Side::Agent, _) => {
                replay.world.agent_says(&line.text, &line.place);
                let expected = line.with_session(replay.ours());
                replay.client_hears_words(&expected, &line.place);
            }
        }
        self.note_prompt(prompt);
        self.replay.world.all_is_heard_by_client(&line.place);
    }

    /// On `session/load` everything but the present is; on `session/resume` nothing should be, and
    /// is when the agent repeats what the user said.
    fn is_past(&mut self, line: &Line) -> bool {
        self.retells |= self.loads || line.update() == "user_message_chunk";
        self.retells && !PRESENT.contains(&line.update())
    }

    /// The hub sends the prompt when it thinks the agent ready, not when the recorded client did.
    fn note_prompt(&mut self, prompt: &Line) {
        let replay = &mut self.replay;
        if replay.prompts == 0 && replay.world.agent_was_told("session/prompt") {
            replay.tell_prompt(prompt);
        }
    }

    /// The hub tries `session/resume` first where it is announced; refused, it loads.
    fn agent_is_asked_for_the_session(&mut self, line: &Line) {
        let world = &mut self.replay.world;
        if line.method() == "session/load" && world.agent_was_told("session/resume") {
            let asked: Value = serde_json::from_str(&world.agent_hears(&line.place)).expect("JSON");
            let error = json!({ "code": -32601, "message": "not today" });
            let refused = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
            world.agent_says(&refused.to_string(), &line.place);
        }
        self.replay.agent_is_asked(line);
    }
}
