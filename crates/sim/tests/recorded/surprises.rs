//! Behavior of real agents that the protocol does not suggest. Each test shows that a recording has it and that it passes
//! through the hub unchanged.

use super::{
    recording::{RecordedLine, Recording},
    replay::{ClientKind, Replay},
    restore::RestoreReplay,
    world::{AGENT, ReplayWorld},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn main_of(agent: &str) -> Replay {
    Replay::run(&format!("{agent}/main"), ClientKind::Recorded)
}

/// The updates that a client received, in order.
fn updates(replay: &Replay) -> impl Iterator<Item = &Value> {
    let is_update = |it: &&Value| it["method"] == "session/update";
    replay.received.iter().filter(is_update).map(|it| &it["params"]["update"])
}

/// The updates about tool calls, as `kind id`.
fn tool_calls(replay: &Replay) -> Vec<(&str, &str)> {
    let call = |it: &'_ Value| it["toolCallId"].is_string();
    let calls = updates(replay).filter(|it| call(it));
    calls.map(|it| (text(&it["sessionUpdate"]), text(&it["toolCallId"]))).collect()
}

fn permissions(replay: &Replay) -> impl Iterator<Item = &Value> {
    let asks = |it: &&Value| it["method"] == "session/request_permission";
    replay.received.iter().filter(asks).map(|it| &it["params"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// How the turns ended: a stop reason or an error code.
fn endings(replay: &Replay) -> Vec<String> {
    let ending = |it: &Value| match it.get("error") {
        Some(error) => error["code"].to_string(),
        None => text(&it["result"]["stopReason"]).to_owned(),
    };
    replay.outcomes.iter().map(ending).collect()
}

#[test]
fn echoed_protocol_version_is_replaced_by_version_1() {
    let mut world = ReplayWorld::new();
    let conn = world.connect();
    let note = json!({ "method": "_jackfield/connect", "params": { "agent": AGENT } });
    world.client_sends(conn, &note.to_string());
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 99 } });
    world.client_sends(conn, &hello.to_string());
    let asked: Value = serde_json::from_str(&world.agent_receives("goose")).unwrap();
    assert_eq!(asked["params"]["protocolVersion"], 1);
    // This is goose's reply to version 99; it speaks version 1.
    let echo = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "protocolVersion": 99 } });
    world.agent_sends(&echo.to_string(), "goose");
    let received: Value = serde_json::from_str(&world.client_receives(conn, "goose")).unwrap();
    assert_eq!(received["result"]["protocolVersion"], 1);
}

#[test]
fn agent_request_ids_come_back_unchanged() {
    // Every replay checks that the answer has the spelling of the request id.
    for agent in ["auggie", "claude-agent-acp", "cline", "copilot", "gemini", "qwen"] {
        assert!(main_of(agent).answered.contains_key("0"), "{agent}");
    }
    let goose = main_of("goose");
    assert_eq!(goose.answered.len(), 4);
    assert!(goose.answered.keys().all(|it| it.starts_with('"')), "{:?}", goose.answered.keys());
}

#[test]
fn gemini_asks_permission_for_an_unannounced_tool_call() {
    let gemini = main_of("gemini");
    let asked = permissions(&gemini).next().expect("it asks");
    let id = text(&asked["toolCall"]["toolCallId"]);
    let calls = tool_calls(&gemini);
    let kinds: Vec<&str> = calls.iter().filter(|it| it.1 == id).map(|it| it.0).collect();
    assert_eq!(kinds, ["tool_call_update"], "and it never sends `tool_call`");
}

#[test]
fn cline_updates_a_tool_call_before_it_makes_it() {
    let cline = main_of("cline");
    let calls = tool_calls(&cline);
    assert_eq!(calls.len(), 12);
    for calls in calls.chunks(4) {
        let kinds: Vec<&str> = calls.iter().map(|it| it.0).collect();
        assert_eq!(
            kinds,
            ["tool_call_update", "tool_call_update", "tool_call", "tool_call_update"]
        );
    }
}

#[test]
fn old_claude_code_acp_makes_every_tool_call_twice() {
    let claude = main_of("zed-claude-code-acp");
    let calls = tool_calls(&claude);
    let made: Vec<&str> = calls.iter().filter(|it| it.0 == "tool_call").map(|it| it.1).collect();
    assert_eq!(made.len(), 6);
    assert!(made.chunks(2).all(|pair| pair[0] == pair[1]), "{made:?}");
}

#[test]
fn tool_calls_lack_a_status_or_a_kind_and_some_never_end() {
    let made = |replay: &Replay, member: &str| -> usize {
        let made = updates(replay).filter(|it| it["sessionUpdate"] == "tool_call");
        made.filter(|it| it.get(member).is_some()).count()
    };
    let (goose, hermes, fast) = (main_of("goose"), main_of("hermes"), main_of("fast-agent"));
    assert_eq!((made(&goose, "status"), made(&goose, "kind")), (0, 0));
    assert_eq!((made(&hermes, "status"), made(&hermes, "kind")), (0, 3));
    let calls = |replay: &Replay| {
        let ids = tool_calls(replay).into_iter().map(|it| it.1.to_owned());
        ids.collect::<BTreeSet<_>>().len()
    };
    let ended = |replay: &Replay| updates(replay).filter(|it| it["status"] == "completed").count();
    assert_eq!((calls(&hermes), ended(&hermes)), (3, 2), "the write was permitted and never ended");
    assert_eq!((calls(&fast), ended(&fast)), (3, 1));
    assert_eq!(tool_calls(&main_of("zed-codex-acp")), [], "it runs tools without tool calls");
}

#[test]
fn permission_tool_call_may_be_a_bare_id_or_unknown() {
    let vibe = main_of("vibe");
    let asked = permissions(&vibe).next().expect("it asks");
    // The hub adds the title from the tool call before.
    let members: Vec<&String> = asked["toolCall"].as_object().expect("a call").keys().collect();
    assert_eq!(members, ["toolCallId", "title"], "{asked}");
    for agent in ["hermes", "auggie", "openhands"] {
        let replay = main_of(agent);
        let calls = tool_calls(&replay);
        for asked in permissions(&replay) {
            let id = text(&asked["toolCall"]["toolCallId"]);
            assert!(calls.iter().all(|it| it.1 != id), "{agent}: {id} is a tool call of its own");
        }
    }
    let agent_session = Recording::read("openhands/main").session().expect("it opens one");
    let openhands = main_of("openhands");
    let named = permissions(&openhands).map(|it| text(&it["toolCall"]["toolCallId"]));
    let named = named.filter(|it| it.ends_with(&agent_session));
    assert_eq!(named.count(), 2, "it has the session's name in it, which is left alone");
}

#[test]
fn several_options_are_of_the_same_kind() {
    let options = |agent: &str, kind: &str| -> Vec<String> {
        let replay = main_of(agent);
        let asked = permissions(&replay).next().expect("it asks").clone();
        let options = asked["options"].as_array().expect("options").iter();
        let same_kind = options.filter(|it| it["kind"] == kind);
        same_kind.map(|it| text(&it["optionId"]).to_owned()).collect()
    };
    assert_eq!(options("openhands", "allow_once"), ["accept", "risk_based"]);
    assert_eq!(options("vibe", "allow_always"), ["allow_always", "allow_always_permanent"]);
    let qwen = options("qwen", "allow_once");
    assert_eq!(qwen, ["proceed_once", "proceed_once_and_switch_to_default"]);
    assert_eq!(options("claude-agent-acp", "allow_always"), [""; 0], "for a shell command");
}

#[test]
fn qwen_sends_an_unknown_request_to_the_client() {
    let qwen = main_of("qwen");
    let asked = qwen.received.iter().filter(|it| it["method"] == "craft/drainMidTurnQueue");
    assert_eq!(asked.count(), 1);
    assert_eq!(qwen.answered["0"]["error"]["code"], -32601);
}

#[test]
fn unknown_notifications_are_delivered_during_restore() {
    let received = |replay: &Replay| {
        replay.received.iter().filter(|it| it["method"] == "_auth/status_update").count()
    };
    for agent in ["claude-agent-acp", "codex-acp"] {
        assert_eq!(received(&main_of(agent)), 1, "{agent}");
        for way in ["load", "resume"] {
            let name = format!("{agent}/{way}");
            assert_eq!(received(&RestoreReplay::run(&name).replay), 1, "{name}");
        }
    }
}

#[test]
fn auggie_asks_permission_to_index_first() {
    let auggie = main_of("auggie");
    let asked = permissions(&auggie).next().expect("it asks");
    assert_eq!(asked["toolCall"]["toolCallId"], "workspace-indexing-permission");
    assert_eq!(auggie.answered["0"]["result"]["outcome"]["optionId"], "session-enable");
}

#[test]
fn empty_chunks_and_banners_are_delivered() {
    let empty = |agent: &str| {
        let replay = main_of(agent);
        updates(&replay).filter(|it| it["content"]["text"] == "").count()
    };
    assert_eq!((empty("zed-claude-code-acp"), empty("qwen")), (11, 9));
    assert!(0 < empty("fast-agent"));
    let pi = main_of("pi");
    let first = updates(&pi).next().expect("it speaks");
    assert!(text(&first["content"]["text"]).starts_with("pi v"), "{first}");
}

#[test]
fn vibe_echoes_every_prompt_during_the_turn() {
    let vibe = main_of("vibe");
    let echoes = updates(&vibe).filter(|it| it["sessionUpdate"] == "user_message_chunk");
    assert_eq!(echoes.count(), vibe.outcomes.len());
}

#[test]
fn updates_before_session_opens_and_after_turn_ends_are_kept() {
    let kinds = |lines: &[RecordedLine]| -> Vec<String> {
        let notes = lines.iter().filter(|it| !it.update().is_empty());
        notes.map(|it| it.update().to_owned()).collect()
    };
    for (agent, kind) in [
        ("copilot", "available_commands_update"),
        ("crow", "available_commands_update"),
        ("vibe", "usage_update"),
    ] {
        let recording = Recording::read(&format!("{agent}/main"));
        let asked =
            recording.lines.iter().position(|it| it.method() == "session/new").expect("asked");
        let opened =
            recording.lines.iter().position(|it| it.message["result"]["sessionId"].is_string());
        let early = kinds(&recording.lines[asked..opened.expect("opened")]);
        assert_eq!(early, [kind], "{agent}");
        let first = main_of(agent);
        assert_eq!(updates(&first).next().expect("received")["sessionUpdate"], kind, "{agent}");
    }
    let kimi = Recording::read("kimi-code/main");
    let ended =
        kimi.lines.windows(2).filter(|it| it[0].message["result"]["stopReason"].is_string());
    assert_eq!(ended.filter(|it| it[1].update() == "usage_update").count(), 6);
}

#[test]
fn gemini_replays_after_its_response_to_load() {
    assert_eq!(RestoreReplay::run("gemini/load").replayed, [1, 21]);
    assert_eq!(RestoreReplay::run("gemini/load-2-load-after-65s").replayed, [1, 7]);
}

#[test]
fn some_agents_replay_on_resume() {
    let replays = |agent: &str| RestoreReplay::run(&format!("{agent}/resume")).replayed[0];
    assert_eq!((replays("fast-agent"), replays("hermes")), (21, 26));
    assert_eq!((replays("claude-agent-acp"), replays("opencode")), (0, 0));
}

#[test]
fn rejected_api_key_is_an_error_code_or_a_normal_turn_end() {
    for (agent, expected) in [
        ("claude-agent-acp", "-32000"),
        ("cline", "-32000"),
        ("codex-acp", "-32000"),
        ("goose", "-32000"),
        ("kimi-code", "-32000"),
        ("crow", "-32603"),
        ("kilo", "-32603"),
        ("opencode", "-32603"),
        ("openhands", "-32603"),
        ("qwen", "-32603"),
        ("gemini", "401"),
        ("vibe", "-31002"),
        ("copilot", "end_turn"),
        ("hermes", "end_turn"),
        ("pi", "end_turn"),
        ("fast-agent", "refusal"),
    ] {
        // The last but one prompt of each recording makes the model answer 401.
        let endings = endings(&main_of(agent));
        assert_eq!(endings[endings.len() - 2], expected, "{agent}");
    }
}

#[test]
fn usage_is_in_the_result_or_its_meta_or_absent() {
    let has = |agent: &str, path: &str| main_of(agent).outcomes[0].pointer(path).is_some();
    for agent in ["claude-agent-acp", "codex-acp", "copilot", "goose", "hermes", "opencode", "vibe"]
    {
        assert!(has(agent, "/result/usage"), "{agent}");
    }
    assert!(has("gemini", "/result/_meta/quota"));
    for agent in ["cline", "openhands", "zed-claude-code-acp"] {
        assert!(!has(agent, "/result/usage") && !has(agent, "/result/_meta"), "{agent}");
    }
}

#[test]
fn cancelled_turns_say_so_and_ended_turns_get_no_cancel() {
    let cancelled = |agent: &str| endings(&main_of(agent)).contains(&"cancelled".to_owned());
    for agent in ["claude-agent-acp", "gemini", "goose", "kilo", "opencode", "vibe", "pi"] {
        assert!(cancelled(agent), "{agent}");
    }
    // Their turn had ended when the client cancelled: the replay checks that they receive no cancel.
    for agent in ["openhands", "py-sdk-echo", "auggie"] {
        assert!(!cancelled(agent), "{agent}");
    }
}

#[test]
fn gemini_fails_to_create_a_file_reported_as_missing() {
    let written = |case: &str| {
        let name = format!("gemini/{case}");
        let replay = Replay::run(&name, ClientKind::Recorded);
        let ended: Vec<_> =
            updates(&replay).filter_map(|it| it["status"].as_str()).map(str::to_owned).collect();
        ended.last().cloned().unwrap_or_default()
    };
    assert_eq!(written("fs-enoent"), "failed");
    assert_eq!(written("fs-spec-32002"), "failed");
    assert_eq!(written("fs-empty"), "completed");
    assert_eq!(written("fs-nofs"), "completed");
}
