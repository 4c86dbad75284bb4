//! The reference server of MCP's makers behind an address: what real clients of MCP are tested with.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

/// A running server. It ends with the test.
#[derive(Debug)]
pub struct Everything {
    child: Child,
    /// On 127.0.0.1.
    pub port: u16,
}

/// It listens to the whole world, on a port of its own choice, and does not tell which: this makes it
/// listen to this machine alone, on any port, and say so.
const ON_LOOPBACK: &str = "data:text/javascript,
    import net from 'node:net';
    const listen = net.Server.prototype.listen;
    net.Server.prototype.listen = function (_, ...rest) {
        this.once('listening', () => console.error('at ' + this.address().port));
        return listen.call(this, 0, '127.0.0.1', ...rest);
    };";

impl Everything {
    /// In one of its modes, `streamableHttp` or `sse`, with this environment and no other.
    pub fn start(
        program: &Path,
        mode: &str,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Everything {
        let mut command = Command::new("node");
        command.arg("--import").arg(ON_LOOPBACK.replace('\n', " ")).arg(program).arg(mode);
        command.env_clear().envs(env);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("node");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let port = lines.find_map(|it| it.strip_prefix("at ")?.parse().ok()).expect("a port");
        // It goes on writing, and must not find the pipe closed.
        thread::spawn(move || lines.for_each(drop));
        Everything { child, port }
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        self.child.kill().expect("it is ours to end");
        self.child.wait().expect("it is ours to wait for");
    }
}
