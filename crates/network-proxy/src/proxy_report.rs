//! What a proxy decided about each request, for the log and for explanations.

use crate::address_class::AddressClass;
use crate::host_pattern::HostPattern;
use crate::limits::REPORTED_HOST_CHARS_MAX;
use crate::target_host::{HostError, HostPort};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyReport {
    /// The canonical host; if it is invalid, the beginning of the text that the process sent.
    pub host: String,
    /// `None` if the host is invalid.
    pub port: Option<u16>,
    pub verdict: ProxyVerdict,
    /// How many reports were dropped before this one because the channel was full.
    pub dropped_before: u64,
}

/// Whether a destination was allowed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyVerdict {
    Allowed(AllowReason),
    Refused(RefusalReason),
}

/// Why a destination was allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowReason {
    Rule(HostPattern),
    /// The user allowed it for the connections that waited for the answer.
    AnswerOnce,
    /// The user allowed it for the session.
    AnswerSession,
    /// The user allowed it always.
    AnswerAlways,
}

/// Why a destination was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalReason {
    Rule(HostPattern),
    /// An address that no rule names.
    UnlistedAddress,
    /// The user refused it.
    UserRefused,
    /// The user refused it always.
    UserRefusedAlways,
    /// The user did not answer in time.
    Unanswered,
    /// The user could not be asked: the channel is closed or full, or too many questions wait.
    NotAsked,
    /// The name has only addresses that the rules refuse; this is the first of them.
    AddressRule {
        address: IpAddr,
        pattern: HostPattern,
    },
    /// The name has only addresses that are not public; this is the first of them.
    NotPublic {
        address: IpAddr,
        class: AddressClass,
    },
    /// The host is written in a form that different programs read differently.
    InvalidHost(HostError),
}

impl RefusalReason {
    /// What the process, or its user, can do about it.
    pub fn way_out(&self) -> &'static str {
        match self {
            RefusalReason::Rule(_) | RefusalReason::AddressRule { .. } => {
                "work without this host; only the user can change the list of refused hosts"
            }
            RefusalReason::UnlistedAddress => {
                "use the name of the host, or ask the user to add the address to the allowed hosts"
            }
            RefusalReason::UserRefused | RefusalReason::UserRefusedAlways => {
                "work without this host and do not try it again"
            }
            RefusalReason::Unanswered => {
                "continue with other work, or ask the user to add the host to the allowed hosts"
            }
            RefusalReason::NotAsked => {
                "work without this host, or ask the user to add it to the allowed hosts"
            }
            RefusalReason::NotPublic { .. } => {
                "work without this host, or ask the user to add its address to the allowed hosts"
            }
            RefusalReason::InvalidHost(_) => "write the host as a plain DNS name or IP address",
        }
    }
}

impl fmt::Display for AllowReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowReason::Rule(pattern) => write!(f, "the rule `{pattern}` allows it"),
            AllowReason::AnswerOnce => f.write_str("the user allowed it once"),
            AllowReason::AnswerSession => f.write_str("the user allowed it for the session"),
            AllowReason::AnswerAlways => f.write_str("the user allowed it always"),
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusalReason::Rule(pattern) => write!(f, "the rule `{pattern}` refuses it"),
            RefusalReason::UnlistedAddress => f.write_str("no rule names this address"),
            RefusalReason::UserRefused => f.write_str("the user refused it"),
            RefusalReason::UserRefusedAlways => f.write_str("the user refused it always"),
            RefusalReason::Unanswered => {
                f.write_str("no rule names it, and the user did not answer in time")
            }
            RefusalReason::NotAsked => {
                f.write_str("no rule names it, and the user cannot be asked now")
            }
            RefusalReason::AddressRule { address, pattern } => {
                write!(f, "it has the address {address}, which the rule `{pattern}` refuses")
            }
            RefusalReason::NotPublic { address, class } => {
                write!(f, "it has the {class} address {address}, which no rule permits")
            }
            RefusalReason::InvalidHost(error) => write!(f, "{error}"),
        }
    }
}

/// Sends reports without ever waiting.
pub(crate) struct ReportSender {
    sender: mpsc::Sender<ProxyReport>,
    dropped: AtomicU64,
}

impl ReportSender {
    pub(crate) fn new(sender: mpsc::Sender<ProxyReport>) -> ReportSender {
        ReportSender { sender, dropped: AtomicU64::new(0) }
    }

    pub(crate) fn report_target(&self, target: &HostPort, verdict: ProxyVerdict) {
        self.send_report(target.host.to_string(), Some(target.port), verdict);
    }

    pub(crate) fn report_invalid_host(&self, text: &str, error: HostError) {
        let host = text.chars().take(REPORTED_HOST_CHARS_MAX).collect();
        self.send_report(host, None, ProxyVerdict::Refused(RefusalReason::InvalidHost(error)));
    }

    fn send_report(&self, host: String, port: Option<u16>, verdict: ProxyVerdict) {
        match self.sender.try_reserve() {
            Ok(place) => {
                let dropped_before = self.dropped.swap(0, Ordering::Relaxed);
                place.send(ProxyReport { host, port, verdict, dropped_before });
            }
            Err(_) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_channel_drops_reports_and_the_next_one_counts_them() {
        let (sender, mut receiver) = mpsc::channel(1);
        let reports = ReportSender::new(sender);
        let target = HostPort::parse("a.example:443", None).unwrap();
        let verdict = || ProxyVerdict::Refused(RefusalReason::NotAsked);
        for _ in 0..4 {
            reports.report_target(&target, verdict());
        }
        assert_eq!(receiver.try_recv().unwrap().dropped_before, 0);
        reports.report_target(&target, verdict());
        let expected = ProxyReport {
            host: "a.example".to_owned(),
            port: Some(443),
            verdict: verdict(),
            dropped_before: 3,
        };
        assert_eq!(receiver.try_recv(), Ok(expected));
    }
}
