//! `mcpServers` of a run: the forms of other programs, configured servers, and what an agent does not support.

use super::{body, events, make, serve_with, text};
use jackfield_e2e::{Home, procs};
use serde_json::{Value, json};

/// The servers that the agent reports.
fn reported(said: &str) -> Value {
    serde_json::from_str(said.strip_prefix("mcp ").unwrap()).unwrap()
}

#[test]
fn servers_of_a_run_reach_the_agent_in_the_form_of_acp_and_after_its_restart() {
    let home = Home::new();
    let config = "[mcp.files]\ncommand = \"/bin/true\"\n";
    let (daemon, web) = serve_with(&home, &[], config);
    let git = json!({ "name": "git", "command": "/bin/true", "args": ["-v"],
                      "env": [{ "name": "A", "value": "1" }] });
    let files = json!({ "name": "files", "command": "/bin/true", "args": [], "env": [] });
    let map = json!({ "git": { "command": "/bin/true", "args": ["-v"], "env": { "A": "1" } } });
    for (sent, expected) in [(map, json!([git])), (json!([git, "files"]), json!([git, files]))] {
        let mut opening = body("mcp");
        opening["mcpServers"] = sent;
        let (run, session) = make(&web, &opening);
        assert_eq!(reported(&text(&events(&web, &run))), expected);

        let row = web.get(&format!("/api/sessions/{session}")).good();
        let pid = u32::try_from(row["pid"].as_u64().unwrap()).unwrap();
        procs::kill_9(pid);
        jackfield_e2e::wait_for("the agent to be gone", super::BOUND, || {
            let row = web.get(&format!("/api/sessions/{session}")).good();
            (row["pid"].as_u64() != Some(u64::from(pid))).then_some(())
        });
        let next = json!({ "sessionId": session, "message": "mcp" });
        let (run, _) = make(&web, &next);
        assert_eq!(reported(&text(&events(&web, &run))), expected, "after a restart");
    }
    daemon.stop();
}

#[test]
fn servers_that_cannot_be_used_are_refused_with_the_reason() {
    let home = Home::new();
    let (daemon, web) = serve_with(&home, &[], "");
    let with_servers = |servers: Value| {
        let mut opening = body("mcp");
        opening["mcpServers"] = servers;
        opening
    };
    let refused = web.post("/api/runs", &with_servers(json!({ "git": {} })));
    assert_eq!(refused.status, 400, "{}", refused.text());
    let why = "MCP server `git` has neither a `command` nor a `url`";
    assert!(refused.text().contains(why), "{}", refused.text());
    let remote = json!({ "web": { "type": "sse", "url": "https://x.example/mcp" } });
    for (servers, why) in [
        (json!(["garden"]), "no MCP server `garden` is configured"),
        (remote, "MCP server `web` is reached over sse, which the agent does not support"),
    ] {
        let (run, _) = make(&web, &with_servers(servers));
        let told = events(&web, &run);
        let error = told.iter().find(|it| it.name == "error").expect("the run has failed").json();
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
    daemon.stop();
}
