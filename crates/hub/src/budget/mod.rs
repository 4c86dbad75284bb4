//! Byte budgets: how many bytes of messages are kept in memory, by one owner and by all owners together.
//!
//! Whatever keeps a message keeps the [`ByteCharge`] for it beside the message. A charge that is dropped is given back,
//! so that no path that removes a message can forget to.

#[cfg(test)]
mod hub_tests;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// How many bytes may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLimits {
    /// By one owner: a session, an agent process, a client, a worker.
    pub own_max: usize,
    /// By one owner even when `all_max` is reached: large messages of some leave room for the small ones of others.
    pub own_min: usize,
    /// By all owners together.
    pub all_max: usize,
}

/// What all owners together keep.
#[derive(Debug)]
pub struct ByteBudget {
    limits: ByteLimits,
    used_bytes: Arc<AtomicUsize>,
}

/// What one owner keeps.
#[derive(Debug, Default)]
pub struct ByteOwner {
    used_bytes: Arc<AtomicUsize>,
}

/// Bytes that are kept, until it is dropped.
#[derive(Debug)]
pub struct ByteCharge {
    bytes: usize,
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

/// Why some bytes cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBudget {
    bytes: usize,
    used_bytes: usize,
    max: usize,
    of_all: bool,
}

impl ByteBudget {
    pub fn new(limits: ByteLimits) -> ByteBudget {
        ByteBudget { limits, used_bytes: Arc::default() }
    }

    /// Whether an owner may keep so many bytes more.
    pub fn check(&self, owner: &ByteOwner, bytes: usize) -> Result<(), OverBudget> {
        let ByteLimits { own_max, own_min, all_max } = self.limits;
        let (own, all) = (owner.used_bytes.load(Relaxed), self.used_bytes());
        if own_max < own + bytes {
            return Err(OverBudget { bytes, used_bytes: own, max: own_max, of_all: false });
        }
        if all_max < all + bytes && own_min < own + bytes {
            return Err(OverBudget { bytes, used_bytes: all, max: all_max, of_all: true });
        }
        Ok(())
    }

    /// Keeps so many bytes for an owner, if it may.
    pub fn charge(&self, owner: &ByteOwner, bytes: usize) -> Result<ByteCharge, OverBudget> {
        self.check(owner, bytes)?;
        Ok(self.charge_unchecked(owner, bytes))
    }

    /// Counts bytes that are kept in any case.
    pub fn charge_unchecked(&self, owner: &ByteOwner, bytes: usize) -> ByteCharge {
        let (own, all) = (Arc::clone(&owner.used_bytes), Arc::clone(&self.used_bytes));
        let mut charge = ByteCharge { bytes: 0, own, all };
        charge.resize(bytes);
        charge
    }

    /// Whether all owners together keep more than they may, and this one more than it may in any case.
    pub fn is_exceeded_by(&self, bytes: usize) -> bool {
        self.limits.all_max < self.used_bytes() && self.limits.own_min < bytes
    }

    pub fn all_max(&self) -> usize {
        self.limits.all_max
    }

    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Relaxed)
    }
}

/// Makes the charge of an optional holding fit its bytes; without bytes there is no charge.
pub fn update_charge(
    charge: &mut Option<ByteCharge>,
    budget: &ByteBudget,
    owner: &ByteOwner,
    bytes: usize,
) {
    match charge {
        _ if bytes == 0 => *charge = None,
        Some(charge) => charge.resize(bytes),
        None => *charge = Some(budget.charge_unchecked(owner, bytes)),
    }
}

impl ByteCharge {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes are more or fewer than before.
    pub fn resize(&mut self, bytes: usize) {
        for counter in [&self.own, &self.all] {
            let others = counter.load(Relaxed) - self.bytes;
            counter.store(others + bytes, Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for ByteCharge {
    fn drop(&mut self) {
        self.resize(0);
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverBudget { bytes, used_bytes, max, of_all } = self;
        let whose = if *of_all { "all sessions together" } else { "this session or connection" };
        write!(
            f,
            "a message of {bytes} bytes cannot be kept: {used_bytes} bytes of {whose} wait already, and at most {max} may; \
             send less at once, or try again when some of it has been answered"
        )
    }
}
