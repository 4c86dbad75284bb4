//! Which hosts a sandboxed process may reach without a question.

use crate::address_class::AddressClass;
use crate::host_pattern::HostPattern;
use crate::target_host::{HostPort, TargetHost};
use std::net::IpAddr;

/// The ports of a pattern without a port in the list of allowed hosts.
const DEFAULT_PORTS: [u16; 2] = [443, 80];

/// The lists of allowed and refused hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules {
    /// A pattern without a port stands for ports 443 and 80.
    pub allowed: Vec<HostRule>,
    /// These win over `allowed`. A pattern without a port stands for all ports.
    pub refused: Vec<HostPattern>,
}

/// An entry of the list of allowed hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    pub pattern: HostPattern,
    /// Whether the name may have addresses of this machine or of a private network.
    pub private: bool,
}

/// What the rules say about a destination, before its name is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleDecision<'a> {
    Allowed(&'a HostRule),
    Refused(&'a HostPattern),
    /// No rule names the host: the user may be asked.
    UnlistedName,
    /// No rule names the address. Addresses are never asked about: what is behind one is unknown.
    UnlistedAddress,
}

/// What the rules say about an address that a name was resolved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressDecision<'a> {
    Allowed,
    Refused(&'a HostPattern),
    NotPublic(AddressClass),
}

impl HostRules {
    pub fn decide(&self, target: &HostPort) -> RuleDecision<'_> {
        let HostPort { host, port } = target;
        if let Some(pattern) = self.refused_pattern(host, *port) {
            return RuleDecision::Refused(pattern);
        }
        let mut matching = self.allowed.iter().filter(|it| is_allowed_by(it, host, *port));
        let first = matching.clone().next();
        match matching.find(|it| it.private).or(first) {
            Some(rule) => RuleDecision::Allowed(rule),
            None if matches!(host, TargetHost::Name(_)) => RuleDecision::UnlistedName,
            None => RuleDecision::UnlistedAddress,
        }
    }

    /// Decides about one address of an allowed host.
    pub(crate) fn decide_address(
        &self,
        address: IpAddr,
        port: u16,
        private: bool,
    ) -> AddressDecision<'_> {
        let address = address.to_canonical();
        if let Some(pattern) = self.refused_pattern(&TargetHost::Address(address), port) {
            return AddressDecision::Refused(pattern);
        }
        let class = AddressClass::of(address);
        let is_named =
            || self.allowed.iter().any(|it| it.pattern.is_address(address) && has_port(it, port));
        if class == AddressClass::Public || (private && class.is_private_network()) || is_named() {
            AddressDecision::Allowed
        } else {
            AddressDecision::NotPublic(class)
        }
    }

    fn refused_pattern(&self, host: &TargetHost, port: u16) -> Option<&HostPattern> {
        self.refused
            .iter()
            .find(|it| it.contains_host(host) && it.port().is_none_or(|it| it == port))
    }
}

fn is_allowed_by(rule: &HostRule, host: &TargetHost, port: u16) -> bool {
    rule.pattern.contains_host(host) && has_port(rule, port)
}

fn has_port(rule: &HostRule, port: u16) -> bool {
    rule.pattern.port().map_or(DEFAULT_PORTS.contains(&port), |it| it == port)
}

#[cfg(test)]
mod tests;
