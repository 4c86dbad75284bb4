//! A real model on this machine: llama.cpp's server with a very small one, on one thread.
//!
//! It knows no tools, answers short questions about as well as one would expect, and takes about a
//! second to start.

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

/// Ends with this value; and with this process, if that comes first, since its input ends then.
pub struct RealModel {
    process: Child,
    address: SocketAddr,
}

impl RealModel {
    /// What the server calls it.
    pub const NAME: &str = "smollm2-135m";

    /// Waits until it can be asked. `None` only where the packages could not be reached when agents were
    /// installed; that is told.
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    pub fn start() -> Option<RealModel> {
        if let Ok(why) = fs::read_to_string(agents_dir().join("model.skipped")) {
            eprintln!("left out: there is no real model here. {}", why.trim());
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
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let address =
            line.trim().strip_prefix("ready http://").and_then(|it| it.strip_suffix("/v1"));
        let address = address.and_then(|it| it.parse().ok());
        let Some(address) = address else { panic!("the model did not start: `{line}`") };
        Some(RealModel { process, address })
    }

    /// For `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// To ask it over plain HTTP. It wants no key.
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
