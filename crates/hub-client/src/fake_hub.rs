//! The other end of a connection in tests. It sends what the test tells it to, also before the
//! request.

use crate::HubConnection;
use jackfield_protocol::{Frame, acp::Method};
use jackfield_transport::stream_pair;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::Range;
use std::os::unix::net::UnixStream;

pub(crate) struct FakeHub(BufReader<UnixStream>);

impl FakeHub {
    pub(crate) fn connect() -> (HubConnection, FakeHub) {
        let (client, hub) = stream_pair().unwrap();
        (HubConnection::new(client), FakeHub(BufReader::new(hub)))
    }

    pub(crate) fn send(&mut self, frame: &Frame) {
        writeln!(self.0.get_mut(), "{}", frame.text()).unwrap();
    }

    pub(crate) fn send_events(&mut self, session: &str, seqs: Range<u64>) {
        for seq in seqs {
            let params = json!({ "sessionId": session, "seq": seq, "at": 1, "is": "said" });
            self.send(&Frame::notification(Method::ControlEvent.name(), &params.to_string()));
        }
    }

    /// The next request that the client has sent.
    pub(crate) fn read_request(&mut self) -> Frame {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        Frame::parse_str(&line).unwrap()
    }
}
