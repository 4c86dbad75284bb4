//! Decides about a destination, resolves its name and connects to an address that was checked.

use crate::host_questions::HostQuestions;
use crate::host_resolver::HostResolver;
use crate::host_rules::{AddressDecision, HostRules, RuleDecision};
use crate::limits::{ADDRESSES_MAX, NEXT_ADDRESS_AFTER};
use crate::proxy_report::{AllowReason, ProxyVerdict, RefusalReason, ReportSender};
use crate::request_failure::RequestFailure;
use crate::target_host::{HostPort, TargetHost};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The rules, the questions and the reports of one proxy.
pub(crate) struct HostAccess {
    pub(crate) rules: HostRules,
    pub(crate) questions: HostQuestions,
    pub(crate) reports: ReportSender,
    pub(crate) resolver: Arc<dyn HostResolver>,
}

/// The permission to connect to one destination.
#[derive(Debug)]
pub(crate) struct AccessGrant {
    target: HostPort,
    reason: AllowReason,
    /// Whether addresses of private networks are permitted.
    private: bool,
}

impl HostAccess {
    /// Decides by the rules, or by the answer of the user. Nothing is resolved before.
    pub(crate) async fn authorize(&self, target: &HostPort) -> Result<AccessGrant, RequestFailure> {
        let (reason, private) = match self.rules.decide(target) {
            RuleDecision::Allowed(rule) => {
                (Ok(AllowReason::Rule(rule.pattern.clone())), rule.private)
            }
            RuleDecision::Refused(pattern) => (Err(RefusalReason::Rule(pattern.clone())), false),
            RuleDecision::UnlistedAddress => (Err(RefusalReason::UnlistedAddress), false),
            RuleDecision::UnlistedName => (self.questions.ask_user(target).await, false),
        };
        match reason {
            Ok(reason) => Ok(AccessGrant { target: target.clone(), reason, private }),
            Err(reason) => Err(self.refuse(target, reason)),
        }
    }

    pub(crate) fn report_allowed(&self, grant: &AccessGrant) {
        let verdict = ProxyVerdict::Allowed(grant.reason.clone());
        self.reports.report_target(&grant.target, verdict);
    }

    /// Connects to one of the addresses that the rules permit.
    pub(crate) async fn connect(&self, grant: &AccessGrant) -> Result<TcpStream, RequestFailure> {
        let target = &grant.target;
        let unreachable = |error: io::Error| RequestFailure::Unreachable {
            target: target.clone(),
            error: error.to_string(),
        };
        let found = match &target.host {
            TargetHost::Address(address) => vec![*address],
            TargetHost::Name(name) => {
                self.resolver.resolve_name(name).await.map_err(unreachable)?
            }
        };
        let addresses = self
            .permitted_addresses(&found, target.port, grant.private)
            .map_err(|reason| self.refuse(target, reason))?;
        self.report_allowed(grant);
        connect_to_first(addresses).await.map_err(unreachable)
    }

    /// The addresses without those that the rules refuse. The first refusal is the error if none is left.
    fn permitted_addresses(
        &self,
        found: &[IpAddr],
        port: u16,
        private: bool,
    ) -> Result<Vec<SocketAddr>, RefusalReason> {
        let mut permitted = Vec::new();
        let mut first_refusal = None;
        for &address in found {
            let refusal = match self.rules.decide_address(address, port, private) {
                AddressDecision::Allowed => {
                    permitted.push(SocketAddr::new(address, port));
                    continue;
                }
                AddressDecision::Refused(pattern) => {
                    RefusalReason::AddressRule { address, pattern: pattern.clone() }
                }
                AddressDecision::NotPublic(class) => RefusalReason::NotPublic { address, class },
            };
            first_refusal.get_or_insert(refusal);
        }
        permitted.truncate(ADDRESSES_MAX);
        match first_refusal {
            Some(refusal) if permitted.is_empty() => Err(refusal),
            _ => Ok(permitted),
        }
    }

    fn refuse(&self, target: &HostPort, reason: RefusalReason) -> RequestFailure {
        self.reports.report_target(target, ProxyVerdict::Refused(reason.clone()));
        RequestFailure::Refused { target: target.clone(), reason }
    }
}

/// Tries the next address when one has failed or is slow; the first connection wins.
async fn connect_to_first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut untried = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        match untried.next() {
            Some(address) => {
                attempts.spawn(TcpStream::connect(address));
            }
            None if attempts.is_empty() => return Err(last_error),
            None => {}
        }
        let finished = tokio::select! {
            finished = attempts.join_next() => finished,
            () = tokio::time::sleep(NEXT_ADDRESS_AFTER), if untried.len() > 0 => continue,
        };
        match finished {
            Some(Ok(Ok(stream))) => {
                // Both sides write complete messages, so waiting for more data gains nothing.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Some(Ok(Err(error))) => last_error = error,
            Some(Err(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn next_address_is_tried_after_a_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = unused.local_addr().unwrap();
        drop(unused);
        let connected = connect_to_first(vec![closed, closed, open]);
        let stream = tokio::time::timeout(Duration::from_secs(10), connected).await.unwrap();
        assert_eq!(stream.unwrap().peer_addr().unwrap(), open);
        let error = connect_to_first(vec![closed]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = connect_to_first(Vec::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "the name has no address");
    }
}
