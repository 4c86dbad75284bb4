//! Web Push with a push service of the test's own: what a browser gets, and what the daemon does with
//! a subscription that has expired.

mod browser;
mod push_service;

use browser::TestBrowser;
use jackfield_e2e::{Client, Daemon, Home, http::Web, wait_for};
use push_service::PushService;
use serde_json::{Value, json};
use std::time::Duration;

const BOUND: Duration = Duration::from_secs(30);

struct PushBench {
    web: Web,
    page: [String; 2],
    client: Client,
    session: String,
    daemon: Daemon,
    home: Home,
}

impl PushBench {
    /// A daemon with a session and a browser that has logged in.
    fn new(config: &str) -> PushBench {
        let home = Home::new();
        std::fs::create_dir_all(home.path().join("config")).unwrap();
        std::fs::write(home.path().join("config/config.toml"), config).unwrap();
        let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
        let operator = Web::of(&home);
        let mut client = home.dial();
        client.connect(&home.fake_agent(&[]));
        let session = client.open(home.path());
        let web = Web { token: String::new(), ..operator.clone() };
        let origin = format!("Origin: http://{}", web.address);
        let link = operator.post("/api/login-links", &json!({})).good();
        let body = json!({ "code": link["code"], "deviceName": "x" });
        let login = web.ask("POST", "/api/login", &[&origin], Some(&body));
        let cookie = login.header("set-cookie").split(';').next().unwrap().to_owned();
        let page = [origin, format!("Cookie: {cookie}")];
        PushBench { web, page, client, session, daemon, home }
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let headers: Vec<&str> = self.page.iter().map(String::as_str).collect();
        let reply = self.web.ask(method, path, &headers, body);
        (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
    }

    fn subscribe(&self, service: &PushService, browser: &TestBrowser) {
        let body = browser.subscription(&service.endpoint());
        let (status, answer) = self.ask("POST", "/api/push/subscriptions", Some(&body));
        assert_eq!(status, 204, "{answer}");
    }

    fn stored(&self) -> String {
        std::fs::read_to_string(self.home.path().join("state/devices.json")).unwrap()
    }

    fn finish(self) {
        drop(self.client);
        self.daemon.stop();
    }
}

#[test]
fn browser_decrypts_what_happened_and_no_content_is_sent() {
    let mut bench = PushBench::new("");
    let (_, key) = bench.ask("GET", "/api/push/key", None);
    let service = PushService::start();
    let browser = TestBrowser::new();
    bench.subscribe(&service, &browser);
    let id = bench.client.send_prompt(&bench.session, "ask");
    let asked = bench.client.until("the ask", |it| it["method"] == "session/request_permission");
    let pushed = service.next_push(201);
    for (name, expected) in [("content-encoding", "aes128gcm"), ("urgency", "high")] {
        assert_eq!(pushed.header(name), expected);
    }
    let public = key["key"].as_str().unwrap();
    let authorization = pushed.header("authorization");
    assert!(authorization.starts_with("vapid t=") && authorization.ends_with(public));
    let text = browser.decrypt(&pushed.body);
    let expected = json!({ "event": "needs_you", "sessionId": bench.session });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    // The next message needs another key, because the test's can be used once.
    let browser = TestBrowser::new();
    bench.subscribe(&service, &browser);
    let yes = json!({ "outcome": { "outcome": "selected", "optionId": "allow-once" } });
    bench.client.respond(&asked, &yes);
    bench.client.until("the end of the turn", |it| it["id"] == id);
    let text = browser.decrypt(&service.next_push(201).body);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["event"], "done");
    bench.finish();
}

#[test]
fn expired_subscription_is_dropped_and_settings_filter_events() {
    let config = "[notify]\non = [\"done\"]\npush_content = true\n";
    let mut bench = PushBench::new(config);
    let service = PushService::start();
    let browser = TestBrowser::new();
    bench.subscribe(&service, &browser);
    assert!(bench.stored().contains(&service.endpoint()));
    assert_eq!(bench.client.prompt(&bench.session, "remember 17"), "end_turn");
    let text = browser.decrypt(&service.next_push(410).body);
    let pushed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&pushed["event"], &pushed["title"]), (&json!("done"), &json!("remember 17")));
    wait_for("the subscription to be dropped", BOUND, || {
        (!bench.stored().contains(&service.endpoint())).then_some(())
    });
    bench.finish();
}

#[test]
fn subscription_needs_a_device_and_a_push_service_outside_of_the_network() {
    let bench = PushBench::new("");
    let browser = TestBrowser::new();
    for endpoint in [
        "https://10.0.0.1/x",
        "https://localhost/x",
        "http://push.example.net/x",
        "https://[::1]/x",
    ] {
        let body = browser.subscription(endpoint);
        let (status, answer) = bench.ask("POST", "/api/push/subscriptions", Some(&body));
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("VALIDATION_FAILED")));
    }
    let operator = Web::of(&bench.home);
    let body = browser.subscription("https://push.example.net/x");
    assert_eq!(operator.post("/api/push/subscriptions", &body).status, 403);
    assert_eq!(bench.ask("POST", "/api/push/subscriptions", Some(&body)).0, 204);
    assert!(bench.stored().contains("push.example.net"));
    assert_eq!(bench.ask("DELETE", "/api/push/subscriptions", None).0, 204);
    assert!(!bench.stored().contains("push.example.net"));
    bench.finish();
}
