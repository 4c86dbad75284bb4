//! Tests with the reference server, over each of its transports.

use super::*;
use crate::tool::RequiredPermission;
use agent_client_protocol::v1::schema::{EnvVariable, McpServerHttp, McpServerSse};
use jackfield_test_support::reference_mcp_server::ReferenceMcpServer;

/// Returns the program that `scripts/install-agents.sh` installs.
fn server_program() -> PathBuf {
    let chosen = std::env::var_os("JACKFIELD_AGENTS_DIR").map(PathBuf::from);
    let in_tree = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents");
    let path = chosen.unwrap_or_else(in_tree).join("bin/mcp-server-everything");
    assert!(path.exists(), "the MCP server is missing: run scripts/install-agents.sh");
    std::path::absolute(path).unwrap()
}

fn stdio_server(name: &str) -> McpServer {
    let env = vec![EnvVariable::new("GIVEN", "by the client")];
    let args = vec!["stdio".to_owned()];
    McpServer::Stdio(McpServerStdio::new(name, server_program()).args(args).env(env))
}

/// Checks what every transport must support.
async fn check_server(servers: &McpServers) {
    assert_eq!(wait_for_start(servers).await, [""; 0]);
    let names = names(servers);
    assert!(names.iter().any(|it| it == "ev_echo"), "{names:?}");
    assert_eq!(names[names.len() - 2..], ["mcp_list_resources", "mcp_read_resource"]);

    let prepared = prepare(servers, "ev_echo", &json!({ "message": "hello" })).unwrap();
    assert_eq!(prepared.permission, RequiredPermission::Named("mcp ev.echo".to_owned()));
    assert_eq!(prepared.title, "ev.echo");
    let echo = servers.run_work(prepared.work).await;
    assert!(!echo.is_error && echo.text.contains("hello"), "{echo:?}");

    let image = call(servers, "ev_get-tiny-image", &json!({})).await;
    assert!(image.text.contains("[an image (image/png), shown to the user]"), "{}", image.text);
    let blocks = content_json(&image);
    let image_block = blocks.as_array().unwrap().iter().find(|it| it["content"]["type"] == "image");
    assert_eq!(image_block.unwrap()["content"]["mimeType"], "image/png");

    let listed = call(servers, "mcp_list_resources", &json!({})).await;
    let architecture = "demo://resource/static/document/architecture.md";
    assert!(listed.text.contains(&format!("ev {architecture} ")), "{}", listed.text);
    assert!(listed.text.contains("demo://resource/dynamic/text/{resourceId}"), "{}", listed.text);
    let arguments = json!({ "server": "ev", "uri": architecture });
    let read = call(servers, "mcp_read_resource", &arguments).await;
    assert!(!read.is_error && read.text.starts_with(architecture), "{}", read.text);

    let invalid = call(servers, "ev_echo", &json!({ "message": 7 })).await;
    assert!(invalid.is_error, "{invalid:?}");
}

#[tokio::test]
async fn stdio_server_works() {
    let session = McpTestSession::new();
    let servers = session.start([stdio_server("ev")], TEST_TIMEOUT);
    check_server(&servers).await;
    session.end(servers).await;
}

#[tokio::test]
async fn streamable_http_server_works() {
    let session = McpTestSession::new();
    let server =
        ReferenceMcpServer::start(&server_program(), "streamableHttp", session.context.env.clone());
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let servers = session.start([McpServer::Http(McpServerHttp::new("ev", url))], TEST_TIMEOUT);
    check_server(&servers).await;
    drop(server);
    let gone = call(&servers, "ev_echo", &json!({ "message": "hello" })).await;
    assert!(gone.is_error && gone.text.contains("`ev`"), "{gone:?}");
    session.end(servers).await;
}

#[tokio::test]
async fn sse_server_works() {
    let session = McpTestSession::new();
    let server = ReferenceMcpServer::start(&server_program(), "sse", session.context.env.clone());
    let url = format!("http://127.0.0.1:{}/sse", server.port);
    let servers = session.start([McpServer::Sse(McpServerSse::new("ev", url))], TEST_TIMEOUT);
    check_server(&servers).await;
    drop(server);
    session
        .wait_until("the end of the server is noticed", |_| {
            prepare(&servers, "ev_echo", &json!({})).is_err_and(|it| it.contains("`ev` has ended"))
        })
        .await;
    session.end(servers).await;
}

#[tokio::test]
async fn environment_of_a_server_is_restricted() {
    let session = McpTestSession::new();
    let servers = session.start([stdio_server("ev")], TEST_TIMEOUT);
    wait_for_start(&servers).await;
    servers.tool_specs();
    let seen = call(&servers, "ev_get-env", &json!({})).await.text;
    let seen: Value = serde_json::from_str(&seen).unwrap();
    let mut names: Vec<&str> = seen.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", jackfield_agents::MARK_VARIABLE, "PATH"]);
    assert_eq!(seen["GIVEN"], "by the client");
    session.end(servers).await;
}

#[tokio::test]
async fn servers_with_the_same_name_get_different_labels() {
    let session = McpTestSession::new();
    let servers = session.start([stdio_server("ev"), stdio_server("ev")], TEST_TIMEOUT);
    assert_eq!(wait_for_start(&servers).await, [""; 0]);
    let names = names(&servers);
    for name in ["ev_echo", "ev_2_echo"] {
        assert!(names.iter().any(|it| it == name), "{names:?}");
    }
    let echo = call(&servers, "ev_2_echo", &json!({ "message": "second" })).await;
    assert!(echo.text.contains("second"), "{echo:?}");
    session.end(servers).await;
}
