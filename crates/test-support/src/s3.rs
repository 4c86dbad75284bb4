//! An S3 server on loopback: real requests over HTTP, data in memory.

use crate::{cleanup::CleanupShell, loopback::own_loopback, wait::wait_for};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The server is a large Python program that starts slowly.
const BOUND: Duration = Duration::from_mins(1);

/// Kills the server, whose command line contains its unique address.
const CLEANUP_SCRIPT: &str = r#"
for it in $(echo "s3=$1" | grep -lFf - /proc/[0-9]*/cmdline); do
    it=${it#/proc/}
    kill -9 "${it%/cmdline}"
done
"#;

/// The server is killed when this is dropped and when the test is killed.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    process: Option<Child>,
    _cleanup: CleanupShell,
}

impl S3 {
    /// Starts a server with an empty bucket of this name.
    pub fn start(bucket: &str) -> S3 {
        let free = TcpListener::bind((own_loopback(), 0)).expect("a free port exists");
        let address = free.local_addr().expect("the listener is bound");
        drop(free);
        let cleanup = CleanupShell::new(CLEANUP_SCRIPT, address.to_string());
        let mut s3 = S3 { address, process: None, _cleanup: cleanup };
        s3.launch(bucket);
        s3
    }

    /// The base URL of requests, without the bucket.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The environment of a daemon that uses this server. The variables that agents read lead elsewhere.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:1/nobody".to_owned()),
            ("JACKFIELD_AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("JACKFIELD_AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ]
    }

    fn launch(&mut self, bucket: &str) {
        let mut command = Command::new(python());
        let (ip, port) = (self.address.ip().to_string(), self.address.port().to_string());
        // For the cleanup script only; the server ignores this option.
        command.args(["-X", &format!("s3={}", self.address)]);
        command.args(["-m", "moto.server", "-H", &ip, "-p", &port]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().expect("Python starts"));
        wait_for("the S3 server", BOUND, || {
            let answer = self.send_request("PUT", bucket)?;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            Some(())
        });
    }

    /// Kills the server; its data is lost.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ended_by_itself = process.kill();
            let _status = process.wait();
        }
    }

    /// Sends a request without a body; `None` if the server does not answer.
    fn send_request(&self, method: &str, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(BOUND)).ok()?;
        let host = self.address;
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer).filter(|it| !it.is_empty())
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The Python that `scripts/install-s3.sh` installed.
fn python() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/s3/bin/python");
    assert!(path.exists(), "the S3 server is missing: run scripts/install-s3.sh");
    path
}
