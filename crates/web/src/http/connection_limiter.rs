//! Limits concurrent connections to the web front.
//!
//! A connection counts as *unauthenticated* until one of its requests has presented a valid token.
//! When a limit is reached, the oldest unauthenticated connection is closed to make room, so
//! clients that only connect and wait cannot exhaust the listener.

use super::limits::{AUTHENTICATION_TIMEOUT, ConnectionLimits};
use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    limits: ConnectionLimits,
    connections: Mutex<OpenConnections>,
    /// Notified whenever a connection closes.
    connection_closed: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Unauthenticated connections by arrival number, oldest first.
    unauthenticated: BTreeMap<u64, (IpAddr, Arc<ConnectionState>)>,
    unauthenticated_by_peer: HashMap<IpAddr, usize>,
    authenticated_count: usize,
    last_arrival: u64,
}

/// Shared between the connection's task and the requests that it serves.
#[derive(Debug, Default)]
struct ConnectionState {
    is_authenticated: AtomicBool,
    is_evicted: AtomicBool,
    evict: Notify,
    close_if_unauthenticated: Notify,
}

/// Counts against the limits until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot(ConnectionHandle);

/// Lets the requests of a connection report on it.
#[derive(Debug, Clone)]
pub(super) struct ConnectionHandle {
    limiter: Arc<ConnectionLimiter>,
    arrival: u64,
    state: Arc<ConnectionState>,
}

impl ConnectionLimiter {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<ConnectionLimiter> {
        let (connections, connection_closed) = (Mutex::default(), Notify::new());
        Arc::new(ConnectionLimiter { limits, connections, connection_closed })
    }

    fn connections(&self) -> MutexGuard<'_, OpenConnections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new, unauthenticated connection. Evicts the oldest unauthenticated connection of
    /// the same peer if the peer is at its limit, otherwise the oldest of all if the total is
    /// reached.
    pub(super) fn register(self: &Arc<ConnectionLimiter>, peer: IpAddr) -> ConnectionSlot {
        let peer = peer_key(peer);
        let mut connections = self.connections();
        if self.limits.unauthenticated_per_peer <= connections.unauthenticated_count_of(peer) {
            connections.evict_oldest_of(peer);
        } else if self.limits.unauthenticated <= connections.unauthenticated.len() {
            connections.evict_oldest();
        }
        let (arrival, state) = connections.add_unauthenticated(peer);
        ConnectionSlot(ConnectionHandle { limiter: Arc::clone(self), arrival, state })
    }

    pub(super) fn is_empty(&self) -> bool {
        let connections = self.connections();
        connections.unauthenticated.is_empty() && connections.authenticated_count == 0
    }

    /// Completes once no connection is open.
    pub(super) async fn wait_until_empty(&self) {
        loop {
            let connection_closed = self.connection_closed.notified();
            if self.is_empty() {
                return;
            }
            connection_closed.await;
        }
    }
}

impl OpenConnections {
    fn unauthenticated_count_of(&self, peer: IpAddr) -> usize {
        self.unauthenticated_by_peer.get(&peer).copied().unwrap_or(0)
    }

    fn add_unauthenticated(&mut self, peer: IpAddr) -> (u64, Arc<ConnectionState>) {
        self.last_arrival += 1;
        let state = Arc::new(ConnectionState::default());
        self.unauthenticated.insert(self.last_arrival, (peer, Arc::clone(&state)));
        *self.unauthenticated_by_peer.entry(peer).or_default() += 1;
        (self.last_arrival, state)
    }

    fn evict_oldest_of(&mut self, peer: IpAddr) {
        let oldest = self.unauthenticated.iter().find(|(_, (it, _))| *it == peer);
        let oldest = oldest.map(|(arrival, _)| *arrival);
        self.evict(oldest);
    }

    fn evict_oldest(&mut self) {
        let oldest = self.unauthenticated.keys().next().copied();
        self.evict(oldest);
    }

    fn evict(&mut self, arrival: Option<u64>) {
        if let Some(state) = arrival.and_then(|it| self.remove_unauthenticated(it)) {
            state.is_evicted.store(true, Ordering::Relaxed);
            state.evict.notify_one();
        }
    }

    fn remove_unauthenticated(&mut self, arrival: u64) -> Option<Arc<ConnectionState>> {
        let (peer, state) = self.unauthenticated.remove(&arrival)?;
        if let Some(count) = self.unauthenticated_by_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.unauthenticated_by_peer.remove(&peer);
            }
        }
        Some(state)
    }
}

impl ConnectionSlot {
    pub(super) fn handle(&self) -> ConnectionHandle {
        self.0.clone()
    }

    pub(super) fn is_evicted(&self) -> bool {
        self.0.state.is_evicted.load(Ordering::Relaxed)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let ConnectionHandle { limiter, arrival, .. } = &self.0;
        let mut connections = limiter.connections();
        if self.0.is_authenticated() {
            connections.authenticated_count -= 1;
        } else {
            connections.remove_unauthenticated(*arrival);
        }
        drop(connections);
        limiter.connection_closed.notify_waiters();
    }
}

impl ConnectionHandle {
    /// Marks the connection as authenticated. Returns `false` if the limit of authenticated
    /// connections is reached, or if this connection was evicted in the meantime.
    pub(super) fn mark_authenticated(&self) -> bool {
        let mut connections = self.limiter.connections();
        if self.is_authenticated() {
            return true;
        }
        // An evicted connection is no longer registered.
        if self.limiter.limits.authenticated <= connections.authenticated_count
            || connections.remove_unauthenticated(self.arrival).is_none()
        {
            return false;
        }
        connections.authenticated_count += 1;
        self.state.is_authenticated.store(true, Ordering::Relaxed);
        true
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.state.is_authenticated.load(Ordering::Relaxed)
    }

    /// Asks the connection to close, unless it is authenticated.
    pub(super) fn close_if_unauthenticated(&self) {
        self.state.close_if_unauthenticated.notify_one();
    }

    /// Completes when the connection must close at once to make room. For one task at a time.
    pub(super) async fn evicted(&self) {
        self.state.evict.notified().await;
    }

    /// Completes when the connection is asked to close, or has not authenticated within
    /// [`AUTHENTICATION_TIMEOUT`]. Never completes for an authenticated connection.
    pub(super) async fn authentication_expired(&self) {
        tokio::select! {
            () = self.state.close_if_unauthenticated.notified() => {}
            () = tokio::time::sleep(AUTHENTICATION_TIMEOUT) => {}
        }
        self.unauthenticated_after(Duration::ZERO).await;
    }

    /// Completes after this time, and never if the connection is authenticated by then.
    pub(super) async fn unauthenticated_after(&self, time: Duration) {
        tokio::time::sleep(time).await;
        if self.is_authenticated() {
            pending::<()>().await;
        }
    }
}

/// Groups IPv6 peers by /64, because one subscriber usually controls a whole /64.
fn peer_key(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(
        authenticated: usize,
        unauthenticated: usize,
        unauthenticated_per_peer: usize,
    ) -> Arc<ConnectionLimiter> {
        let limits = ConnectionLimits { authenticated, unauthenticated, unauthenticated_per_peer };
        ConnectionLimiter::new(limits)
    }

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn oldest_unauthenticated_connection_is_evicted() {
        let limiter = limiter(9, 2, 2);
        let [first, second] = [limiter.register(peer(1)), limiter.register(peer(2))];
        let third = limiter.register(peer(3));
        assert!(first.is_evicted() && !second.is_evicted());
        drop(first);
        let fourth = limiter.register(peer(4));
        assert!(second.is_evicted() && !third.is_evicted() && !fourth.is_evicted());
        drop((second, third, fourth));
        assert!(limiter.is_empty() && limiter.connections().unauthenticated_by_peer.is_empty());
    }

    #[test]
    fn connection_of_the_same_peer_is_evicted_before_others() {
        let limiter = limiter(9, 3, 2);
        let other = limiter.register(peer(9));
        let same: Vec<ConnectionSlot> = (0..4).map(|_| limiter.register(peer(1))).collect();
        assert!(!other.is_evicted());
        let evicted: Vec<bool> = same.iter().map(ConnectionSlot::is_evicted).collect();
        assert_eq!(evicted, [true, true, false, false]);
    }

    #[test]
    fn authenticated_connection_is_never_evicted() {
        let limiter = limiter(1, 2, 2);
        let authenticated = limiter.register(peer(1));
        let handle = authenticated.handle();
        assert!(handle.mark_authenticated() && handle.mark_authenticated());
        let others: Vec<ConnectionSlot> = (0..9).map(|_| limiter.register(peer(1))).collect();
        assert!(!authenticated.is_evicted());
        assert!(!others[8].handle().mark_authenticated(), "the limit is reached");
        assert!(!others[0].handle().mark_authenticated(), "it was evicted");
        drop(authenticated);
        assert!(others[8].handle().mark_authenticated());
        drop(others);
        assert!(limiter.is_empty());
    }

    #[test]
    fn ipv6_addresses_of_one_network_are_one_peer() {
        let key = |it: &str| peer_key(it.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::2:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:10.0.0.1"), key("10.0.0.1"));
    }

    #[tokio::test(start_paused = true)]
    async fn authentication_expires_on_request_or_timeout_but_never_afterwards() {
        let limiter = limiter(9, 9, 9);
        let [late, asked, authenticated] = [1, 2, 3].map(|it| limiter.register(peer(it)));
        asked.handle().close_if_unauthenticated();
        asked.handle().authentication_expired().await;
        assert!(authenticated.handle().mark_authenticated());
        authenticated.handle().close_if_unauthenticated();
        let begun = tokio::time::Instant::now();
        late.handle().authentication_expired().await;
        assert_eq!(begun.elapsed().as_secs(), AUTHENTICATION_TIMEOUT.as_secs());
        let handle = authenticated.handle();
        let expired =
            tokio::time::timeout(Duration::from_hours(1), handle.authentication_expired());
        assert!(expired.await.is_err());
    }

    #[tokio::test]
    async fn limiter_is_empty_after_the_last_connection_has_closed() {
        let limiter = limiter(9, 9, 9);
        let slot = limiter.register(peer(1));
        let empty = limiter.wait_until_empty();
        tokio::pin!(empty);
        assert!(tokio::time::timeout(Duration::ZERO, &mut empty).await.is_err());
        drop(slot);
        empty.await;
    }
}
