//! A real model on this machine: the server of llama.cpp with a very small model, on one thread.
//!
//! It has no tools, its answers are poor, and it takes about a second to start.

use crate::{
    cli::{agents_dir, installed},
    http::Web,
};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

/// The server exits when this is dropped, or when this process exits, because its stdin ends then.
pub struct RealModel {
    process: Child,
    address: SocketAddr,
}

impl RealModel {
    /// The name of the model.
    pub const NAME: &str = "smollm2-135m";

    /// Waits until it is ready. Returns `None`, and prints so, if the packages could not be downloaded when agents were
    /// installed.
    #[expect(clippy::print_stderr, reason = "a skipped test is reported")]
    pub fn start() -> Option<RealModel> {
        if let Ok(why) = fs::read_to_string(agents_dir().join("model.skipped")) {
            eprintln!("skipped: no real model is installed. {}", why.trim());
            return None;
        }
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/agents/model/serve.py");
        let mut process = Command::new(installed("model/bin/python"))
            .arg(script)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python");
        let stdout = process.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("the server prints its address");
        let address =
            line.trim().strip_prefix("ready http://").and_then(|it| it.strip_suffix("/v1"));
        let address = address.and_then(|it| it.parse().ok());
        let Some(address) = address else { panic!("the model did not start: `{line}`") };
        Some(RealModel { process, address })
    }

    /// The value of `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The server for plain HTTP requests. It needs no key.
    pub fn web(&self) -> Web {
        Web { address: self.address, token: "none".to_owned() }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for RealModel {
    fn drop(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it was killed");
    }
}
