//! What a console reads of sessions: matches of a search, times, changes, usage, filtered lists.

use super::{editor, serve};
use jackfield_e2e::Home;
use serde_json::{Value, json};

#[test]
fn session_is_found_timed_and_summed_and_its_changes_are_listed() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &["--usage", "current"]);
    let (mut editor, id) = editor(&home);
    assert_eq!(editor.prompt(&id, "tool\nsplit 3 needle-in-a-haystack"), "end_turn");
    let get = |path: &str| web.get(&format!("/api/sessions/{id}/{path}")).good();
    let found = get("find?text=NEEDLE-in");
    let parts: Vec<&Value> =
        found["matches"].as_array().unwrap().iter().map(|it| &it["part"]).collect();
    assert_eq!(parts, ["text", "prompt"], "{found}");
    let turn = &get("timeline")["turns"][0];
    assert_eq!((&turn["turn"], &turn["outcome"]), (&json!(1), &json!("end_turn")));
    let has_tool = turn["spans"].as_array().unwrap().iter().any(|it| it["kind"] == "tool");
    assert!(has_tool, "{turn}");
    let changes = get("changes");
    assert_eq!(changes["turns"][0]["turn"], 1, "{changes}");
    assert_eq!(changes["git"], Value::Null);
    let usage = web.get("/api/usage?by=agent&since=1d").good();
    assert_eq!(usage["groups"][0]["name"], "fake", "{usage}");
    assert_eq!(usage["sum"]["turns"], 1);
    assert_eq!(editor.prompt(&id, "again"), "end_turn");
    assert_eq!(web.get("/api/usage?by=project").good()["sum"]["turns"], 2);
    let listed = web.get("/api/sessions?state=idle&text=FAKE&sort=opened").good();
    assert_eq!(listed["sessions"][0]["sessionId"], id.as_str());
    assert_eq!(web.get("/api/sessions?agent=other").good()["sessions"], json!([]));
    drop(editor);
    daemon.stop();
}
