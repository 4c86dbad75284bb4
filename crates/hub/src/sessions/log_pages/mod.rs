//! `_jackfield/read_log`: a range of a session's log, read from the journal without a subscription.
//!
//! Sequence numbers are dense, so a page that ends before an event is a range of numbers, and nothing before it is
//! read. The events are in the answer as one string of lines: they may nest deeper than a message may.

use super::Sessions;
use crate::{
    ConnId, Output, PageReadFailure, Seq, SessionId,
    budget::{ByteCharge, OverBudget},
    limits::{APPEND_RETRY_MS, LOG_PAGE_BYTES_MAX, LOG_PAGE_EVENTS, LOG_PAGE_EVENTS_MAX},
    parts::HubParts,
    session::SubscriptionEnd,
    timer::HubTimer,
};
use jackfield_events::SessionEvent;
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// How often a read is repeated that failed, or that returned nothing although events are stored.
const RETRIES_MAX: u32 = 10;

/// The pages that are being read.
#[derive(Debug, Default)]
pub(super) struct LogPages {
    by_number: BTreeMap<u64, LogPage>,
    last_number: u64,
}

/// A page that is being read for a client.
#[derive(Debug)]
struct LogPage {
    conn: ConnId,
    /// The request that is answered with the page.
    request: Box<str>,
    session: SessionId,
    range: PageRange,
    /// The last event that was read.
    read_upto: Seq,
    /// The events that the page has, each with its line.
    lines: VecDeque<(Seq, String)>,
    charge: ByteCharge,
    retries: u32,
}

/// The events `after + 1 ..= upto` of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageRange {
    after: Seq,
    upto: Seq,
    /// The last durable event of the session.
    last: Seq,
    /// Which events stay if not all fit into a page.
    kept_end: KeptEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptEnd {
    Oldest,
    Newest,
}

impl PageRange {
    /// The range that the parameters of a request name.
    fn from_params(params: &Value, last: Seq) -> Result<PageRange, Fault> {
        let number = |name: &str| match params.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| {
                let why = format!("`{name}` is not a number");
                Fault::InvalidParams { why }
            }),
        };
        let limit = number("limit")?.unwrap_or(LOG_PAGE_EVENTS);
        if !(1..=LOG_PAGE_EVENTS_MAX).contains(&limit) {
            let why = format!("`limit` is {limit}, expected 1 to {LOG_PAGE_EVENTS_MAX}");
            return Err(Fault::InvalidParams { why });
        }
        Ok(match (number("before")?, number("after")?) {
            (Some(_), Some(_)) => {
                let why = "set either `before` or `after`".to_owned();
                return Err(Fault::InvalidParams { why });
            }
            (None, Some(after)) => {
                let after = after.min(last.0);
                let upto = last.0.min(after.saturating_add(limit));
                PageRange { after: Seq(after), upto: Seq(upto), last, kept_end: KeptEnd::Oldest }
            }
            (before, None) => {
                let upto = before.map_or(last.0, |it| it.saturating_sub(1).min(last.0));
                let after = upto.saturating_sub(limit);
                PageRange { after: Seq(after), upto: Seq(upto), last, kept_end: KeptEnd::Newest }
            }
        })
    }
}

impl Sessions {
    /// Reads a page of a log, and answers the request with it later.
    pub(crate) fn read_log(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let session = self.find_session(frame)?;
        let range = PageRange::from_params(&frame.params_value(), session.log.durable())?;
        let Some(client) = parts.clients.connections.get(&conn) else { return Ok(()) };
        let charge = parts.cx.retained_bytes.charge_unchecked(&client.kept, 0);
        let page = LogPage {
            conn,
            request: id.into(),
            session: session.id.clone(),
            range,
            read_upto: range.after,
            lines: VecDeque::new(),
            charge,
            retries: 0,
        };
        self.log_pages.last_number += 1;
        let number = self.log_pages.last_number;
        self.log_pages.by_number.insert(number, page);
        self.continue_log_page(parts, number);
        Ok(())
    }

    /// The journal returned the next events of a page. A damaged event is left out.
    pub(crate) fn on_log_page_read(
        &mut self,
        parts: &mut HubParts,
        number: u64,
        events: Result<Vec<SessionEvent>, PageReadFailure>,
    ) {
        let Some(page) = self.log_pages.by_number.get_mut(&number) else { return };
        let events = match events {
            Ok(events) if events.is_empty() => {
                return self.retry_log_page(parts, number, "the journal returned no events");
            }
            Ok(events) => events,
            Err(PageReadFailure { damaged: true, .. }) => {
                page.read_upto = page.read_upto.next();
                return self.continue_log_page(parts, number);
            }
            Err(PageReadFailure { why, .. }) => return self.retry_log_page(parts, number, &why),
        };
        page.retries = 0;
        match page.add_events(parts, &events) {
            Ok(()) => self.continue_log_page(parts, number),
            Err(fault) => self.answer_log_page(parts, number, |_| Err(fault)),
        }
    }

    /// A read failed, and is repeated later.
    fn retry_log_page(&mut self, parts: &mut HubParts, number: u64, why: &str) {
        let Some(page) = self.log_pages.by_number.get_mut(&number) else { return };
        page.retries += 1;
        if RETRIES_MAX < page.retries {
            let why =
                format!("failed to read {} after event {}: {why}", page.session, page.read_upto.0);
            return self.answer_log_page(parts, number, |_| Err(Fault::Internal { why }));
        }
        let at = parts.cx.now.plus(APPEND_RETRY_MS);
        parts.cx.timers.set(at, HubTimer::LogPage(number));
    }

    /// The session is removed: requests are refused, and gateways repeat them at the next host.
    pub(super) fn abandon_log_pages_of(
        &mut self,
        parts: &mut HubParts,
        session: &SessionId,
        end: &mut SubscriptionEnd<'_>,
    ) {
        let of_session = |_: &u64, it: &mut LogPage| it.session == *session;
        for (_, page) in self.log_pages.by_number.extract_if(.., of_session) {
            end.refuse_request(&mut parts.clients, &mut parts.cx, page.conn, &page.request);
        }
    }

    /// Reads the next events of a page, or answers the request if it is complete.
    pub(crate) fn continue_log_page(&mut self, parts: &mut HubParts, number: u64) {
        let Some(page) = self.log_pages.by_number.get(&number) else { return };
        if page.is_complete() {
            return self.answer_log_page(parts, number, |page| Ok(page.to_result()));
        }
        let events_max = usize::try_from(page.range.upto.0 - page.read_upto.0);
        parts.cx.outputs.push_back(Output::ReadPage {
            page: number,
            session: page.session.clone(),
            after: page.read_upto,
            events_max: events_max.expect("a page has few events"),
        });
    }

    fn answer_log_page(
        &mut self,
        parts: &mut HubParts,
        number: u64,
        result: impl FnOnce(&LogPage) -> Result<String, Fault>,
    ) {
        let Some(page) = self.log_pages.by_number.remove(&number) else { return };
        let result = result(&page);
        let answer = result.as_deref();
        parts.clients.answer_request(&mut parts.cx, page.conn, &page.request, answer);
    }

    /// Forgets the pages of a client that is gone.
    pub(super) fn remove_log_pages(&mut self, conn: ConnId) {
        self.log_pages.by_number.retain(|_, it| it.conn != conn);
    }
}

impl LogPage {
    fn is_full(&self) -> bool {
        LOG_PAGE_BYTES_MAX <= self.charge.bytes()
    }

    fn is_complete(&self) -> bool {
        let is_full = self.range.kept_end == KeptEnd::Oldest && self.is_full();
        is_full || self.range.upto <= self.read_upto
    }

    /// Adds events that were read. If not all fit into the page, those at its other end are dropped.
    fn add_events(&mut self, parts: &HubParts, events: &[SessionEvent]) -> Result<(), Fault> {
        for event in events {
            if self.is_complete() {
                break;
            }
            // A stale read may start earlier, but never leaves an event out.
            if event.seq != self.read_upto.next() {
                continue;
            }
            self.read_upto = event.seq;
            let line = to_line(event);
            if let Some(client) = parts.clients.connections.get(&self.conn) {
                let over = |it: OverBudget| Fault::Overloaded { what: it.to_string() };
                parts.cx.retained_bytes.check(&client.kept, line.len()).map_err(over)?;
            }
            self.charge.resize(self.charge.bytes() + line.len());
            self.lines.push_back((event.seq, line));
            while LOG_PAGE_BYTES_MAX < self.charge.bytes() && 1 < self.lines.len() {
                let dropped = match self.range.kept_end {
                    KeptEnd::Newest => self.lines.pop_front(),
                    KeptEnd::Oldest => self.lines.pop_back(),
                };
                let bytes = dropped.map_or(0, |(_, line)| line.len());
                self.charge.resize(self.charge.bytes() - bytes);
                if self.range.kept_end == KeptEnd::Oldest {
                    self.range.upto = Seq(event.seq.0 - 1);
                }
            }
        }
        Ok(())
    }

    fn to_result(&self) -> String {
        let first = self.lines.front().map_or(self.range.upto.next(), |(seq, _)| *seq);
        let upto = self.lines.back().map_or(self.range.upto, |(seq, _)| *seq);
        let lines: Vec<&str> = self.lines.iter().map(|(_, line)| line.as_str()).collect();
        let result = json!({
            "lines": lines.join("\n"),
            "last": self.range.last.0,
            "hasBefore": 1 < first.0,
            "hasAfter": upto < self.range.last,
        });
        result.to_string()
    }
}

/// The event as it is in an exported file: `{"seq":…,"at":…,"is":…,…}`.
fn to_line(event: &SessionEvent) -> String {
    let mut line = Vec::new();
    event.encode(&mut line);
    let members = String::from_utf8_lossy(&line[1..]);
    format!(r#"{{"seq":{},{members}"#, event.seq.0)
}

#[cfg(test)]
mod tests;
