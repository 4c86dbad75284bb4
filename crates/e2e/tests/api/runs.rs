//! Runs from their prompt to their end.

use super::{
    BOUND, assert_whole, body, events, install, make, names, serve, serve_with, status, text, until,
};
use jackfield_e2e::{Home, wait_for};
use serde_json::json;
use std::{
    fs,
    process::{Command, Stdio},
};

/// What `curl -N` prints of a chat.
fn curl(home: &Home, web: &jackfield_e2e::Web, body: &serde_json::Value) -> String {
    let output = Command::new("curl")
        .args(["-sN", "--max-time", "60", "-H", "Content-Type: application/json"])
        .args(["-H", &format!("Authorization: Bearer {}", web.token)])
        .args(["-d", &body.to_string(), &format!("http://{}/api/chat", web.address)])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("curl is here");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Prints what `codex exec --json` prints.
const SCRIPT: &str = r#"#!/bin/sh
prompt=$(cat)
echo '{"type":"thread.started","thread_id":"thread-of-its-own"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"argv: '"$*"'"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":0,"output_tokens":7}}'
"#;

#[test]
fn curl_hears_a_chat_of_an_acp_agent_and_of_an_adapted_cli_from_start_to_end() {
    let home = Home::new();
    install(&home, "script", "codex", SCRIPT);
    let (daemon, web) = serve(&home, &["--usage", "current"]);
    let told =
        curl(&home, &web, &json!({ "agentId": "fake", "message": "hello", "projectId": "p1" }));
    assert!(told.starts_with("id: 1\nevent: start\ndata: {\"runId\":\"r-"), "{told}");
    assert!(
        told.contains("\"agentId\":\"fake\"") && told.contains("\"projectId\":\"p1\""),
        "{told}"
    );
    assert!(
        told.contains("event: agent\ndata: {\"type\":\"text_delta\",\"delta\":\"you said: "),
        "{told}"
    );
    assert!(told.contains("\"type\":\"usage\""), "{told}");
    let end = told.trim_end().rsplit("\n\n").next().unwrap();
    assert!(
        end.contains("event: end\ndata: {\"code\":0,\"signal\":null,\"status\":\"succeeded\""),
        "{told}"
    );
    assert!(home.path().join("state/projects/p1").is_dir());

    let body = json!({ "agentId": "script", "message": "hello", "model": "some-model" });
    let told = curl(&home, &web, &body);
    assert!(told.contains("\"streamFormat\":\"json-event-stream\""), "{told}");
    assert!(told.contains("\"delta\":\"argv: first --model some-model\""), "{told}");
    assert!(told.contains("\"input_tokens\":5"), "{told}");
    assert!(told.contains("\"status\":\"succeeded\",\"stopReason\":\"end_turn\""), "{told}");
    daemon.stop();
}

#[test]
fn bare_text_is_stdout_and_a_death_has_its_last_words() {
    let home = Home::new();
    install(&home, "bare", "plain", "#!/bin/sh\ncat >/dev/null\necho one; echo two\n");
    let (daemon, web) = serve(&home, &[]);
    let mut chat =
        web.stream("POST", "/api/chat", &[], Some(&json!({ "agentId": "bare", "message": "x" })));
    let told = chat.rest();
    assert_whole(&told);
    let said: String = told
        .iter()
        .filter(|it| it.name == "stdout")
        .map(|it| it.json()["chunk"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(said.trim_end(), "one\ntwo");
    let (run, _) = make(&web, &body("stderr no key\ndie 3"));
    let told = events(&web, &run);
    assert_whole(&told);
    let stderr = told.iter().find(|it| it.name == "stderr").unwrap();
    assert!(stderr.json()["chunk"].as_str().unwrap().contains("no key"));
    let error = &told[told.len() - 2];
    assert_eq!(error.json()["error"]["code"], "AGENT_CONNECTION_DROPPED");
    let end = told.last().unwrap().json();
    assert_eq!((&end["code"], &end["status"]), (&json!(3), &json!("failed")));
    drop(chat);
    daemon.stop();
}

#[test]
fn a_run_is_listed_shown_and_goes_on_in_its_session() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (first, session) = make(&web, &body("hello"));
    assert!(first.starts_with(&format!("r-{}-", &session[2..])));
    until(&web, &first, "succeeded");
    let again = json!({ "sessionId": session, "message": "count" });
    let (second, same) = make(&web, &again);
    assert_eq!(same, session);
    let told = events(&web, &second);
    assert_whole(&told);
    assert_eq!(text(&told), "count 2");
    let path = format!("/api/sessions/{session}/prompt");
    let third = web.post(&path, &json!({ "message": "count" })).good();
    let third = third["runId"].as_str().unwrap();
    until(&web, third, "succeeded");
    let ids = |path: &str| -> Vec<String> {
        let runs = web.get(path).good();
        let runs = runs["runs"].as_array().unwrap().clone();
        runs.iter().map(|it| it["runId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("/api/runs"), [third, &second, &first]);
    assert_eq!(ids(&format!("/api/runs?sessionId={session}")), [third, &second, &first]);
    assert!(ids("/api/runs?status=active").is_empty());
    let shown = web.get(&format!("/api/runs/{second}")).good();
    assert_eq!((&shown["turn"], &shown["stopReason"]), (&json!(2), &json!("end_turn")));
    daemon.stop();
}

#[test]
fn a_run_is_canceled_while_it_works_and_while_it_waits() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (works, session) = make(&web, &body("hang"));
    until(&web, &works, "running");
    let next = json!({ "sessionId": session, "message": "two" });
    let (waits, _) = make(&web, &next);
    let (after, _) = make(&web, &json!({ "sessionId": session, "message": "three" }));
    assert_eq!(status(&web, &waits), "queued");
    let mut reader = web.stream("GET", &format!("/api/runs/{waits}/events"), &[], None);
    assert_eq!(reader.next().unwrap().name, "start");
    let cancel = |run: &str| web.post(&format!("/api/runs/{run}/cancel"), &json!({})).good();
    assert_eq!(cancel(&waits), json!({ "ok": true }));
    let rest = reader.rest();
    assert_eq!(rest.last().unwrap().json()["status"], "canceled");
    assert_eq!(status(&web, &works), "running");
    cancel(&works);
    let told = events(&web, &works);
    assert_whole(&told);
    let end = told.last().unwrap().json();
    assert_eq!((&end["status"], &end["stopReason"]), (&json!("canceled"), &json!("cancelled")));
    // What waited behind them runs all the same.
    assert_eq!(text(&events(&web, &after)), "you said: three");
    assert_eq!(cancel(&after), json!({ "ok": true }), "over is over");
    assert_eq!(status(&web, &after), "succeeded");
    drop(reader);
    daemon.stop();
}

#[test]
fn chat_ends_its_agent_unless_it_is_kept_and_unknown_members_are_stored() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let mut chat = body("hello");
    chat["conversationId"] = json!("c1");
    chat["clientRequestId"] = json!(null);
    chat["agent_id"] = json!("x");
    let told = web.stream("POST", "/api/chat", &[], Some(&chat)).rest();
    assert_whole(&told);
    let start = told[0].json();
    assert_eq!(start["metadata"], json!({ "conversationId": "c1", "agent_id": "x" }));
    assert!(start["warnings"][0].as_str().unwrap().contains("`agentId`"), "{start}");
    let session = start["sessionId"].as_str().unwrap();
    let agents = || web.get("/readyz").good()["agents"].clone();
    wait_for("the agent to end", BOUND, || (agents() == 0).then_some(()));
    assert_eq!(web.get(&format!("/api/sessions/{session}")).good()["state"], "closed");
    let filtered = |query: &str| {
        let runs = web.get(&format!("/api/runs?{query}")).good();
        runs["runs"].as_array().unwrap().len()
    };
    assert_eq!((filtered("conversationId=c1"), filtered("conversationId=c2")), (1, 0));
    // A prompt restores the session, and its agent stays.
    let (again, _) = make(&web, &json!({ "sessionId": session, "message": "hello" }));
    until(&web, &again, "succeeded");
    let mut kept = body("hello");
    kept["keep"] = json!(true);
    web.stream("POST", "/api/chat", &[], Some(&kept)).rest();
    assert_eq!(agents(), 2);
    daemon.stop();
}

#[test]
fn asks_wait_in_the_inbox_unless_the_run_says_how_they_are_answered() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, session) = make(&web, &body("ask"));
    let ask = wait_for("the ask", BOUND, || web.get("/api/asks").good()["asks"].get(0).cloned());
    assert_eq!(ask["sessionId"], session.as_str());
    let path = format!("/api/asks/{session}/{}", ask["ask"]);
    web.post(&path, &json!({ "option": "deny" })).good();
    let told = events(&web, &run);
    assert_eq!(text(&told), "ask 1: reject-once");
    let kinds: Vec<String> =
        told.iter().filter_map(|it| Some(it.json()["type"].as_str()?.to_owned())).collect();
    assert!(
        kinds.contains(&"permission_request".into())
            && kinds.contains(&"permission_response".into())
    );
    for (approve, answer) in [("all", "allow-once"), ("none", "reject-once")] {
        let body = json!({ "sessionId": session, "message": "ask", "approve": approve });
        let (run, _) = make(&web, &body);
        assert_eq!(text(&events(&web, &run)), format!("ask 1: {answer}"), "{approve}");
    }
    daemon.stop();
}

#[test]
fn configured_approval_takes_what_is_offered_or_fails_the_run_with_the_name_of_the_request() {
    let home = Home::new();
    let (daemon, web) = serve_with(&home, &[], "[http]\napprove = \"all\"\n");
    let (run, session) = make(&web, &body("ask-offering reject-once approve_for_session"));
    assert_eq!(text(&events(&web, &run)), "ask 1: approve_for_session");
    let next = |message: &str| json!({ "sessionId": session, "message": message });
    let (run, _) = make(&web, &next("ask-offering reject-once allow-always"));
    assert_eq!(text(&events(&web, &run)), "ask 1: allow-always");
    let (run, _) = make(&web, &next("ask-offering reject-once"));
    let told = events(&web, &run);
    let error = told.iter().find(|it| it.name == "error").expect("the run has failed").json();
    let expected = "permission request `touch a file` was not approved: no option allows it; the agent \
                    offers `reject-once` (reject_once)";
    assert_eq!(error["message"], expected);
    assert_eq!(told.last().unwrap().json()["status"], "failed");
    // A request may ask for a person all the same.
    let mut asking = body("ask");
    asking["approve"] = json!("ask");
    let (run, session) = make(&web, &asking);
    let ask = wait_for("the ask", BOUND, || web.get("/api/asks").good()["asks"].get(0).cloned());
    web.post(&format!("/api/asks/{session}/{}", ask["ask"]), &json!({ "option": "allow" })).good();
    assert_eq!(text(&events(&web, &run)), "ask 1: allow-once");
    daemon.stop();
}

#[test]
fn model_reasoning_and_mode_are_set_before_the_prompt() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let mut chosen = body("model\neffort\nmode");
    chosen["model"] = json!("fake-smart");
    chosen["reasoning"] = json!("high");
    chosen["mode"] = json!("plan");
    let (run, _) = make(&web, &chosen);
    let told = events(&web, &run);
    let start = told[0].json();
    assert_eq!((&start["model"], &start["reasoning"]), (&json!("fake-smart"), &json!("high")));
    let said = text(&told);
    assert!(
        said.contains("fake-smart") && said.contains("high") && said.contains("plan"),
        "{said}"
    );
    daemon.stop();
}

#[test]
fn a_prompt_is_put_together_from_what_an_app_knows() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let project = home.path().join("state/projects/p1");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("notes.md"), "").unwrap();
    fs::create_dir_all(home.path().join("state/uploads")).unwrap();
    let image = home.path().join("state/uploads/a.png");
    fs::write(&image, "png").unwrap();
    let (run, _) = make(
        &web,
        &json!({
            "agentId": "fake", "message": "Do it", "projectId": "p1", "systemPrompt": "Be brief.",
            "attachments": ["notes.md"], "imagePaths": [image],
        }),
    );
    let said = text(&events(&web, &run));
    let order = ["Be brief.", "Your working directory is", "- notes.md", "Attached files", "Do it"];
    let places: Vec<Option<usize>> = order.iter().map(|it| said.find(it)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{said}");
    assert!(!names(&events(&web, &run)).contains(&"error"));
    daemon.stop();
}
