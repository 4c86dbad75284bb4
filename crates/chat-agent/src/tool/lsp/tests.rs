//! The tool against a scripted server, and against real ones where they are installed.

use super::LanguageServers;
use crate::{
    settings::LanguageServer,
    tool::{
        IoCapabilities,
        test_session::{TestSession, wait_until, with_test_session},
    },
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, sync::Arc};

/// Answers each request with the same place, and reports one problem for each file that it is sent.
const SERVER: &str = r#"
import json, os, sys

def send(message):
    body = json.dumps(dict(message, jsonrpc="2.0")).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()

open("server.pid", "w").write(str(os.getpid()))
sys.stderr.write("this is a log line\n")
place = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 1}}
while True:
    head = sys.stdin.buffer.readline()
    if not head:
        break
    assert sys.stdin.buffer.readline() == b"\r\n"
    message = json.loads(sys.stdin.buffer.read(int(head.split(b":")[1])))
    method, params = message.get("method"), message.get("params")
    if method == "initialize":
        send({"id": message["id"], "result": {"capabilities": {}}})
    elif method == "initialized":
        send({"id": 1, "method": "workspace/configuration", "params": {"items": [{}, {}]}})
        send({"method": "$/progress", "params": {"token": 1, "value": {"kind": "begin"}}})
    elif method is None:
        assert message["result"] == [None, None], message
        send({"method": "$/progress", "params": {"token": 1, "value": {"kind": "end"}}})
    elif method in ("textDocument/didOpen", "textDocument/didChange"):
        document = params["textDocument"]
        problem = {"range": place, "severity": 1, "message": "version %d" % document["version"]}
        send({"method": "textDocument/publishDiagnostics", "params": {"uri": document["uri"], "diagnostics": [problem]}})
    elif method == "textDocument/hover":
        at = params["position"]
        send({"id": message["id"], "result": {"contents": "%d:%d" % (at["line"], at["character"])}})
    elif method == "textDocument/documentSymbol":
        symbol = {"name": "run", "kind": 12, "selectionRange": place}
        send({"id": message["id"], "result": [symbol]})
    elif method == "textDocument/references":
        send({"id": message["id"], "error": {"code": 1, "message": "not indexed"}})
    else:
        uri = params["textDocument"]["uri"]
        send({"id": message["id"], "result": [{"uri": uri, "range": place}]})
"#;

fn use_server(session: &mut TestSession, extension: &str, command: &[&str]) {
    let server = LanguageServer {
        extensions: vec![extension.to_owned()],
        command: command.iter().map(|it| (*it).to_owned()).collect(),
    };
    session.context.language_servers = Arc::new(LanguageServers::new(vec![server]));
}

#[tokio::test]
async fn server_is_asked_and_ends_with_its_session() {
    with_test_session(IoCapabilities::default(), async |mut session| {
        fs::write(session.at("server.py"), SERVER).unwrap();
        fs::write(session.at("a.x"), "ä = 1\ndef run():\n").unwrap();
        use_server(&mut session, "x", &["python3", "server.py"]);
        let ask = async |action: &str| {
            let args = json!({ "action": action, "path": "a.x", "line": 1, "symbol": "=" });
            session.call("lsp", args).await
        };
        assert_eq!(ask("diagnostics").await.text, "a.x:2: error: version 1\n");
        assert_eq!(ask("definition").await.text, "a.x:2: def run():\n");
        assert_eq!(ask("hover").await.text, "0:2", "a position counts UTF-16 code units");
        assert_eq!(ask("symbols").await.text, "2: function run\n");
        let failed = ask("references").await;
        assert!(failed.is_error && failed.text == "not indexed", "{}", failed.text);
        fs::write(session.at("a.x"), "b = 1\n").unwrap();
        assert_eq!(ask("diagnostics").await.text, "a.x:2: error: version 2\n");
        let pid = fs::read_to_string(session.at("server.pid")).unwrap();
        let process = PathBuf::from(format!("/proc/{pid}"));
        assert!(process.exists());
        session.context.language_servers = Arc::default();
        wait_until(|| !process.exists()).await;
    })
    .await;
}

#[tokio::test]
async fn server_that_cannot_be_used_is_reported() {
    with_test_session(IoCapabilities::default(), async |mut session| {
        fs::write(session.at("a.x"), "x\n").unwrap();
        let args = json!({ "action": "symbols", "path": "a.x" });
        for command in [&["/bin/false"][..], &["/bin/echo", "hello"], &["/nonexistent/server"]] {
            use_server(&mut session, "x", command);
            let outcome = session.call("lsp", args.clone()).await;
            assert!(outcome.is_error, "{}", outcome.text);
            assert!(outcome.text.starts_with("Failed to start"), "{}", outcome.text);
        }
        use_server(&mut session, "y", &["/bin/false"]);
        let outcome = session.call("lsp", args).await;
        assert!(outcome.text.starts_with("No language server is for `.x` files"));
        let invalid = json!({ "action": "hover", "path": "a.x" });
        let outcome = session.call("lsp", invalid).await;
        assert!(outcome.text.contains("`line` is missing"), "{}", outcome.text);
    })
    .await;
}

/// Whether a program can be run. If not, the test that needs it is skipped.
#[expect(clippy::print_stderr, reason = "a skipped test must be visible")]
fn is_installed(program: &str, probe: &[&str]) -> bool {
    // A proxy of rustup is on the path even if the component is not installed.
    let output = std::process::Command::new(program).args(probe).output();
    let is_installed = output.is_ok_and(|it| it.status.success());
    if !is_installed {
        eprintln!("skipped: `{program}` is not installed");
    }
    is_installed
}

/// A real server takes longer to start than the other calls may take.
async fn ask_real_server(session: &TestSession, args: Value) -> String {
    let prepared = session.prepare("lsp", args).await.unwrap();
    session.run(prepared).await.text
}

#[tokio::test]
#[ignore = "nightly: a real language server takes many seconds to start"]
async fn pyright_finds_definitions_and_problems() {
    if !is_installed("pyright", &["--version"]) {
        return;
    }
    with_test_session(IoCapabilities::default(), async |mut session| {
        fs::write(session.at("a.py"), "def run() -> int:\n    return \"x\"\n\nrun()\n").unwrap();
        use_server(&mut session, "py", &["pyright-langserver", "--stdio"]);
        let ask = async |action: &str| {
            let args = json!({ "action": action, "path": "a.py", "line": 4, "symbol": "run" });
            ask_real_server(&session, args).await
        };
        assert_eq!(ask("definition").await, "a.py:1: def run() -> int:\n");
        assert_eq!(ask("references").await.lines().count(), 2);
        assert!(ask("hover").await.contains("run() -> int"));
        assert!(ask("diagnostics").await.starts_with("a.py:2: error: "));
    })
    .await;
}

#[tokio::test]
#[ignore = "nightly: a real language server takes many seconds to start"]
async fn rust_analyzer_finds_definitions() {
    if !is_installed("rust-analyzer", &["--version"]) {
        return;
    }
    with_test_session(IoCapabilities::default(), async |mut session| {
        let manifest =
            "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
        fs::write(session.at("Cargo.toml"), manifest).unwrap();
        fs::create_dir(session.at("src")).unwrap();
        fs::write(session.at("src/main.rs"), "fn run() {}\n\nfn main() {\n    run();\n}\n")
            .unwrap();
        use_server(&mut session, "rs", &["rust-analyzer"]);
        let args =
            json!({ "action": "definition", "path": "src/main.rs", "line": 4, "symbol": "run" });
        let found = ask_real_server(&session, args).await;
        assert_eq!(found, "src/main.rs:1: fn run() {}\n");
    })
    .await;
}
