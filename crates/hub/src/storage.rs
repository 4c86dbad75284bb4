//! Whether the journal accepts events, and how clients and operators are notified when it does not.

use crate::{
    ConnId, Hub, Note, Time,
    session::{Session, Sessions, rfc3339},
};
use jackfield_protocol::{Fault, Frame, acp::Method};
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
struct StorageFailure {
    fault: StorageFault,
    /// The error of the journal, which may name files.
    error: String,
    since: Time,
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

    /// What a session waits for, if it waits for the storage.
    pub(crate) fn describe_wait(&self, session: &Session) -> Option<String> {
        let failing = self.failing.as_ref().filter(|_| is_stalled(session))?;
        let events = match session.log.pending_events().count() {
            1 => "1 event waits".to_owned(),
            events => format!("{events} events wait"),
        };
        Some(format!("{events} to be written: {}", failing.fault.problem()))
    }
}

impl Sessions {
    pub(crate) fn count_pending_events(&self) -> usize {
        self.by_id.values().map(|it| it.log.pending_events().count()).sum()
    }
}

impl Hub {
    /// An append of a session failed for the `failures`th time in a row.
    pub(crate) fn on_storage_failed(&mut self, failures: u32, fault: StorageFault, error: &str) {
        let known = self.parts.storage.failing.as_ref();
        if failures < FAILURES_MIN || known.is_some_and(|it| it.fault == fault) {
            return;
        }
        let since = known.map_or(self.parts.cx.now, |it| it.since);
        self.parts.storage.failing = Some(StorageFailure { fault, error: error.to_owned(), since });
        self.parts.cx.note(Note::StorageFailing {
            problem: fault.problem(),
            error: error.to_owned(),
            way_out: fault.way_out(),
        });
        self.send_storage_state();
    }

    /// Reports the end of a failure when no session waits for the storage any more.
    pub(crate) fn check_storage(&mut self) {
        if self.parts.storage.failing.is_none() || self.sessions.by_id.values().any(is_stalled) {
            return;
        }
        let failing = self.parts.storage.failing.take();
        let after_ms = failing.map_or(0, |it| self.parts.cx.now.since(it.since));
        self.parts.cx.note(Note::StorageRecovered { after_ms });
        self.send_storage_state();
    }

    /// The state for status and notices. Tenants do not get the names of files.
    pub(crate) fn storage_json(&self, conn: ConnId) -> Value {
        self.storage_trouble(conn).unwrap_or_else(|| json!({ "ok": true }))
    }

    /// The state for lists, which omit a storage that works.
    pub(crate) fn storage_trouble(&self, conn: ConnId) -> Option<Value> {
        let is_operator = self.parts.clients.tenant_name(conn).is_none();
        let lost = self.parts.cx.config.lost_records.filter(|_| is_operator);
        if lost.is_none() && self.parts.storage.failing.is_none() {
            return None;
        }
        let mut storage = json!({ "ok": true });
        if let Some(lost) = lost {
            storage["lostRecords"] = json!(lost);
        }
        if let Some(StorageFailure { fault, error, since }) = &self.parts.storage.failing {
            storage["ok"] = json!(false);
            storage["cause"] = json!(fault.name());
            storage["problem"] = json!(fault.problem());
            storage["wayOut"] = json!(fault.way_out());
            storage["since"] = json!(rfc3339(since.0));
            if is_operator {
                storage["error"] = json!(error);
                storage["unwrittenEvents"] = json!(self.sessions.count_pending_events());
            }
        }
        Some(storage)
    }

    /// Sends the state of the storage to all clients that know the hub.
    fn send_storage_state(&mut self) {
        let recipients =
            self.parts.clients.connections.iter().filter(|(_, it)| it.notices && !it.relay);
        let recipients: Vec<ConnId> = recipients.map(|(conn, _)| *conn).collect();
        for conn in recipients {
            let state = self.storage_json(conn).to_string();
            let frame = Frame::notification(Method::ControlStorage.name(), &state);
            self.parts.clients.send(&mut self.parts.cx, conn, frame.into_bytes());
        }
    }
}

fn is_stalled(session: &Session) -> bool {
    FAILURES_MIN <= session.log.failed_appends() && !session.log.is_all_durable()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AppendFailure, Config, Input, Output, Recovered, Seq};
    use jackfield_events::SessionSummary;

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
        say(&mut hub, "initialize", params);
        hub
    }

    fn drain(hub: &mut Hub) -> Vec<Output> {
        std::iter::from_fn(|| hub.poll_output()).collect()
    }

    /// What the client gets after it has sent something.
    fn say(hub: &mut Hub, method: &str, params: &str) -> Vec<Value> {
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
        let status = say(&mut hub, "_jackfield/status", "{}").remove(0);
        assert_eq!(status["result"]["storage"]["error"], "ENOSPC");
        let rows = say(&mut hub, "_jackfield/sessions", "{}").remove(0);
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
            let heard = say(&mut hub, "session/prompt", prompt);
            let code = heard.first().map(|it| it["error"]["data"]["jackfield"]["code"].clone());
            assert_eq!(code == Some(json!("storage_failing")), is_refused, "{heard:?}");
        }
    }

    #[test]
    fn an_attach_hears_what_is_durable_while_the_rest_waits() {
        let mut hub = hub();
        let attach = r#"{"sessionId":"s-1","after":5,"facts":true}"#;
        assert!(say(&mut hub, "_jackfield/attach", attach).is_empty(), "event 6 is on its way");
        hub = self::hub();
        fail(&mut hub, StorageFault::ReadOnly);
        fail(&mut hub, StorageFault::ReadOnly);
        let heard = say(&mut hub, "_jackfield/attach", attach);
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
