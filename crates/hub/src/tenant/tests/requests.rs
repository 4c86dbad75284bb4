//! What requests of a tenant without `commands` carry to an agent: a list of forms that are allowed, and
//! one of forms that are not.

use super::*;

/// `session/new` with these servers.
fn with_servers(servers: &str) -> String {
    format!(r#"{{"cwd":"/srv/x","mcpServers":{servers}}}"#)
}

/// The same with one server that has this address.
fn with_url(url: &str) -> String {
    with_servers(&json!([{ "type": "http", "name": "x", "url": url, "headers": [] }]).to_string())
}

/// Params of `session/new` with these members beside `cwd`.
fn with_members(members: &str) -> String {
    format!(r#"{{"cwd":"/srv/x",{members}}}"#)
}

/// The names of the methods that agents were sent.
fn sent_to_agents(scene: &Scene) -> Vec<String> {
    let sent = scene.outputs.iter().filter_map(|it| match it {
        Output::ToAgent { text, .. } => Frame::parse(text.clone()).ok(),
        _ => None,
    });
    sent.filter_map(|it| Some(it.method()?.into_owned())).collect()
}

/// Each form is refused with a reason, and no agent is started for it or hears of it.
#[track_caller]
fn assert_refused(method: &str, forms: &[(String, &str)]) {
    for (params, reason) in forms {
        let mut scene = Scene::new();
        let answer = scene.ask_text(ACME, method, params);
        assert!(answer["error"].is_object(), "{method} {params} is not refused: {answer}");
        assert_eq!(code(&answer), "not_allowed", "{method} {params}: {answer}");
        assert!(why(&answer).contains(reason), "{method} {params}: {answer}");
        assert!(scene.outputs.is_empty(), "{method} {params}: {:?}", scene.outputs);
    }
}

#[test]
fn mcp_servers_of_other_forms_than_http_are_refused() {
    let forms = [
        (r#"[{"name":"x","command":"/bin/sh","args":[],"env":[]}]"#, "starts a program"),
        (r#"[{"type":"stdio","name":"x","command":"/bin/sh","args":[]}]"#, "starts a program"),
        (r#"[{"type":"http","name":"x","url":"https://a.example","command":"sh"}]"#, "a program"),
        (r#"[{"name":"x","command":null}]"#, "starts a program"),
        (r#"[{"name":"x","c\u006fmmand":"sh"}]"#, "starts a program"),
        (r#"[{"name":"x","Command":"sh"}]"#, "may not have the member `Command`"),
        (r#"[{"type":"http","name":"x","url":"https://a.example","args":[]}]"#, "member `args`"),
        (r#"[{"type":"http","name":"x","url":"https://a.example","env":[]}]"#, "member `env`"),
        (r#"[{"type":"http","name":"x","url":"https://a.example","cwd":"/"}]"#, "member `cwd`"),
        (r#"[{"type":"acp","name":"x","id":"1"}]"#, "may not have the member `id`"),
        (r#"[{"type":"acp","name":"x"}]"#, "neither `http` nor `sse`"),
        (r#"[{"type":"ws","name":"x","url":"https://a.example"}]"#, "neither `http` nor `sse`"),
        (r#"[{"type":"HTTP","name":"x","url":"https://a.example"}]"#, "neither `http` nor `sse`"),
        (r#"[{"type":["http"],"name":"x","url":"https://a.example"}]"#, "neither `http`"),
        (r#"[{"name":"x","url":"https://a.example"}]"#, "neither `http` nor `sse`"),
        (r#"{"x":{"command":"/bin/sh"}}"#, "`mcpServers` is no array"),
        (r#"{"0":{"name":"x","command":"/bin/sh"}}"#, "`mcpServers` is no array"),
        (r#""/bin/sh""#, "`mcpServers` is no array"),
        ("true", "`mcpServers` is no array"),
        (r#"["/bin/sh"]"#, "is no object"),
        (r#"[[{"name":"x","command":"/bin/sh"}]]"#, "is no object"),
        ("[null]", "is no object"),
        (r#"[{"type":"http","url":"https://a.example"}]"#, "`name` of an MCP server"),
        (r#"[{"type":"http","name":"x"}]"#, "`url` of an MCP server is missing"),
        (r#"[{"type":"http","name":"x","url":["https://a.example"]}]"#, "is missing or no text"),
        (
            r#"[{"type":"http","name":"x","url":"https://a.example","_meta":{"command":"sh"}}]"#,
            "is not empty",
        ),
        (
            r#"[{"type":"http","name":"x","url":"https://a.example","headers":{"a":"b"}}]"#,
            "are no array",
        ),
        (
            r#"[{"type":"http","name":"x","url":"https://a.example","headers":[{"name":"a","value":"b\r\nc"}]}]"#,
            "of plain text",
        ),
        (
            r#"[{"type":"http","name":"x","url":"https://a.example","headers":[{"name":"a","value":"b","from":"/etc"}]}]"#,
            "may not have the member `from`",
        ),
        (
            r#"[{"type":"stdio","type":"http","name":"x","url":"https://a.example"}]"#,
            "member `type` is there twice",
        ),
    ];
    let forms = forms.map(|(servers, reason)| (with_servers(servers), reason));
    assert_refused("session/new", &forms);
    // Whatever opens a session again gives it servers, too.
    let again = forms
        .map(|(params, reason)| (params.replacen('{', r#"{"sessionId":"acme.s-1","#, 1), reason));
    for method in ["session/load", "session/resume", "session/fork"] {
        assert_refused(method, &again);
    }
}

#[test]
fn mcp_servers_on_the_machine_itself_are_refused() {
    let local = "loopback, link-local, unspecified, multicast or a metadata service";
    let notation = "not written as four decimal numbers";
    let forms = [
        ("http://127.0.0.1/mcp", local),
        ("http://127.0.0.1:8080", local),
        ("https://127.255.0.9", local),
        ("http://0.0.0.0", local),
        ("http://0.1.2.3", local),
        ("http://169.254.169.254/latest/meta-data", local),
        ("http://169.254.0.1", local),
        ("http://100.100.100.200", local),
        ("http://224.0.0.1", local),
        ("http://255.255.255.255", local),
        ("http://[::1]", local),
        ("http://[::1]:80/", local),
        ("http://[0:0:0:0:0:0:0:1]", local),
        ("http://[::]", local),
        ("http://[fe80::1]", local),
        ("http://[febf::1]", local),
        ("http://[fd00:ec2::254]", local),
        ("http://[fe80::1%25eth0]", "percent signs"),
        ("http://[::ffff:127.0.0.1]", "written as IPv6"),
        ("http://[::ffff:7f00:1]", "written as IPv6"),
        ("http://[::127.0.0.1]", "written as IPv6"),
        ("http://[64:ff9b::7f00:1]", "written as IPv6"),
        ("http://[2002:7f00:1::]", "written as IPv6"),
        ("http://2130706433", notation),
        ("http://127.1", notation),
        ("http://0177.0.0.1", notation),
        ("http://0x7f.0.0.1", notation),
        ("http://0x7f000001", notation),
        ("http://127.0.0.1.", notation),
        ("http://127.0.0.01", notation),
        ("http://localhost", "machine itself"),
        ("http://LocalHost:3000", "machine itself"),
        ("http://localhost.", "machine itself"),
        ("http://a.localhost/", "machine itself"),
        ("http://metadata.google.internal/x", "metadata service"),
        ("http://METADATA.google.internal.", "metadata service"),
        ("http://a.example@127.0.0.1", "has a user"),
        ("http://127%2e0%2e0%2e1", "percent signs"),
        ("http:\\\\127.0.0.1", "characters that a URL must not have"),
        ("http://a.example\\@127.0.0.1", "characters that a URL must not have"),
        ("http://127.0.0.1\t", "characters that a URL must not have"),
        (" http://a.example", "characters that a URL must not have"),
        ("http://①②⑦.0.0.1", "characters that a URL must not have"),
        ("HTTP://a.example", "does not begin with"),
        ("http:/127.0.0.1", "does not begin with"),
        ("http:127.0.0.1", "does not begin with"),
        ("//a.example", "does not begin with"),
        ("file:///etc/passwd", "does not begin with"),
        ("unix:///run/hub.sock", "does not begin with"),
        ("http://", "no name and no address"),
        ("http://a..example", "no name and no address"),
        ("http://a.example:99999", "its port"),
        ("http://a.example:80:80", "its port"),
        ("http://[a.example]", "no IPv6 address"),
    ];
    assert_refused("session/new", &forms.map(|(url, reason)| (with_url(url), reason)));
}

#[test]
fn members_and_directories_that_are_not_listed_are_refused() {
    let forms = [
        (r#""env":{"LD_PRELOAD":"/x"}"#, "may not have the member `env`"),
        (r#""McpServers":[{"command":"sh"}]"#, "may not have the member `McpServers`"),
        (r#""mcp_servers":[{"command":"sh"}]"#, "may not have the member `mcp_servers`"),
        (r#""command":"sh""#, "may not have the member `command`"),
        (r#""agent":"echo""#, "may not have the member `agent`"),
        (
            r#""mcpServers":[{"name":"x","command":"sh"}],"mcpServers":[]"#,
            "member `mcpServers` is there twice",
        ),
        (r#""mcpServers":[],"\u006dcpServers":[]"#, "member `mcpServers` is there twice"),
        (r#""cwd":"/etc""#, "member `cwd` is there twice"),
        (r#""additionalDirectories":"/etc""#, "`additionalDirectories` is no array"),
        (r#""additionalDirectories":{"0":"/etc"}"#, "`additionalDirectories` is no array"),
        (r#""additionalDirectories":[["/etc"]]"#, "a directory is no text"),
        (r#""additionalDirectories":[{"path":"/etc"}]"#, "a directory is no text"),
        (r#""mcpServers":[],"x":1e999"#, "cannot be checked"),
        (r#""mcpServers":[],"x":"\ud800""#, "cannot be checked"),
    ];
    assert_refused("session/new", &forms.map(|(it, reason)| (with_members(it), reason)));
    assert_refused(
        "session/new",
        &[
            (r#"{"cwd":["/etc"]}"#.to_owned(), "a directory is no text"),
            (r#"["/srv/x",[]]"#.to_owned(), "the params are no object"),
        ],
    );
}

#[test]
fn members_of_meta_that_are_not_listed_are_refused_in_every_request() {
    let forms = [
        (r#"{"claudeCode":{"options":{"mcpServers":{"x":{"command":"sh"}}}}}"#, "`claudeCode`"),
        (r#"{"Jackfield":{}}"#, "may not have the member `Jackfield`"),
        (r#"{"jackfield":{"agent":"echo","argv":["sh"]}}"#, "may not have the member `argv`"),
        (r#"{"jackfield":{"unenforced":true}}"#, "may not have the member `unenforced`"),
        (r#"{"jackfield":[]}"#, "`_meta.jackfield` is no object"),
        (r#"{"jackfield":{"run":1,"run":2}}"#, "member `run` is there twice"),
        (r#"{"traceparent":{"command":"sh"}}"#, "`_meta.traceparent` is no text"),
        (r#"["claudeCode"]"#, "`_meta` is no object"),
        (r#""sh""#, "`_meta` is no object"),
    ];
    let metas = forms.map(|(meta, reason)| (format!(r#""_meta":{meta}"#), reason));
    let opening = metas.clone().map(|(meta, reason)| (with_members(&meta), reason));
    assert_refused("session/new", &opening);
    let named = metas.map(|(meta, reason)| {
        (format!(r#"{{"sessionId":"acme.s-1","prompt":[],{meta}}}"#), reason)
    });
    for method in ["session/prompt", "session/set_mode", "session/close", "_agent/own_method"] {
        assert_refused(method, &named);
    }
}

#[test]
fn an_agent_is_chosen_by_name_and_without_an_environment() {
    let forms = [
        (r#"{"agent":{"name":"sh","argv":["sh"]}}"#, "`agent` is a command line"),
        (r#"{"agent":["sh"]}"#, "`agent` is a command line"),
        (r#"{"agent":"echo","env":{"LD_PRELOAD":"/x"}}"#, "`env` sets the environment"),
        (r#"{"agent":"echo","env":["LD_PRELOAD=/x"]}"#, "`env` sets the environment"),
        (r#"{"env":{"PATH":"/srv/x"}}"#, "`env` sets the environment"),
        (r#"{"agent":"echo","argv":["sh"]}"#, "may not have the member `argv`"),
        (r#"{"agent":"echo","agent":{"name":"sh","argv":["sh"]}}"#, "`agent` is there twice"),
        (r#"{"agent":"echo","cwd":"/etc"}"#, "is not in `/srv`"),
        (r#"{"agent":"echo","cwd":["/etc"]}"#, "a directory is no text"),
    ];
    let forms = forms.map(|(params, reason)| (params.to_owned(), reason));
    assert_refused("_jackfield/connect", &forms);
}

#[test]
fn a_session_that_is_named_beside_does_not_open_methods_of_the_whole_agent() {
    for method in ["authenticate", "logout", "providers/set", "auth/status"] {
        let params = r#"{"sessionId":"acme.s-1","methodId":"x"}"#.to_owned();
        assert_refused(method, &[(params, "affects all tenants")]);
    }
}

#[test]
fn what_is_listed_reaches_the_agent_as_it_was_sent() {
    let server = |url: &str| with_url(url);
    for params in [
        with_servers("[]"),
        with_servers("null"),
        server("https://mcp.example.com/v1?x=127.0.0.1#y"),
        server("http://mcp.example.com.:8080/a@b/%20"),
        server("http://10.1.2.3:3000"),
        server("https://8.8.8.8"),
        server("https://[2a00:1450::1]:443/"),
        server("https://1password.example_x.com"),
        with_servers(
            r#"[{"type":"sse","name":"x","url":"https://a.example","_meta":null,"headers":[{"name":"Authorization","value":"Bearer x"}]}]"#,
        ),
        with_members(r#""additionalDirectories":["/srv/y"],"_meta":null"#),
        with_members(r#""_meta":{"traceparent":"00-1-2-01","tracestate":"a=b","baggage":"c=d"}"#),
        with_members(r#""_meta":{"jackfield":{"agent":"echo","labels":["zone=a"]}}"#),
    ] {
        let mut scene = Scene::new();
        let answer = scene.ask_text(ACME, "session/new", &params);
        assert!(answer["result"]["sessionId"].is_string(), "{params}: {answer}");
        assert!(sent_to_agents(&scene).contains(&"session/new".to_owned()), "{params}");
    }
    let mut scene = Scene::new();
    let connect = json!({ "agent": "echo", "cwd": "/srv/x", "env": {}, "unenforced": false });
    assert!(scene.ask(ACME, "_jackfield/connect", &connect)["result"].is_object());
}

#[test]
fn a_tenant_with_commands_may_send_what_agents_understand_but_only_in_its_roots() {
    let acme = Tenant { commands: true, ..tenant("acme") };
    let new = r#"{"cwd":"/srv/x","mcpServers":[{"name":"x","command":"sh"}],"_meta":{"claudeCode":{}},"y":1}"#;
    let mut scene = Scene::with(&acme, AgentPool::default());
    assert!(scene.ask_text(ACME, "session/new", new)["result"].is_object());
    for params in [
        r#"{"cwd":"/srv/x","cwd":"/etc"}"#,
        r#"{"cwd":"/srv/x","additionalDirectories":"/etc"}"#,
        r#"{"cwd":"/srv/x","additionalDirectories":["/etc"]}"#,
    ] {
        let answer = scene.ask_text(ACME, "session/new", params);
        assert_eq!(code(&answer), "not_allowed", "{params}: {answer}");
    }
}

#[test]
fn tenant_cannot_choose_the_sandbox_of_its_agents() {
    for commands in [false, true] {
        let acme = Tenant { commands, ..tenant("acme") };
        let mut scene = Scene::with(&acme, AgentPool::default());
        let connect = scene.ask(ACME, "_jackfield/connect", &json!({ "sandbox": "open" }));
        assert_eq!(code(&connect), "not_allowed", "{connect}");
        let meta = json!({ "jackfield": { "sandbox": "open" } });
        let params = json!({ "cwd": "/srv/x", "mcpServers": [], "_meta": meta });
        let opened = scene.ask(ACME, "session/new", &params);
        assert_eq!(code(&opened), "not_allowed", "{opened}");
    }
}

/// A session that a rule would leave unenforced can be accepted by the operator only.
#[test]
fn a_tenant_cannot_accept_what_no_rule_can_be_enforced_on() {
    let accepts = |scene: &mut Scene, conn: ConnId| {
        let answer = scene.ask(conn, "_jackfield/connect", &json!({ "unenforced": true }));
        assert!(answer["result"].is_object(), "{answer}");
        scene.hub.parts.clients.connections[&conn].unenforced
    };
    for commands in [false, true] {
        let acme = Tenant { commands, ..tenant("acme") };
        let mut scene = Scene::with(&acme, AgentPool::default());
        assert!(!accepts(&mut scene, ACME), "commands = {commands}");
        assert!(accepts(&mut scene, OPERATOR));
    }
}
