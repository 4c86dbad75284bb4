//! Replays a recording that starts with `session/load` or `session/resume` as the process that restores a session of the
//! hub: the agent replays its history, which the hub already has.

use super::{
    recording::{MessageSide, RecordedLine, Recording},
    replay::{ClientKind, Replay},
    world::ReplayWorld,
};
use jackfield_hub::SessionId;
use serde_json::{Value, json};

/// Updates about the current state of the session. All others are conversation, or settings that the journal has, such as
/// title and mode.
const PRESENT: [&str; 3] = ["available_commands_update", "config_option_update", "usage_update"];

pub(crate) struct RestoreReplay {
    pub(crate) replay: Replay,
    /// Replayed updates before and after the agent's response; no client received them.
    pub(crate) replayed: [usize; 2],
    loads: bool,
    replays: bool,
}

impl RestoreReplay {
    pub(crate) fn run(name: &str) -> RestoreReplay {
        let recording = Recording::read(name);
        let find = |method: &str| recording.lines.iter().position(|it| it.method() == method);
        let load = find("session/load").or_else(|| find("session/resume")).expect("it wakes");
        let prompt = find("session/prompt").expect("a prompt wakes it");
        let mut restored = RestoreReplay::begin(&recording, load, prompt);
        for line in &recording.lines[..prompt] {
            restored.play_start(line, &recording.lines[prompt]);
        }
        let replay = &mut restored.replay;
        replay.world.advance_clock(recording.lines[prompt].at);
        if replay.prompts == 0 {
            replay.expect_prompt_update(&recording.lines[prompt]);
        }
        replay.agent_receives_request(&recording.lines[prompt]);
        for line in &recording.lines[prompt + 1..] {
            replay.play(line);
            replay.world.assert_all_read(&line.location);
        }
        replay.finish(name);
        restored
    }

    /// The session is asleep; a client attaches as the recorded one did, and prompts.
    fn begin(recording: &Recording, load: usize, prompt: usize) -> RestoreReplay {
        let (hello, load, prompt) =
            (&recording.lines[0], &recording.lines[load], &recording.lines[prompt]);
        let agent_session = load.session().expect("it names the session");
        let session = SessionId::from("the-hubs-own-name");
        let mut params = load.message["params"].clone();
        params.as_object_mut().expect("an object").remove("sessionId");
        let world = ReplayWorld::after(&session, agent_session, &params.to_string());
        let mut replay = Replay::new(world, Some(agent_session.to_owned()), ClientKind::Recorded);
        replay.session = Some(session.clone());
        for line in [hello, load] {
            replay.world.client_sends(replay.conn, &line.with_session(&session));
            assert_eq!(replay.client_receives(line)["id"], line.message["id"], "{}", line.location);
        }
        replay.world.client_sends(replay.conn, &prompt.with_session(&session));
        RestoreReplay {
            replay,
            replayed: [0, 0],
            loads: load.method() == "session/load",
            replays: false,
        }
    }

    fn play_start(&mut self, line: &RecordedLine, prompt: &RecordedLine) {
        self.replay.world.advance_clock(line.at);
        self.note_prompt(prompt);
        let is_replayed = line.method() == "session/update" && self.is_replayed(line);
        let replay = &mut self.replay;
        match (line.from, line.method()) {
            (MessageSide::Client, "initialize") => replay.agent_receives_request(line),
            (MessageSide::Client, _) => self.agent_receives_restore_request(line),
            (MessageSide::Agent, "") => replay.play(line),
            (MessageSide::Agent, _) if is_replayed => {
                replay.world.agent_sends(&line.text, &line.location);
                let answered = replay.agent_requests_open.is_empty();
                self.replayed[usize::from(answered)] += 1;
            }
            (MessageSide::Agent, _) => {
                replay.world.agent_sends(&line.text, &line.location);
                let expected = line.with_session(replay.session_id());
                replay.client_receives_update(&expected, &line.location);
            }
        }
        self.note_prompt(prompt);
        self.replay.world.assert_clients_read_all(&line.location);
    }

    /// On `session/load`, all updates except for those about the current state are replayed. On `session/resume`, none
    /// should be; an agent that repeats a user message replays nevertheless.
    fn is_replayed(&mut self, line: &RecordedLine) -> bool {
        self.replays |= self.loads || line.update() == "user_message_chunk";
        self.replays && !PRESENT.contains(&line.update())
    }

    /// The hub sends the prompt when the agent is ready, not when the recorded client did.
    fn note_prompt(&mut self, prompt: &RecordedLine) {
        let replay = &mut self.replay;
        if replay.prompts == 0 && replay.world.agent_has_unread("session/prompt") {
            replay.expect_prompt_update(prompt);
        }
    }

    /// The hub tries `session/resume` first if the agent announces it; if refused, it loads.
    fn agent_receives_restore_request(&mut self, line: &RecordedLine) {
        let world = &mut self.replay.world;
        if line.method() == "session/load" && world.agent_has_unread("session/resume") {
            let asked: Value =
                serde_json::from_str(&world.agent_receives(&line.location)).expect("JSON");
            let error = json!({ "code": -32601, "message": "not today" });
            let refused = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
            world.agent_sends(&refused.to_string(), &line.location);
        }
        self.replay.agent_receives_request(line);
    }
}
