//! The quotas of a tenant: sessions that have an agent, and agent processes. What exceeds a quota is refused with the
//! number and the way out; nothing is ended.

use jackfield_protocol::{Fault, is_planted};

pub(super) fn check_limit(tenant: &str, now: usize, max: usize, what: &str) -> Result<(), Fault> {
    if now < max + usize::from(is_planted("exceed-quota-by-one")) {
        return Ok(());
    }
    Err(quota_fault(tenant, now, max, what))
}

pub fn quota_fault(tenant: &str, now: usize, max: usize, what: &str) -> Fault {
    let why = format!(
        "tenant `{tenant}` has {now} {what}, and may have {max}: close a session, or wait until one sleeps"
    );
    Fault::Quota { why }
}
