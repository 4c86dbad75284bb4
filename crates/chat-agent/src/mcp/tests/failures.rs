//! Servers that are slow, silent, dead or invalid.

use super::*;
use agent_client_protocol::v1::schema::{HttpHeader, McpServerHttp};
use std::{net::TcpListener, time::Instant};

#[tokio::test]
async fn server_that_never_answers_is_ended() {
    let session = McpTestSession::new();
    let script = "echo thinking >&2; sleep 1000";
    let servers = session.start([shell_server("slow", script)], Duration::from_millis(300));
    let started = Instant::now();
    let notices = wait_for_start(&servers).await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(notice.contains("`slow` did not answer within 0.3 s"), "{notice}");
    assert!(notice.ends_with("thinking"), "{notice}");
    assert_eq!(wait_for_start(&servers).await, [""; 0], "each notice is returned once");
    assert!(servers.tool_specs().is_empty());
    session.wait_until("the server was not ended", |it| it.processes().is_empty()).await;
    session.end(servers).await;
}

#[tokio::test]
async fn notice_has_the_stderr_of_a_server_that_exits_at_once() {
    let session = McpTestSession::new();
    let servers =
        session.start([shell_server("dead", "echo no database here >&2; exit 3")], TEST_TIMEOUT);
    let notices = wait_for_start(&servers).await;
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(notice.contains("it ended during the start (exit status 3)"), "{notice}");
    assert!(notice.ends_with("no database here"), "{notice}");
    session.end(servers).await;
}

#[tokio::test]
async fn server_that_cannot_be_started_is_reported_by_name() {
    let session = McpTestSession::new();
    let missing = McpServer::Stdio(McpServerStdio::new("missing", "/no/such/program"));
    let header = vec![HttpHeader::new("a b", "c")];
    let web = [
        McpServerHttp::new("mail", "mailto:x@y"),
        McpServerHttp::new("header", "http://127.0.0.1:9/").headers(header),
        McpServerHttp::new("closed", "http://127.0.0.1:9/mcp"),
    ];
    let web = web.into_iter().map(McpServer::Http);
    let servers =
        session.start(std::iter::once(missing).chain(web).collect::<Vec<_>>(), TEST_TIMEOUT);
    let notices = wait_for_start(&servers).await;
    let expected = [
        "/no/such/program",
        "its scheme is `mailto`",
        "the header `a b`",
        "failed to connect: Connection refused",
    ];
    assert_eq!(notices.len(), expected.len(), "{notices:?}");
    for (notice, part) in notices.iter().zip(expected) {
        assert!(notice.contains(part), "{notice}");
    }
    session.end(servers).await;
}

#[tokio::test]
async fn silent_http_server_times_out() {
    let session = McpTestSession::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let silent = McpServer::Http(McpServerHttp::new("silent", url));
    let servers = session.start([silent], Duration::from_millis(300));
    let notices = wait_for_start(&servers).await;
    assert!(notices[0].contains("`silent` did not answer within 0.3 s"), "{notices:?}");
    session.end(servers).await;
}

#[tokio::test]
async fn slow_server_does_not_delay_the_others() {
    let session = McpTestSession::new();
    let good = shell_server("good", script_server::SERVER);
    let servers = session.start([shell_server("slow", "sleep 1000"), good], Duration::from_secs(5));
    session
        .wait_until("the good server is running", |_| {
            names(&servers) == ["good_first", "good_second"]
        })
        .await;
    session.end(servers).await;
}

#[tokio::test]
async fn exit_during_a_call_is_reported_and_fails_later_calls() {
    let session = McpTestSession::new();
    let servers = session.start_script(script_server::SERVER).await;
    assert_eq!(names(&servers), ["script_first", "script_second"]);
    let died = call(&servers, "script_first", &json!({ "do": "die" })).await;
    assert!(died.is_error, "{died:?}");
    assert!(died.text.contains("`script` has ended (exit status 9)"), "{}", died.text);
    assert!(died.text.ends_with("out of memory"), "{}", died.text);
    let later = prepare(&servers, "script_second", &json!({})).unwrap_err();
    assert_eq!(later, died.text);
    assert_eq!(wait_for_start(&servers).await, [died.text], "the user gets one notice");
    let offered = &servers.tool_specs()[0]["function"];
    assert_eq!(offered["name"], "script_first");
    assert_eq!(offered["description"], "Not available: its server has ended.");
    session.end(servers).await;
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_refused() {
    let session = McpTestSession::new();
    let servers = session.start_script(script_server::SERVER).await;
    servers.tool_specs();
    let error = prepare(&servers, "script_first", &json!([1])).unwrap_err();
    assert!(error.starts_with("The arguments of `script_first` are not a JSON object"), "{error}");
    let call = ModelToolCall { id: "1".into(), name: "shell".into(), arguments: "{}".into() };
    assert!(servers.prepare_call(&call).is_none(), "the tool is not one of an MCP server");
    session.end(servers).await;
}
