//! Whether the journal accepts events, and how clients and operators are notified when it does not.

use crate::{Note, Time, log::SessionLog};
use jackfield_protocol::{Fault, rfc3339};
use serde_json::{Value, json};

/// Failed appends of one session in a row before they are reported. A single failure may be a short wait for another
/// process or for a new leader of the servers.
const FAILURES_MIN: u32 = 2;

/// The kinds of storage failures, distinguished by remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageFault {
    DiskFull,
    ReadOnly,
    /// A file of the journal was removed or replaced while it was in use.
    FileChanged,
    Other,
}

impl StorageFault {
    fn name(self) -> &'static str {
        match self {
            StorageFault::DiskFull => "disk_full",
            StorageFault::ReadOnly => "read_only",
            StorageFault::FileChanged => "file_changed",
            StorageFault::Other => "other",
        }
    }

    fn problem(self) -> &'static str {
        match self {
            StorageFault::DiskFull => "the disk is full",
            StorageFault::ReadOnly => "the disk is read-only",
            StorageFault::FileChanged => "a file of the journal was removed or replaced",
            StorageFault::Other => "the journal does not take events",
        }
    }

    fn way_out(self) -> &'static str {
        match self {
            StorageFault::DiskFull => {
                "free space on the disk of the state directory; what waits is then written by itself"
            }
            StorageFault::ReadOnly => {
                "make the disk of the state directory writable; what waits is then written by itself"
            }
            StorageFault::FileChanged => {
                "put the file back where it was, and what waits is written by itself; if it is lost, restart the \
                 daemon, which loses what waits"
            }
            StorageFault::Other => {
                "it is tried again every few seconds; the log of the daemon has the error"
            }
        }
    }

    /// Whether it lasts until the operator does something.
    fn needs_operator(self) -> bool {
        self != StorageFault::Other
    }
}

/// The state of the storage.
#[derive(Debug, Default)]
pub(crate) struct StorageState {
    failing: Option<StorageFailure>,
}

#[derive(Debug)]
pub(crate) struct StorageFailure {
    fault: StorageFault,
    /// The error of the journal, which may name files.
    pub(crate) error: String,
    since: Time,
}

impl StorageFailure {
    /// As status and notices have it, without the names of files.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "ok": false,
            "cause": self.fault.name(),
            "problem": self.fault.problem(),
            "wayOut": self.fault.way_out(),
            "since": rfc3339(self.since.0),
        })
    }
}

impl StorageState {
    /// Refuses a request that would wait for the operator.
    pub(crate) fn require_working(&self) -> Result<(), Fault> {
        match &self.failing {
            Some(StorageFailure { fault, .. }) if fault.needs_operator() => {
                let why = format!("{}: {}", fault.problem(), fault.way_out());
                Err(Fault::StorageFailing { why })
            }
            _ => Ok(()),
        }
    }

    /// Whether pending events cannot be stored until the operator does something.
    pub(crate) fn is_stuck(&self) -> bool {
        self.failing.as_ref().is_some_and(|it| it.fault.needs_operator())
    }

    pub(crate) fn failure(&self) -> Option<&StorageFailure> {
        self.failing.as_ref()
    }

    /// An append failed for the `failures`th time in a row. Returns the report, if there is something new to report.
    pub(crate) fn count_failure(
        &mut self,
        now: Time,
        failures: u32,
        fault: StorageFault,
        error: &str,
    ) -> Option<Note> {
        let known = self.failing.as_ref();
        if failures < FAILURES_MIN || known.is_some_and(|it| it.fault == fault) {
            return None;
        }
        let since = known.map_or(now, |it| it.since);
        self.failing = Some(StorageFailure { fault, error: error.to_owned(), since });
        Some(Note::StorageFailing {
            problem: fault.problem(),
            error: error.to_owned(),
            way_out: fault.way_out(),
        })
    }

    /// Ends the failure unless a session still waits. Returns how long it lasted.
    pub(crate) fn clear_failure(
        &mut self,
        now: Time,
        is_stalled: impl FnOnce() -> bool,
    ) -> Option<u64> {
        if self.failing.is_none() || is_stalled() {
            return None;
        }
        self.failing.take().map(|it| now.since(it.since))
    }

    /// What a session waits for, if it waits for the storage.
    pub(crate) fn describe_wait(&self, log: &SessionLog) -> Option<String> {
        let failing = self.failing.as_ref().filter(|_| is_stalled(log))?;
        let events = match log.pending_events().count() {
            1 => "1 event waits".to_owned(),
            events => format!("{events} events wait"),
        };
        Some(format!("{events} to be written: {}", failing.fault.problem()))
    }
}

/// Whether appends of this log have failed often enough to be reported.
pub(crate) fn is_stalled(log: &SessionLog) -> bool {
    FAILURES_MIN <= log.failed_appends() && !log.is_all_durable()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AppendFailure, Config, ConnId, Hub, Input, Output, Recovered, Seq};
    use jackfield_events::SessionSummary;
    use jackfield_protocol::Frame;

    const CLIENT: ConnId = ConnId(1);

    /// A hub with one client, and a session whose last turn it has just ended: event 6 is not durable.
    fn hub() -> Hub {
        let state =
            SessionSummary { seq: 5, turns: 1, open_turn: Some(1), ..SessionSummary::default() };
        let recovered = [Recovered { session: "s-1".into(), state }];
        let mut hub = Hub::new(Config::default(), Time(0), recovered);
        drain(&mut hub);
        hub.handle(Time(0), Input::ClientOpened { conn: CLIENT, peer: None });
        let params = r#"{"protocolVersion":1,"clientCapabilities":{"_meta":{"jackfield":{}}}}"#;
        request(&mut hub, "initialize", params);
        hub
    }

    fn drain(hub: &mut Hub) -> Vec<Output> {
        std::iter::from_fn(|| hub.poll_output()).collect()
    }

    /// What the client gets after it has sent something.
    fn request(hub: &mut Hub, method: &str, params: &str) -> Vec<Value> {
        let frame = Frame::request("7", method, params);
        hear(hub, Input::ClientSpoke { conn: CLIENT, frame })
    }

    fn hear(hub: &mut Hub, input: Input) -> Vec<Value> {
        hub.handle(hub.parts.cx.now, input);
        let heard = |it| match it {
            Output::ToClient { text, .. } => serde_json::from_slice(&text).ok(),
            _ => None,
        };
        drain(hub).into_iter().filter_map(heard).collect()
    }

    fn fail(hub: &mut Hub, fault: StorageFault) -> Vec<Value> {
        let why = AppendFailure::Unavailable { fault, why: "ENOSPC".into() };
        hear(hub, Input::AppendFailed { session: "s-1".into(), why })
    }

    fn durable() -> Input {
        Input::Durable { session: "s-1".into(), upto: Seq(6) }
    }

    #[test]
    fn trouble_is_said_once_with_the_way_out_and_so_is_its_end() {
        let mut hub = hub();
        assert_eq!(
            fail(&mut hub, StorageFault::DiskFull),
            Vec::<Value>::new(),
            "one is no trouble"
        );
        let heard = fail(&mut hub, StorageFault::DiskFull);
        let [notice] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(notice["method"], "_jackfield/storage");
        assert_eq!(notice["params"]["cause"], "disk_full");
        assert!(notice["params"]["wayOut"].as_str().unwrap().starts_with("free space"));
        assert_eq!(notice["params"]["unwrittenEvents"], 1);
        assert!(fail(&mut hub, StorageFault::DiskFull).is_empty());
        let status = request(&mut hub, "_jackfield/status", "{}").remove(0);
        assert_eq!(status["result"]["storage"]["error"], "ENOSPC");
        let rows = request(&mut hub, "_jackfield/sessions", "{}").remove(0);
        let row = &rows["result"]["sessions"][0];
        assert_eq!(row["state"], "stalled");
        assert_eq!(row["doing"], "1 event waits to be written: the disk is full");
        assert_eq!(rows["result"]["storage"]["ok"], false);

        let heard = hear(&mut hub, durable());
        let over = heard.iter().find(|it| it["method"] == "_jackfield/storage").unwrap();
        assert_eq!(over["params"], json!({ "ok": true }));
    }

    #[test]
    fn a_prompt_is_refused_while_only_an_operator_can_help() {
        for (fault, is_refused) in [(StorageFault::DiskFull, true), (StorageFault::Other, false)] {
            let mut hub = hub();
            fail(&mut hub, fault);
            fail(&mut hub, fault);
            let prompt = r#"{"sessionId":"s-1","prompt":[{"type":"text","text":"x"}]}"#;
            let heard = request(&mut hub, "session/prompt", prompt);
            let code = heard.first().map(|it| it["error"]["data"]["jackfield"]["code"].clone());
            assert_eq!(code == Some(json!("storage_failing")), is_refused, "{heard:?}");
        }
    }

    #[test]
    fn an_attach_hears_what_is_durable_while_the_rest_waits() {
        let mut hub = hub();
        let attach = r#"{"sessionId":"s-1","after":5,"facts":true}"#;
        assert!(request(&mut hub, "_jackfield/attach", attach).is_empty(), "event 6 is on its way");
        hub = self::hub();
        fail(&mut hub, StorageFault::ReadOnly);
        fail(&mut hub, StorageFault::ReadOnly);
        let heard = request(&mut hub, "_jackfield/attach", attach);
        let expected = json!({ "sessionId": "s-1", "head": 5, "unwritten": 1 });
        assert_eq!(heard[0]["result"], expected);
    }

    #[test]
    fn a_stop_does_not_wait_for_a_storage_that_is_stuck() {
        let stops = |fault| {
            let mut hub = hub();
            fail(&mut hub, fault);
            fail(&mut hub, fault);
            hub.handle(hub.parts.cx.now, Input::Stop);
            drain(&mut hub).iter().any(|it| matches!(it, Output::Stopped))
        };
        assert!(stops(StorageFault::FileChanged));
        assert!(!stops(StorageFault::Other));
    }
}
