//! Room for so many connections, and who leaves first when it is full.
//!
//! A connection that has not shown the token makes way for the next one, the oldest first: whoever
//! only sits there, were it ten thousand times, keeps nobody out.

use super::limits::{Capacity, STRANGER_WITHIN};
use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Room {
    capacity: Capacity,
    inside: Mutex<Inside>,
    /// Somebody has left.
    news: Notify,
}

#[derive(Debug, Default)]
struct Inside {
    /// By the order in which they came.
    strangers: BTreeMap<u64, (IpAddr, Arc<Told>)>,
    strangers_of: HashMap<IpAddr, usize>,
    known: usize,
    came: u64,
}

/// What one connection is told.
#[derive(Debug, Default)]
struct Told {
    known: AtomicBool,
    evicted: AtomicBool,
    /// To the one who tends the connection.
    leave: Notify,
    dismissed: Notify,
}

/// A connection's right to be here; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Seat(Pass);

/// What requests of a connection can say about it.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    room: Arc<Room>,
    number: u64,
    told: Arc<Told>,
}

impl Room {
    pub(super) fn new(capacity: Capacity) -> Arc<Room> {
        Arc::new(Room { capacity, inside: Mutex::default(), news: Notify::new() })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stranger comes in; an older one may have to leave.
    pub(super) fn enter(self: &Arc<Room>, peer: IpAddr) -> Seat {
        let peer = neighbourhood(peer);
        let mut inside = self.inside();
        if self.capacity.strangers_of_one <= inside.strangers_of.get(&peer).copied().unwrap_or(0) {
            let oldest = inside.strangers.iter().find(|(_, (it, _))| *it == peer);
            let oldest = oldest.map(|(number, _)| *number);
            inside.evict(oldest);
        } else if self.capacity.strangers <= inside.strangers.len() {
            let oldest = inside.strangers.keys().next().copied();
            inside.evict(oldest);
        }
        inside.came += 1;
        let (number, told) = (inside.came, Arc::new(Told::default()));
        inside.strangers.insert(number, (peer, Arc::clone(&told)));
        *inside.strangers_of.entry(peer).or_default() += 1;
        Seat(Pass { room: Arc::clone(self), number, told })
    }

    pub(super) fn is_empty(&self) -> bool {
        let inside = self.inside();
        inside.strangers.is_empty() && inside.known == 0
    }

    /// Waits until everybody has left.
    pub(super) async fn emptied(&self) {
        loop {
            let news = self.news.notified();
            if self.is_empty() {
                return;
            }
            news.await;
        }
    }
}

impl Inside {
    fn evict(&mut self, number: Option<u64>) {
        if let Some(told) = number.and_then(|it| self.remove(it)) {
            told.evicted.store(true, Ordering::Relaxed);
            told.leave.notify_one();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Told>> {
        let (peer, told) = self.strangers.remove(&number)?;
        if let Some(count) = self.strangers_of.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.strangers_of.remove(&peer);
            }
        }
        Some(told)
    }
}

impl Seat {
    pub(super) fn pass(&self) -> Pass {
        self.0.clone()
    }

    pub(super) fn is_evicted(&self) -> bool {
        self.0.told.evicted.load(Ordering::Relaxed)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Pass { room, number, .. } = &self.0;
        let mut inside = room.inside();
        if self.0.is_known() {
            inside.known -= 1;
        } else {
            inside.remove(*number);
        }
        drop(inside);
        room.news.notify_waiters();
    }
}

impl Pass {
    /// The token was shown. `false` if there are too many already who have.
    pub(super) fn recognize(&self) -> bool {
        let mut inside = self.room.inside();
        if self.is_known() {
            return true;
        }
        // One that was evicted a moment ago is not in there any more, and ends anyway.
        if self.room.capacity.known <= inside.known || inside.remove(self.number).is_none() {
            return false;
        }
        inside.known += 1;
        self.told.known.store(true, Ordering::Relaxed);
        true
    }

    pub(super) fn is_known(&self) -> bool {
        self.told.known.load(Ordering::Relaxed)
    }

    /// The connection is to end, unless it has shown the token.
    pub(super) fn dismiss(&self) {
        self.told.dismissed.notify_one();
    }

    /// Waits until it has to make way at once. For one task at a time.
    pub(super) async fn evicted(&self) {
        self.told.leave.notified().await;
    }

    /// Waits until a stranger was dismissed, or was here for too long without showing the token.
    pub(super) async fn unwelcome(&self) {
        tokio::select! {
            () = self.told.dismissed.notified() => {}
            () = tokio::time::sleep(STRANGER_WITHIN) => {}
        }
        self.still_unknown_after(Duration::ZERO).await;
    }

    /// Waits for so long, and for ever if the token was shown until then.
    pub(super) async fn still_unknown_after(&self, time: Duration) {
        tokio::time::sleep(time).await;
        if self.is_known() {
            pending::<()>().await;
        }
    }
}

/// Whoever has one address of version 6 has all that share its first half.
fn neighbourhood(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() >> 64 << 64).into(),
        it @ IpAddr::V4(_) => it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(known: usize, strangers: usize, strangers_of_one: usize) -> Arc<Room> {
        Room::new(Capacity { known, strangers, strangers_of_one })
    }

    fn at(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn the_oldest_stranger_makes_way() {
        let room = room(9, 2, 2);
        let [first, second] = [room.enter(at(1)), room.enter(at(2))];
        let third = room.enter(at(3));
        assert!(first.is_evicted() && !second.is_evicted());
        drop(first);
        let fourth = room.enter(at(4));
        assert!(second.is_evicted() && !third.is_evicted() && !fourth.is_evicted());
        drop((second, third, fourth));
        assert!(room.is_empty() && room.inside().strangers_of.is_empty());
    }

    #[test]
    fn one_address_evicts_its_own_before_others() {
        let room = room(9, 3, 2);
        let other = room.enter(at(9));
        let ours: Vec<Seat> = (0..4).map(|_| room.enter(at(1))).collect();
        assert!(!other.is_evicted());
        let evicted: Vec<bool> = ours.iter().map(Seat::is_evicted).collect();
        assert_eq!(evicted, [true, true, false, false]);
    }

    #[test]
    fn who_has_shown_the_token_stays() {
        let room = room(1, 2, 2);
        let known = room.enter(at(1));
        assert!(known.pass().recognize() && known.pass().recognize());
        let strangers: Vec<Seat> = (0..9).map(|_| room.enter(at(1))).collect();
        assert!(!known.is_evicted());
        assert!(!strangers[8].pass().recognize(), "there is no more room for those who have");
        assert!(!strangers[0].pass().recognize(), "it has to leave");
        drop(known);
        assert!(strangers[8].pass().recognize());
        drop(strangers);
        assert!(room.is_empty());
    }

    #[test]
    fn addresses_of_one_network_are_one_peer() {
        let of = |it: &str| neighbourhood(it.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_is_unwelcome_when_dismissed_or_late_but_who_is_known_never_is() {
        let room = room(9, 9, 9);
        let [late, dismissed, known] = [1, 2, 3].map(|it| room.enter(at(it)));
        dismissed.pass().dismiss();
        dismissed.pass().unwelcome().await;
        assert!(known.pass().recognize());
        known.pass().dismiss();
        let begun = tokio::time::Instant::now();
        late.pass().unwelcome().await;
        assert_eq!(begun.elapsed().as_secs(), STRANGER_WITHIN.as_secs());
        let pass = known.pass();
        let for_long = tokio::time::timeout(Duration::from_hours(1), pass.unwelcome());
        assert!(for_long.await.is_err());
    }

    #[tokio::test]
    async fn the_room_is_empty_when_the_last_has_left() {
        let room = room(9, 9, 9);
        let seat = room.enter(at(1));
        let emptied = room.emptied();
        tokio::pin!(emptied);
        assert!(tokio::time::timeout(Duration::ZERO, &mut emptied).await.is_err());
        drop(seat);
        emptied.await;
    }
}
