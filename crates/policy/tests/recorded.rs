//! Every recorded permission request of real agents.

use jackfield_policy::{
    GrantDuration, Policy, Rule, RuleEffect, RuleScope, ToolCallFacts, evaluate_rules, learn_rule,
    parse_policy, select_option,
};
use serde_json::{Map, Value, json};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// One request, and its tool call according to earlier updates.
struct RecordedRequest {
    agent: String,
    tape: String,
    params: Value,
    known: Value,
}

impl RecordedRequest {
    fn call(&self) -> ToolCallFacts {
        ToolCallFacts::from_request(
            &self.agent,
            "/user/project",
            Some("/user"),
            &self.params,
            Some(&self.known),
        )
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    all.sort();
    all
}

fn recorded() -> Vec<RecordedRequest> {
    let mut all = Vec::new();
    for agent in entries(&folder()).into_iter().filter(|it| it.is_dir()) {
        for tape in entries(&agent) {
            if tape.extension().is_some_and(|it| it == "jsonl") {
                let name = agent.file_name().unwrap().to_string_lossy().into_owned();
                all.extend(requests_of_tape(&name, &tape));
            }
        }
    }
    assert!(all.len() >= 25, "only {} recordings found", all.len());
    all
}

fn requests_of_tape(agent: &str, tape: &Path) -> Vec<RecordedRequest> {
    let mut request = Vec::new();
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
                request.push(RecordedRequest {
                    agent: agent.to_owned(),
                    tape: format!("{agent}/{}", tape.file_stem().unwrap().to_string_lossy()),
                    params: params.clone(),
                    known: calls.get(id).cloned().unwrap_or(Value::Null),
                });
            }
            _ => {}
        }
    }
    request
}

#[test]
fn facts_of_every_recorded_request_match_the_snapshot() {
    let mut facts = String::new();
    for request in recorded() {
        let mut call = serde_json::to_value(request.call()).unwrap();
        let members = call.as_object_mut().unwrap();
        for same in ["agent", "cwd", "home"] {
            members.shift_remove(same);
        }
        let learned = learn_rule(&request.call(), RuleEffect::Allow).map(|it| it.to_string());
        let learned = learned.unwrap_or_else(|| "nothing".to_owned());
        writeln!(facts, "{}\n  {call}\n  always: {learned}", request.tape).unwrap();
    }
    insta::assert_snapshot!("facts", facts);
}

#[test]
fn answer_is_an_offered_option_and_not_a_permanent_grant() {
    for request in recorded() {
        let offered = request.params["options"].as_array().unwrap();
        let kind =
            |id: &str| offered.iter().find(|it| it["optionId"] == id).unwrap()["kind"].clone();
        let allow = select_option(&request.params, RuleEffect::Allow, GrantDuration::Once).unwrap();
        assert_eq!(kind(allow), "allow_once", "{}", request.tape);
        let deny = select_option(&request.params, RuleEffect::Deny, GrantDuration::Once).unwrap();
        assert_eq!(kind(deny), "reject_once", "{}", request.tape);
        let always =
            select_option(&request.params, RuleEffect::Allow, GrantDuration::Always).unwrap();
        assert!(["allow_always", "allow_once"].contains(&kind(always).as_str().unwrap()));
        assert_eq!(select_option(&request.params, RuleEffect::Ask, GrantDuration::Always), None);
    }
}

/// The same request of the same agent, about another command.
fn with_command(request: &RecordedRequest, command: &str) -> ToolCallFacts {
    let (from, to) = (command_of(request), command.to_owned());
    let swap = |value: &Value| -> Value {
        let text = value.to_string();
        // Titles and contents have the command escaped once more.
        let quoted = |it: &str| json!(it).to_string().trim_matches('"').to_owned();
        serde_json::from_str(&text.replace(&quoted(&from), &quoted(&to))).unwrap()
    };
    ToolCallFacts::from_request(
        &request.agent,
        "/user/project",
        Some("/user"),
        &swap(&request.params),
        Some(&swap(&request.known)),
    )
}

fn command_of(request: &RecordedRequest) -> String {
    request.call().commands.first().map(|it| it.text().to_owned()).unwrap_or_default()
}

#[test]
fn rule_learned_from_ls_allows_no_rm_for_any_agent() {
    let recorded = recorded();
    let mut agents = Vec::new();
    for request in recorded.iter().filter(|it| !command_of(it).is_empty()) {
        let rule = learn_rule(&with_command(request, "ls"), RuleEffect::Allow).unwrap();
        let policy = Policy::from_learned_rules(vec![rule]);
        let allows = |line| {
            evaluate_rules(&[(RuleScope::Session, &policy)], &with_command(request, line)).effect
                == Some(RuleEffect::Allow)
        };
        assert!(allows("ls") && allows("ls -la"), "{}", request.tape);
        for line in ["rm x", "rm -rf x", "ls; rm -rf x", "ls $(rm x)", "ls | sh", "sudo ls"] {
            assert!(!allows(line), "{}: {line}", request.tape);
        }
        agents.push(request.agent.as_str());
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
fn deny_beats_a_general_allow_of_every_scope() {
    let all = Policy::from_learned_rules(vec![Rule {
        grant: GrantDuration::Always,
        ..Rule::for_every_call(RuleEffect::Allow)
    }]);
    let deny = parse_policy(
        "[[rule]]\ndo = \"deny\"\nrun = [\"touch\", \"echo\"]\n[[rule]]\ndo = \"deny\"\npath = \"**\"",
        "policy.toml",
    );
    let deny = deny.unwrap();
    let scopes = [RuleScope::Session, RuleScope::Project, RuleScope::User];
    let mut denied = 0;
    for request in recorded() {
        let call = request.call();
        let is_matched = !call.commands.is_empty() || !call.paths.is_empty();
        for near in scopes {
            for far in scopes {
                let decision = evaluate_rules(&[(near, &all), (far, &deny)], &call);
                let expected = if is_matched { RuleEffect::Deny } else { RuleEffect::Allow };
                assert_eq!(decision.effect, Some(expected), "{}", request.tape);
            }
        }
        denied += usize::from(is_matched);
    }
    assert!(denied >= 20, "{denied}");
}
