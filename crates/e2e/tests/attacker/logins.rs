//! Logins of browsers: links, cookies and devices, as their user and as an attacker uses them.

use super::{Target, UPGRADE, statuses};
use jackfield_e2e::wait_for;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::time::Duration;

const BOUND: Duration = Duration::from_secs(30);

impl Target {
    /// The headers of a page of the daemon.
    fn own_page(&self) -> String {
        format!("Host: {0}\r\nOrigin: http://{0}\r\n", self.at)
    }

    /// A request with these headers and a JSON body.
    fn send_json(&self, line: &str, headers: &str, body: &Value) -> String {
        let (body, kind) = (body.to_string(), "Content-Type: application/json\r\n");
        let length = body.len();
        self.ask(format!(
            "{line} HTTP/1.1\r\nConnection: close\r\n{headers}{kind}Content-Length: {length}\r\n\r\n{body}"
        ))
    }

    fn create_link(&self) -> String {
        let headers = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", self.at, self.token);
        let heard = self.send_json("POST /api/login-links", &headers, &json!({}));
        assert_eq!(statuses(&heard), [201], "{heard}");
        body_of(&heard)["code"].as_str().unwrap().to_owned()
    }

    fn log_in(&self, code: &str, more: &str) -> String {
        let headers = format!("{}{more}", self.own_page());
        let body = json!({ "code": code, "deviceName": "Phone" });
        self.send_json("POST /api/login", &headers, &body)
    }

    /// The header line with the cookie of a new device.
    fn new_cookie(&self) -> String {
        cookie_of(&self.log_in(&self.create_link(), ""))
    }

    fn get(&self, path: &str, headers: &str) -> String {
        self.ask(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"))
    }
}

fn body_of(heard: &str) -> Value {
    serde_json::from_str(heard.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn cookie_of(heard: &str) -> String {
    let set = heard.lines().find_map(|it| it.strip_prefix("set-cookie: ")).expect("a cookie");
    format!("Cookie: {}\r\n", set.split(';').next().unwrap())
}

#[test]
fn login_link_works_once_and_its_cookie_is_bound_to_the_browser() {
    let target = Target::new();
    let code = target.create_link();
    let heard = target.log_in(&code, "");
    assert_eq!(statuses(&heard), [200], "{heard}");
    let attributes = "; Path=/; HttpOnly; SameSite=Strict";
    assert!(heard.contains(attributes) && !heard.contains("Secure"), "{heard}");
    let me = body_of(&heard);
    assert_eq!((&me["operator"], &me["tenant"]), (&json!(true), &Value::Null));
    assert_eq!(me["device"]["name"], "Phone");
    let page = format!("{}{}", target.own_page(), cookie_of(&heard));
    assert_eq!(body_of(&target.get("/api/me", &page)), me);
    let again = target.log_in(&code, "");
    assert_eq!(statuses(&again), [400], "{again}");
    assert!(again.contains("it was used") && !again.contains("set-cookie"), "{again}");
    let devices = body_of(&target.get("/api/devices", &page));
    assert_eq!(devices["devices"][0]["current"], true, "{devices}");
    assert_eq!(devices["devices"].as_array().unwrap().len(), 1);
    let stored = std::fs::read_to_string(target.home.path().join("state/devices.json")).unwrap();
    let secret = page.trim_end().rsplit_once('.').unwrap().1;
    assert!(!stored.contains(secret) && !target.home.said().contains(secret));
    let out = target.send_json("POST /api/logout", &page, &json!({}));
    assert_eq!(statuses(&out), [204], "{out}");
    assert_eq!(statuses(&target.get("/api/me", &page)), [401]);
    target.must_be_well(16 << 20);
}

#[test]
fn guessed_login_links_are_limited_and_a_foreign_page_cannot_log_in() {
    let target = Target::new();
    let code = target.create_link();
    let host = format!("Host: {}\r\n", target.at);
    let port = target.at.port().wrapping_add(1);
    let foreign = format!("{host}Origin: http://127.0.0.1:{port}\r\n");
    let same_site = format!("{host}Sec-Fetch-Site: same-site\r\n");
    for headers in [&host, &foreign, &same_site] {
        let heard = target.send_json("POST /api/login", headers, &json!({ "code": code }));
        assert_eq!(statuses(&heard), [403], "{headers}: {heard}");
    }
    let large = json!({ "code": "x".repeat(5000) });
    assert_eq!(statuses(&target.send_json("POST /api/login", &target.own_page(), &large)), [413]);
    for _ in 0..10 {
        assert_eq!(statuses(&target.log_in("guess", "")), [400]);
    }
    let limited = target.log_in("guess", "");
    assert_eq!(statuses(&limited), [429], "{limited}");
    assert_eq!(statuses(&target.log_in(&code, "")), [429], "also for the right code");
    target.must_be_well(16 << 20);
}

#[test]
fn cookie_of_an_attacker_does_not_survive_the_login_of_the_victim() {
    let target = Target::new();
    let planted = target.new_cookie();
    let heard = target.log_in(&target.create_link(), &planted);
    assert_eq!(statuses(&heard), [200], "{heard}");
    let own = cookie_of(&heard);
    assert_ne!(own, planted);
    let status =
        |cookie: &str| statuses(&target.get("/api/me", &format!("{}{cookie}", target.own_page())));
    assert_eq!((status(&own), status(&planted)), (vec![200], vec![401]));
    let both = format!("{}; {}", own.trim_end(), planted.trim_start_matches("Cookie: "));
    assert_eq!(status(&both), [401], "two different cookies are ambiguous");
    target.must_be_well(16 << 20);
}

#[test]
fn cookie_is_refused_for_pages_of_other_ports_and_for_programs() {
    let target = Target::new();
    let cookie = target.new_cookie();
    let host = format!("Host: {}\r\n{cookie}", target.at);
    let port = target.at.port().wrapping_add(1);
    let upgrade = format!("GET /acp HTTP/1.1\r\n{UPGRADE}");
    for foreign in [
        String::new(),
        format!("Origin: http://127.0.0.1:{port}\r\n"),
        "Sec-Fetch-Site: same-site\r\n".to_owned(),
        "Sec-Fetch-Site: cross-site\r\nX-Jackfield-Console: 1\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
    ] {
        let headers = format!("{host}{foreign}");
        for path in ["/api/sessions", "/api/me", "/openapi.json", "/acp", "/metrics"] {
            assert_eq!(statuses(&target.get(path, &headers)), [403], "{path} {foreign}");
        }
        let heard = target.send_json("POST /api/login-links", &headers, &json!({}));
        assert_eq!(statuses(&heard), [403], "{foreign}");
        assert_eq!(statuses(&target.ask(format!("{upgrade}{headers}\r\n"))), [403], "{foreign}");
    }
    let own = format!("{}{cookie}", target.own_page());
    assert_eq!(statuses(&target.get("/api/sessions", &own)), [200]);
    let links = target.send_json("POST /api/login-links", &own, &json!({}));
    assert_eq!(statuses(&links), [403], "a browser lets no other browser in: {links}");
    target.must_be_well(16 << 20);
}

#[test]
fn revoked_device_and_replaced_token_end_open_streams() {
    let target = Target::new();
    let open = |page: &str| {
        let mut stream = target.dial();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.write_all(format!("GET /acp HTTP/1.1\r\n{UPGRADE}{page}\r\n").as_bytes()).unwrap();
        let mut heard = [0; 12];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"HTTP/1.1 101");
        stream
    };
    let page = format!("{}{}", target.own_page(), target.new_cookie());
    let id = body_of(&target.get("/api/me", &page))["device"]["id"].as_str().unwrap().to_owned();
    let mut socket = open(&page);
    let revoked = target.home.run(&["devices", "revoke", &id], BOUND);
    assert!(revoked.status.success(), "{revoked:?}");
    let mut rest = Vec::new();
    let _reset = socket.read_to_end(&mut rest);
    assert!(String::from_utf8_lossy(&rest).contains("the device was revoked"));
    assert_eq!(statuses(&target.get("/api/me", &page)), [401]);
    let page = format!("{}{}", target.own_page(), target.new_cookie());
    let mut socket = open(&page);
    let link = target.create_link();
    let rotated = target.home.run(&["token", "--rotate"], BOUND);
    assert!(rotated.status.success(), "{rotated:?}");
    let _reset = socket.read_to_end(&mut rest);
    assert_eq!(statuses(&target.get("/api/me", &page)), [401]);
    assert_eq!(statuses(&target.log_in(&link, "")), [400], "links of the old token end, too");
    let token = String::from_utf8(rotated.stdout).unwrap().trim().to_owned();
    Target { token, ..target }.must_be_well(16 << 20);
}

#[test]
fn console_cannot_be_embedded_and_its_files_are_public() {
    let target = Target::new();
    let host = format!("Host: {}\r\nAccept-Encoding: gzip\r\n", target.at);
    for (path, expected) in
        [("/console/", 200), ("/console/inbox", 200), ("/console/missing.js", 404)]
    {
        let heard = target.get(path, &host);
        assert_eq!(statuses(&heard), [expected], "{heard}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "x-frame-options: DENY",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
        ] {
            assert!(heard.contains(header), "{path}: {heard}");
        }
    }
    let redirect = target.get("/", &host);
    assert_eq!(statuses(&redirect), [307]);
    assert!(redirect.contains("location: /console/\r\n"), "{redirect}");
    let foreign = target.get("/console/", "Host: evil.example\r\n");
    assert_eq!(statuses(&foreign), [421]);
    target.must_be_well(16 << 20);
}

#[test]
fn console_command_opens_an_address_and_its_link_logs_in() {
    let home = jackfield_e2e::Home::new();
    let daemon = home.serve(&[]);
    let made = home.run(&["console", "--no-open", "--format", "json"], BOUND);
    assert!(made.status.success(), "{made:?}");
    let link: Value = serde_json::from_slice(&made.stdout).unwrap();
    let url = link["url"].as_str().unwrap();
    let (address, code) = url.split_once("/console/login#code=").expect("a login link");
    let at: std::net::SocketAddr = address.strip_prefix("http://").unwrap().parse().unwrap();
    assert!(at.ip().is_loopback() && code == link["code"], "{link}");
    let send = |head: &str, body: &str| {
        let mut stream = std::net::TcpStream::connect(at).unwrap();
        let length = body.len();
        let rest = format!("Host: {at}\r\nOrigin: http://{at}\r\nContent-Length: {length}\r\n");
        let rest = format!("{rest}Content-Type: application/json\r\nConnection: close\r\n\r\n");
        stream.write_all(format!("{head}{rest}{body}").as_bytes()).unwrap();
        super::listen(&mut stream)
    };
    let body = json!({ "code": code, "deviceName": "Tablet" }).to_string();
    let heard = send("POST /api/login HTTP/1.1\r\n", &body);
    assert_eq!(statuses(&heard), [200], "{heard}");
    let listed = home.run(&["devices", "list", "--format", "json"], BOUND);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let id = listed["devices"][0]["id"].as_str().unwrap();
    assert!(home.run(&["devices", "rename", id, "Kitchen"], BOUND).status.success());
    let cookie = cookie_of(&heard);
    wait_for("the daemon to have the new name", BOUND, || {
        let me = send(&format!("GET /api/me HTTP/1.1\r\n{cookie}"), "");
        (body_of(&me)["device"]["name"] == "Kitchen").then_some(())
    });
    let paired = home.run(&["console", "--pair"], BOUND);
    assert_eq!(paired.status.code(), Some(2), "{paired:?}");
    let said = String::from_utf8_lossy(&paired.stderr).into_owned();
    assert!(said.contains("no encrypted address") && said.contains("--insecure"), "{said}");
    let paired = home.run(&["console", "--pair", "--url", "https://build.example.org"], BOUND);
    let printed = String::from_utf8_lossy(&paired.stdout).into_owned();
    assert!(
        printed.contains('█') && printed.contains("https://build.example.org/console/login#code=")
    );
    daemon.stop();
}
