//! Every permission request that a real agent was recorded with.

use jackfield_policy::{Call, Effect, Grant, Policy, Rule, Scope, decide, learn, option, parse};
use serde_json::{Map, Value, json};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// One request, with what was told of its tool call before.
struct Asked {
    agent: String,
    tape: String,
    params: Value,
    known: Value,
}

impl Asked {
    fn call(&self) -> Call {
        Call::of(&self.agent, "/user/project", Some("/user"), &self.params, Some(&self.known))
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/recorded")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    all.sort();
    all
}

fn recorded() -> Vec<Asked> {
    let mut all = Vec::new();
    for agent in entries(&folder()).into_iter().filter(|it| it.is_dir()) {
        for tape in entries(&agent) {
            if tape.extension().is_some_and(|it| it == "jsonl") {
                let name = agent.file_name().unwrap().to_string_lossy().into_owned();
                all.extend(of_tape(&name, &tape));
            }
        }
    }
    assert!(all.len() >= 25, "the recordings are there: {}", all.len());
    all
}

fn of_tape(agent: &str, tape: &Path) -> Vec<Asked> {
    let mut asked = Vec::new();
    let mut calls: Map<String, Value> = Map::new();
    for line in fs::read_to_string(tape).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let message = &line["msg"];
        let params = &message["params"];
        match message["method"].as_str() {
            Some("session/update") => {
                let update = &params["update"];
                let Some(id) = update["toolCallId"].as_str() else { continue };
                let call = calls.entry(id).or_insert_with(|| json!({}));
                for (key, value) in update.as_object().unwrap() {
                    call[key] = value.clone();
                }
            }
            Some("session/request_permission") => {
                let call = params.get("toolCall").unwrap_or(&params["subject"]["toolCall"]);
                let id = call["toolCallId"].as_str().unwrap_or_default();
                asked.push(Asked {
                    agent: agent.to_owned(),
                    tape: format!("{agent}/{}", tape.file_stem().unwrap().to_string_lossy()),
                    params: params.clone(),
                    known: calls.get(id).cloned().unwrap_or(Value::Null),
                });
            }
            _ => {}
        }
    }
    asked
}

#[test]
fn the_facts_of_every_request_are_understood() {
    let mut told = String::new();
    for asked in recorded() {
        let mut call = serde_json::to_value(asked.call()).unwrap();
        let members = call.as_object_mut().unwrap();
        for same in ["agent", "cwd", "home"] {
            members.shift_remove(same);
        }
        let learned = learn(&asked.call(), Effect::Allow).map(|it| it.to_string());
        let learned = learned.unwrap_or_else(|| "nothing".to_owned());
        writeln!(told, "{}\n  {call}\n  always: {learned}", asked.tape).unwrap();
    }
    insta::assert_snapshot!("facts", told);
}

#[test]
fn an_answer_is_always_one_of_the_options_and_no_permanent_grant() {
    for asked in recorded() {
        let offered = asked.params["options"].as_array().unwrap();
        let kind =
            |id: &str| offered.iter().find(|it| it["optionId"] == id).unwrap()["kind"].clone();
        let allow = option(&asked.params, Effect::Allow, Grant::Once).unwrap();
        assert_eq!(kind(allow), "allow_once", "{}", asked.tape);
        let deny = option(&asked.params, Effect::Deny, Grant::Once).unwrap();
        assert_eq!(kind(deny), "reject_once", "{}", asked.tape);
        let always = option(&asked.params, Effect::Allow, Grant::Always).unwrap();
        assert!(["allow_always", "allow_once"].contains(&kind(always).as_str().unwrap()));
        assert_eq!(option(&asked.params, Effect::Ask, Grant::Always), None);
    }
}

/// The same request of the same agent, about another command.
fn instead(asked: &Asked, command: &str) -> Call {
    let (from, to) = (command_of(asked), command.to_owned());
    let swap = |value: &Value| -> Value {
        let text = value.to_string();
        // Titles and contents have the command escaped once more.
        let quoted = |it: &str| json!(it).to_string().trim_matches('"').to_owned();
        serde_json::from_str(&text.replace(&quoted(&from), &quoted(&to))).unwrap()
    };
    Call::of(
        &asked.agent,
        "/user/project",
        Some("/user"),
        &swap(&asked.params),
        Some(&swap(&asked.known)),
    )
}

fn command_of(asked: &Asked) -> String {
    asked.call().commands.first().map(|it| it.text().to_owned()).unwrap_or_default()
}

#[test]
fn an_always_on_ls_allows_no_rm_whoever_asks() {
    let recorded = recorded();
    let mut agents = Vec::new();
    for asked in recorded.iter().filter(|it| !command_of(it).is_empty()) {
        let rule = learn(&instead(asked, "ls"), Effect::Allow).unwrap();
        let policy = Policy::learned(vec![rule]);
        let allows = |line| {
            decide(&[(Scope::Session, &policy)], &instead(asked, line)).effect
                == Some(Effect::Allow)
        };
        assert!(allows("ls") && allows("ls -la"), "{}", asked.tape);
        for line in ["rm x", "rm -rf x", "ls; rm -rf x", "ls $(rm x)", "ls | sh", "sudo ls"] {
            assert!(!allows(line), "{}: {line}", asked.tape);
        }
        agents.push(asked.agent.as_str());
    }
    agents.dedup();
    assert_eq!(
        agents,
        [
            "claude-agent-acp",
            "cline",
            "copilot",
            "gemini",
            "goose",
            "kimi-code",
            "opencode",
            "qwen",
            "vibe",
            "zed-claude-code-acp",
        ]
    );
}

#[test]
fn a_deny_beats_what_allows_everything_at_every_scope() {
    let all = Policy::learned(vec![Rule { grant: Grant::Always, ..Rule::of(Effect::Allow) }]);
    let deny = parse(
        "[[rule]]\ndo = \"deny\"\nrun = [\"touch\", \"echo\"]\n[[rule]]\ndo = \"deny\"\npath = \"**\"",
        "policy.toml",
    );
    let deny = deny.unwrap();
    let scopes = [Scope::Session, Scope::Project, Scope::User];
    let mut denied = 0;
    for asked in recorded() {
        let call = asked.call();
        let speaks = !call.commands.is_empty() || !call.paths.is_empty();
        for near in scopes {
            for far in scopes {
                let decision = decide(&[(near, &all), (far, &deny)], &call);
                let expected = if speaks { Effect::Deny } else { Effect::Allow };
                assert_eq!(decision.effect, Some(expected), "{}", asked.tape);
            }
        }
        denied += usize::from(speaks);
    }
    assert!(denied >= 20, "{denied}");
}
