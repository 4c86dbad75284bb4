//! The MCP reference server "everything" over HTTP, for tests of MCP clients.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

/// A running server, which is killed when this is dropped.
#[derive(Debug)]
pub struct ReferenceMcpServer {
    child: Child,
    /// The port on 127.0.0.1.
    pub port: u16,
}

/// By default the server listens on all interfaces on a port that it does not print. This script makes it listen on
/// loopback, on a free port, and print that port.
const ON_LOOPBACK: &str = "data:text/javascript,
    import net from 'node:net';
    const listen = net.Server.prototype.listen;
    net.Server.prototype.listen = function (_, ...rest) {
        this.once('listening', () => console.error('at ' + this.address().port));
        return listen.call(this, 0, '127.0.0.1', ...rest);
    };";

impl ReferenceMcpServer {
    /// Starts the server in the mode `streamableHttp` or `sse`, with exactly this environment.
    pub fn start(
        program: &Path,
        mode: &str,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> ReferenceMcpServer {
        let mut command = Command::new("node");
        command.arg("--import").arg(ON_LOOPBACK.replace('\n', " ")).arg(program).arg(mode);
        command.env_clear().envs(env);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("node");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let port = lines.find_map(|it| it.strip_prefix("at ")?.parse().ok()).expect("a port");
        // The server keeps writing, so the pipe must stay open.
        thread::spawn(move || lines.for_each(drop));
        ReferenceMcpServer { child, port }
    }
}

impl Drop for ReferenceMcpServer {
    fn drop(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server can be waited for");
    }
}
