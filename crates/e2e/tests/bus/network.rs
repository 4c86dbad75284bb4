//! TCP, with and without a token and TLS, and the page of metrics.

use super::{Bus, one_pool, request, say_all};
use jackfield_e2e::{Client, Home};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring, pki_types::ServerName,
};
use serde_json::{Value, json};
use std::{
    fs::{self, Permissions},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    sync::Arc,
    time::{Duration, Instant},
};

fn dial(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn client(stream: &TcpStream) -> Client {
    Client::new(Box::new(stream.try_clone().unwrap()), Box::new(stream.try_clone().unwrap()))
}

/// The published kernel waits 44 ms between an update and the result.
#[test]
fn tcp_is_prompt() {
    let home = Home::new();
    let (bus, port) = Bus::on_tcp(&home, &one_pool(&home, 1), &[]);
    let stream = dial(port);
    stream.set_nodelay(true).unwrap();
    let mut client = client(&stream);
    let mut waits = Vec::new();
    for _ in 0..40 {
        let begin = Instant::now();
        client.result("update", &json!({ "sessionId": "s" }));
        waits.push(begin.elapsed());
    }
    waits.sort_unstable();
    // On a busy machine some take longer; with that pause none could be faster.
    assert!(waits[0] < Duration::from_millis(30), "{waits:?}");
    drop((client, stream));
    bus.stop();
}

/// A page in a browser can make it say things to any port of this machine.
#[test]
fn a_browser_that_was_sent_here_is_not_heard() {
    let home = Home::new();
    let (bus, port) = Bus::on_tcp(&home, &one_pool(&home, 1), &[]);
    let mut stream = dial(port);
    let order = request(1, "die", &json!({}));
    let body = format!("{order}\n");
    write!(stream, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    assert!(heard.contains("-32700") && heard.lines().count() == 1, "{heard}");
    // Nobody died of it. Whoever has shown to speak our language may stumble later.
    let stream = dial(port);
    let mut client = client(&stream);
    client.result("echo", &json!({}));
    client.send_line("oops");
    client.until("an error", |it| it["id"].is_null());
    client.result("echo", &json!({}));
    assert!(!bus.said().contains("exit status"), "{}", bus.said());
    bus.stop();
}

#[test]
fn with_a_token_only_who_shows_it_is_heard() {
    let home = Home::new();
    let token = home.path().join("token");
    let args = ["--token-file", token.to_str().unwrap()];
    let (bus, port) = Bus::on_tcp(&home, &one_pool(&home, 1), &args);
    let secret = fs::read_to_string(&token).unwrap();
    assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stranger = dial(port);
    say_all(&mut stranger, [request(1, "echo", &json!({}))]);
    let mut heard = String::new();
    stranger.read_to_string(&mut heard).unwrap();
    assert!(heard.contains("_jackfield/auth"), "{heard}");
    let stream = dial(port);
    let mut client = client(&stream);
    client.notify("_jackfield/auth", &json!({ "token": secret.trim() }));
    client.result("echo", &json!({}));
    bus.stop();
}

#[test]
fn an_address_that_others_can_reach_needs_tls_and_a_token() {
    let home = Home::new();
    let config = super::write_config(&home, &one_pool(&home, 1));
    let config = config.to_str().unwrap();
    let made = rcgen::generate_simple_self_signed(["bus.example.org".to_owned()]).unwrap();
    fs::write(home.path().join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(home.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let private = Permissions::from_mode(0o600);
    fs::set_permissions(home.path().join("key.pem"), private).unwrap();
    let refused = |args: &[&str]| {
        let args = [&["bus", "--config", config, "--tcp", "0.0.0.0:0"], args].concat();
        let output = home.run(&args, Duration::from_secs(20));
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&[]);
    assert!(said.contains("pass --tls-cert, --tls-key and --token-file"), "{said}");
    assert!(said.contains("`--insecure` permits"), "{said}");
    assert!(refused(&["--token-file", "token"]).contains("unencrypted"));
    let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    assert!(refused(&tls).contains("pass --token-file"));
    assert!(refused(&tls[..2]).contains("--tls-key"));

    let args = [&["--tcp", "0.0.0.0:0", "--token-file", "token"], &tls[..]].concat();
    let bus = Bus::start(&home, &one_pool(&home, 1), &args);
    let said = bus.said();
    let port = said.lines().find_map(|it| it.strip_prefix("listening on tcp://0.0.0.0:")).unwrap();
    let secret = fs::read_to_string(home.path().join("token")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("bus.example.org").unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(tls, dial(port.trim().parse().unwrap()));
    let auth = json!({ "method": "_jackfield/auth", "params": { "token": secret.trim() } });
    let burst = json!({ "sessionId": "s", "n": 10_000 });
    say_all(&mut stream, [auth, request(1, "burst", &burst)]);
    let mut lines = BufReader::new(stream).lines();
    for number in 0..10_000 {
        let update: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(update["params"]["update"]["n"], number);
    }
    assert!(lines.next().unwrap().unwrap().contains("\"result\""));
    drop(lines);
    bus.stop();
}

#[test]
fn insecure_permits_addresses_that_other_machines_can_reach() {
    let home = Home::new();
    let mut config = one_pool(&home, 1);
    let echo = |bus: &Bus<'_>, host: &str| {
        let said = bus.said();
        assert!(said.contains("not encrypted, because of `--insecure`"), "{said}");
        let port = said.lines().find_map(|it| it.strip_prefix("listening on tcp://0.0.0.0:"));
        let stream = TcpStream::connect((host, port.unwrap().trim().parse().unwrap())).unwrap();
        client(&stream).result("echo", &json!({}));
    };
    let bus = Bus::start(&home, &config, &["--tcp", "0.0.0.0:0", "--insecure"]);
    echo(&bus, "127.0.0.2");
    bus.stop();
    config["insecure"] = json!(true);
    let bus = Bus::start(&home, &config, &["--tcp", "0.0.0.0:0", "--metrics", "0.0.0.0:0"]);
    echo(&bus, "localhost");
    bus.stop();
}

#[test]
fn host_name_is_accepted_as_an_address() {
    let home = Home::new();
    let bus = Bus::start(&home, &one_pool(&home, 1), &["--tcp", "localhost:0"]);
    assert!(bus.said().contains("listening on tcp://127.0.0.1:"), "{}", bus.said());
    bus.stop();
    let config = super::write_config(&home, &one_pool(&home, 1));
    let args = ["bus", "--config", config.to_str().unwrap(), "--tcp", "host.invalid:9000"];
    let output = home.run(&args, Duration::from_secs(20));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot resolve the host of `tcp://host.invalid:9000`"), "{said}");
}

#[test]
fn the_page_of_metrics_has_the_numbers() {
    let home = Home::new();
    let mut config = one_pool(&home, 2);
    config["limits"] = json!({ "drain_timeout_sec": 0 });
    let (bus, port) = Bus::on_tcp(&home, &config, &["--metrics", "127.0.0.1:0"]);
    let stream = dial(port);
    let mut client = client(&stream);
    client.result("echo", &json!({ "sessionId": "s" }));
    client.send("hang", &json!({ "sessionId": "s" }));
    client.result("echo", &json!({ "sessionId": "s" }));
    let said = bus.said();
    let at = said.lines().find_map(|it| it.strip_prefix("metrics on http://127.0.0.1:")).unwrap();
    let at: u16 = at.strip_suffix("/metrics").unwrap().parse().unwrap();
    let get = |host: &str| {
        let mut page = dial(at);
        write!(page, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        page.read_to_string(&mut text).unwrap();
        text
    };
    assert!(get("evil.example").starts_with("HTTP/1.1 421 "));
    let text = get("localhost");
    for line in [
        "HTTP/1.1 200 OK",
        "jackfield_bus_messages_in_total 5",
        "jackfield_bus_messages_out_total 5",
        "jackfield_bus_clients 1",
        "jackfield_bus_sessions 1",
        "jackfield_bus_pending 1",
        "jackfield_bus_pool_workers{pool=\"echo\"} 2",
        "jackfield_bus_pool_pending{pool=\"echo\"} 1",
        "jackfield_bus_worker_starts_total{pool=\"echo\"} 2",
    ] {
        assert!(text.lines().any(|it| it.trim() == line), "no `{line}` in\n{text}");
    }
    assert!(text.contains("jackfield_bus_worker_resident_bytes{pool=\"echo\",worker=\"w-1\"}"));
    drop((client, stream));
    bus.stop();
}
