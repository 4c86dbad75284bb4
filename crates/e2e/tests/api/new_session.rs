//! Sessions that are opened over HTTP without a prompt, and what a client can choose for them.

use super::{BOUND, events, serve_with, text};
use jackfield_e2e::{Home, Web};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink, path::Path};

/// A daemon whose roots are one directory, with another one beside it.
fn serve_roots(home: &Home) -> (jackfield_e2e::Daemon, Web) {
    for name in ["work/parser/.git", "work/docs", "outside"] {
        fs::create_dir_all(home.path().join(name)).unwrap();
    }
    symlink(home.path().join("outside"), home.path().join("work/link")).unwrap();
    let roots = json!([home.path().join("work")]);
    let config = format!("[http]\nroots = {roots}\n[mcp.files]\ncommand = \"/bin/true\"\n");
    serve_with(home, &[], &config)
}

fn canonical(path: &Path) -> String {
    path.canonicalize().unwrap().display().to_string()
}

#[test]
fn session_is_opened_without_a_prompt_and_prompted_later() {
    let home = Home::new();
    let (daemon, web) = serve_roots(&home);
    assert_eq!(web.get("/api/mcp-servers").good(), json!({ "servers": ["files"] }));
    let cwd = canonical(&home.path().join("work/parser"));
    let new = json!({
        "agentId": "fake", "cwd": cwd, "name": "parser", "mode": "plan", "mcpServers": ["files"],
    });
    let opened = web.post("/api/sessions", &new);
    assert_eq!(opened.status, 201, "{}", opened.text());
    let opened = opened.json();
    assert_eq!([&opened["cwd"], &opened["state"]], [&json!(cwd), &json!("idle")]);
    assert_eq!(opened["turns"], 0);
    let id = opened["sessionId"].as_str().unwrap();
    let settings = web.get(&format!("/api/sessions/{id}/settings")).good();
    assert_eq!(settings["modes"]["current"], "plan");
    let run = web.post(&format!("/api/sessions/{id}/prompt"), &json!({ "message": "mcp" })).good();
    let said = text(&events(&web, run["runId"].as_str().unwrap()));
    assert!(said.contains("files"), "{said}");
    let listed = home.run(&["sessions", "show", "parser", "--format", "json"], BOUND);
    assert!(listed.status.success(), "{listed:?}");
    daemon.stop();
}

#[test]
fn session_that_cannot_be_opened_as_wanted_leaves_nothing() {
    let home = Home::new();
    let (daemon, web) = serve_roots(&home);
    let cwd = canonical(&home.path().join("work/docs"));
    let outside = canonical(&home.path().join("outside"));
    let new = |changes: Value| {
        let mut body = json!({ "agentId": "fake", "cwd": cwd });
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        web.post("/api/sessions", &body)
    };
    let refused = [
        (json!({ "name": "s-1" }), "a name does not start with"),
        (json!({ "mode": "galaxy" }), "has no mode"),
        (json!({ "agentId": "nothing" }), "unknown agent"),
        (json!({ "cwd": outside }), "not below any of the configured roots"),
        (json!({ "projectId": "p1" }), "set either"),
        (json!({ "mcpServers": ["nothing"] }), "no MCP server"),
        (json!({ "message": "hello" }), "message"),
    ];
    for (changes, why) in refused {
        let reply = new(changes.clone());
        assert_eq!(reply.status, 400, "{changes}: {}", reply.text());
        assert!(reply.text().contains(why), "{changes}: {}", reply.text());
    }
    assert_eq!(web.get("/api/sessions").good()["sessions"], json!([]));
    daemon.stop();
}

#[test]
fn sandbox_of_a_session_is_chosen_when_it_is_opened() {
    let home = Home::new();
    let (daemon, web) = serve_roots(&home);
    let profiles = web.get("/api/sandbox-profiles").good();
    assert_eq!(profiles, json!({ "profiles": ["open", "read-only", "workspace"] }));
    let cwd = canonical(&home.path().join("work/docs"));
    let new = json!({ "agentId": "fake", "cwd": cwd, "sandbox": "workspace" });
    let opened = web.post("/api/sessions", &new);
    assert_eq!(opened.status, 201, "{}", opened.text());
    let opened = opened.json();
    assert_eq!(opened["sandbox"], "workspace");
    let id = opened["sessionId"].as_str().unwrap();
    let run = |sandbox: &str| {
        let body = json!({ "sessionId": id, "message": "hi", "sandbox": sandbox });
        web.post("/api/runs", &body)
    };
    let refused = run("open");
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("has the sandbox profile `workspace`"), "{}", refused.text());
    assert_eq!(run("workspace").status, 202);
    let unknown = json!({ "agentId": "fake", "cwd": cwd, "sandbox": "nothing" });
    let refused = web.post("/api/sessions", &unknown);
    assert!(refused.text().contains("no sandbox profile `nothing`"), "{}", refused.text());
    daemon.stop();
}

#[test]
fn directory_of_another_session_can_be_used_again() {
    let home = Home::new();
    let (daemon, web) = serve_roots(&home);
    let (editor, _) = super::editor(&home);
    let body = json!({ "agentId": "fake", "cwd": canonical(home.path()) });
    assert_eq!(web.post("/api/sessions", &body).status, 201);
    drop(editor);
    daemon.stop();
}

#[test]
fn directories_are_browsed_inside_the_roots_only() {
    let home = Home::new();
    let (daemon, web) = serve_roots(&home);
    let root = canonical(&home.path().join("work"));
    let roots = web.get("/api/directories").good();
    assert_eq!((&roots["path"], &roots["directories"][0]["path"]), (&Value::Null, &json!(root)));
    assert_eq!(roots["roots"][0], root.as_str());
    let listed = web.get(&format!("/api/directories?path={root}")).good();
    let row = |name: &str, is_repository: bool| json!({ "name": name, "path": format!("{root}/{name}"), "isRepository": is_repository });
    assert_eq!(listed["directories"], json!([row("docs", false), row("parser", true)]));
    assert_eq!((&listed["parent"], &listed["hasMore"]), (&Value::Null, &json!(false)));
    for path in ["/", "/etc", "..", &format!("{root}/.."), &format!("{root}/link")] {
        let refused = web.get(&format!("/api/directories?path={path}"));
        assert_eq!(refused.status, 400, "{path}: {}", refused.text());
    }
    daemon.stop();
}
