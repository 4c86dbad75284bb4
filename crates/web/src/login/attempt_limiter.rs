//! Limits how many wrong codes a peer may send.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// Wrong codes of one peer within [`WINDOW_MS`]. A person mistypes nothing: codes are in links.
const FAILURES_MAX: u32 = 10;
const WINDOW_MS: u64 = 60_000;
/// Peers that are remembered; beyond this the one with the oldest window is forgotten.
const PEERS_MAX: usize = 1024;

/// Counts wrong codes by peer.
#[derive(Debug, Default)]
pub(super) struct AttemptLimiter {
    failures: Mutex<BTreeMap<IpAddr, FailureWindow>>,
}

#[derive(Debug, Clone, Copy)]
struct FailureWindow {
    started_at: u64,
    count: u32,
}

impl AttemptLimiter {
    /// Whether a peer may try a code now.
    pub(super) fn is_allowed(&self, peer: IpAddr, now: u64) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let window = failures.get(&peer_network(peer)).filter(|it| it.is_open(now));
        window.is_none_or(|it| it.count < FAILURES_MAX)
    }

    pub(super) fn add_failure(&self, peer: IpAddr, now: u64) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = peer_network(peer);
        if PEERS_MAX <= failures.len() && !failures.contains_key(&peer) {
            let oldest = failures.iter().min_by_key(|(_, it)| it.started_at).map(|(it, _)| *it);
            oldest.and_then(|it| failures.remove(&it));
        }
        let new_window = FailureWindow { started_at: now, count: 0 };
        let window = failures.entry(peer).or_insert(new_window);
        if !window.is_open(now) {
            *window = new_window;
        }
        window.count += 1;
    }
}

impl FailureWindow {
    fn is_open(self, now: u64) -> bool {
        now < self.started_at + WINDOW_MS
    }
}

/// IPv6 peers are counted by /64, because one subscriber usually controls a whole /64.
fn peer_network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_with_too_many_wrong_codes_waits_and_others_do_not() {
        let limiter = AttemptLimiter::default();
        let peer = |it: &str| it.parse::<IpAddr>().unwrap();
        for _ in 0..FAILURES_MAX {
            assert!(limiter.is_allowed(peer("2001:db8::1"), 5));
            limiter.add_failure(peer("2001:db8::1"), 5);
        }
        assert!(!limiter.is_allowed(peer("2001:db8::2"), WINDOW_MS + 4));
        assert!(limiter.is_allowed(peer("2001:db8:0:1::1"), 5));
        assert!(limiter.is_allowed(peer("2001:db8::1"), WINDOW_MS + 5));
        for last in 0..2000_u32 {
            limiter.add_failure(IpAddr::V4(last.into()), 9);
        }
        assert_eq!(limiter.failures.lock().unwrap().len(), PEERS_MAX);
    }
}
