//! Tenants of a fleet: the gateway knows them, hosts need no file.

use super::{BOUND, Way, code, configure, names, token, write_tenants};
use jackfield_e2e::{Client, Daemon, Home, http::Web, wait_for};
use jackfield_test_support::nats::Cluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;

struct Member {
    home: Home,
    daemon: Daemon,
}

fn start(cluster: &Cluster, role: &str, name: &str, more: impl Fn(&Home) -> Vec<String>) -> Member {
    let home = Home::new();
    configure(&home);
    let (servers, more) = (cluster.urls().join(","), more(&home));
    let flags = ["--fleet", &servers, "--role", role, "--host-name", name, "--shared", "/"];
    let cell = ["--shards", "4", "--replicas", "1"];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let daemon = home.serve(&[&flags[..], &cell[..], &more[..]].concat());
    Member { home, daemon }
}

fn client(web: &Web, token: &str, way: Way) -> Client {
    let web = Web { token: token.to_owned(), ..web.clone() };
    let mut client = if way == Way::WebSocket { web.websocket().0 } else { web.http().0 };
    client.hello_aware();
    client
}

/// A browser logs in at the gateway, which sees the sessions of its tenant only.
fn log_in_at_gateway(web: &Web, token: &str) {
    let tenant = Web { token: token.to_owned(), ..web.clone() };
    let page = Web { token: String::new(), ..web.clone() };
    let origin = format!("Origin: http://{}", web.address);
    let link = tenant.post("/api/login-links", &json!({})).good();
    let body = json!({ "code": link["code"], "deviceName": "Phone" });
    let login = page.ask("POST", "/api/login", &[&origin], Some(&body));
    let me = login.good();
    assert_eq!((&me["tenant"], &me["fleet"]), (&json!("acme"), &json!(true)));
    let cookie = format!("Cookie: {}", login.header("set-cookie").split(';').next().unwrap());
    let ask = |path: &str| page.ask("GET", path, &[&origin, &cookie], None);
    let listed = names(&ask("/api/sessions").good());
    assert!(!listed.is_empty() && listed.iter().all(|it| it.starts_with("acme.")), "{listed:?}");
    assert_eq!(ask("/api/push/key").status, 409, "a gateway sends no notifications");
}

#[test]
fn tenants_of_a_fleet_know_nothing_of_each_other_and_share_no_quota() {
    let cluster = Cluster::start(1);
    let hosts = ["one", "two"].map(|it| start(&cluster, "host", it, |_| Vec::new()));
    let dir = hosts[0].home.path().to_owned();
    let key = |home: &Home| BTreeMap::from(["acme", "other"].map(|it| (it, token(home, it))));
    let tokens = key(&hosts[0].home);
    let gateway = start(&cluster, "gateway", "door", |home| {
        // The directories of the hosts are all that sessions can work in.
        let file = write_tenants(home, &tokens, "sessions = 3\n");
        let text = std::fs::read_to_string(&file).unwrap();
        let roots = |it: &str| text.replace(&json!([home.path()]).to_string(), it);
        std::fs::write(&file, roots(&json!([dir]).to_string())).unwrap();
        let file = file.to_str().unwrap().to_owned();
        ["--listen", "http://127.0.0.1:0", "--tenants", &file].map(str::to_owned).into()
    });
    let web = Web::of(&gateway.home);
    let mut theirs = client(&web, &tokens["other"], Way::WebSocket);
    let their_session = theirs.open(&dir);
    assert!(their_session.starts_with("other.s-"), "{their_session}");
    assert_eq!(theirs.prompt(&their_session, "remember 17"), "end_turn");
    for way in [Way::WebSocket, Way::Http] {
        let mut client = client(&web, &tokens["acme"], way);
        for method in ["session/list", "_jackfield/sessions"] {
            let listed = names(&client.result(method, &json!({})));
            assert!(listed.iter().all(|it| it.starts_with("acme.")), "{way:?}: {listed:?}");
        }
        for (method, params) in [
            ("session/load", json!({ "cwd": dir, "mcpServers": [] })),
            ("session/prompt", json!({ "prompt": [] })),
            ("session/delete", json!({})),
            ("session/fork", json!({})),
            ("_jackfield/attach", json!({ "after": 0 })),
        ] {
            let mut answer = |session: &str| {
                let mut params = params.clone();
                params["sessionId"] = json!(session);
                let mut answer = client.ask(method, &params);
                answer["id"] = Value::Null;
                assert_eq!(code(&answer), "session_not_found");
                answer.to_string().replace(session, "NAME")
            };
            assert_eq!(answer(&their_session), answer("acme.s-aaaaaaaaaaaa"), "{way:?} {method}");
        }
        // The host holds it to its roots, which it has from the gateway.
        let answer = client.ask("session/new", &json!({ "cwd": "/", "mcpServers": [] }));
        assert_eq!(code(&answer), "not_allowed", "{answer}");
    }
    // Three may be awake, wherever they are.
    let mut ours = client(&web, &tokens["acme"], Way::WebSocket);
    let sessions: Vec<String> = (0..3).map(|_| ours.open(&dir)).collect();
    let answer = ours.ask("session/new", &json!({ "cwd": dir, "mcpServers": [] }));
    assert_eq!(code(&answer), "quota", "{answer}");
    theirs.open(&dir);
    ours.result("session/close", &json!({ "sessionId": sessions[0] }));
    wait_for("the hosts to tell that there is room", BOUND, || {
        let answer = ours.ask("session/new", &json!({ "cwd": dir, "mcpServers": [] }));
        answer["result"]["sessionId"].as_str().map(str::to_owned)
    });
    let listed = names(&ours.result("session/list", &json!({})));
    assert_eq!(listed.len(), 4, "{listed:?}");
    assert_eq!(names(&theirs.result("session/list", &json!({}))).len(), 2);
    log_in_at_gateway(&web, &tokens["acme"]);
    let mut operator = gateway.home.dial();
    operator.hello();
    assert_eq!(names(&operator.result("session/list", &json!({}))).len(), 6);
    drop((ours, theirs, operator));
    gateway.daemon.stop();
    // Sessions of both work in the home of one: it is looked at when both have ended.
    let _homes = hosts.map(|it| {
        it.daemon.stop();
        it.home
    });
}
