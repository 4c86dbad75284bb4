//! An S3 server on loopback, for as long as a test needs it: real requests over HTTP, kept in memory.

use crate::{loopback::own_loopback, sweeper::Sweeper, wait::wait_for};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// It is a large program in Python, and takes its time to start.
const BOUND: Duration = Duration::from_mins(1);

/// Ends the server, whose command line has an address that only it has.
const SWEEP: &str = r#"
for it in $(echo "s3=$1" | grep -lFf - /proc/[0-9]*/cmdline); do
    it=${it#/proc/}
    kill -9 "${it%/cmdline}"
done
"#;

/// Nothing is left of it when it is dropped, nor when the test is killed.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    process: Option<Child>,
    _sweeper: Sweeper,
}

impl S3 {
    /// Starts one with an empty bucket of this name.
    pub fn start(bucket: &str) -> S3 {
        let free = TcpListener::bind((own_loopback(), 0)).expect("there are free ports");
        let address = free.local_addr().expect("it is bound");
        drop(free);
        let sweeper = Sweeper::new(SWEEP, address.to_string());
        let mut s3 = S3 { address, process: None, _sweeper: sweeper };
        s3.launch(bucket);
        s3
    }

    /// Where requests go, without the bucket.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a daemon finds in its environment that is to use it; agents are led elsewhere.
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
        // For the sweeper alone: nobody else looks at this option.
        command.args(["-X", &format!("s3={}", self.address)]);
        command.args(["-m", "moto.server", "-H", &ip, "-p", &port]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().expect("Python starts"));
        wait_for("the S3 server", BOUND, || {
            let answer = self.ask("PUT", bucket)?;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            Some(())
        });
    }

    /// Ends it, with all that it has.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ended_by_itself = process.kill();
            let _ours = process.wait();
        }
    }

    /// One request without a body; none while nobody answers.
    fn ask(&self, method: &str, path: &str) -> Option<String> {
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

/// Where `scripts/install-s3.sh` put it.
fn python() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/s3/bin/python");
    assert!(path.exists(), "the S3 server is missing: run scripts/install-s3.sh");
    path
}
