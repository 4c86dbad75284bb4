//! Which session has a key: for each tenant, the keys of requests that may be repeated without naming a session.
//!
//! The keys themselves are in the logs of the sessions. An entry here only says where to look, so an entry of a deleted
//! session does no harm.

use crate::{SessionId, Time, limits};
use jackfield_events::{TenantName, is_key_expired};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

#[derive(Debug, Default)]
pub(crate) struct KeyIndex {
    /// By tenant; sessions of the operator have none.
    tenants: BTreeMap<Option<TenantName>, TenantKeys>,
}

#[derive(Debug, Default)]
struct TenantKeys {
    sessions: BTreeMap<Arc<str>, SessionId>,
    /// In the order of their first use, with its time.
    order: VecDeque<(Time, Arc<str>)>,
}

impl KeyIndex {
    pub(crate) fn insert(
        &mut self,
        tenant: Option<&str>,
        key: &Arc<str>,
        session: &SessionId,
        at: Time,
    ) {
        let keys = self.tenants.entry(tenant.map(Into::into)).or_default();
        if keys.sessions.insert(key.clone(), session.clone()).is_none() {
            keys.order.push_back((at, key.clone()));
        }
        while let Some((used_at, oldest)) = keys.order.front()
            && (limits::KEYS_PER_TENANT_MAX < keys.order.len() || is_key_expired(*used_at, at))
        {
            keys.sessions.remove(oldest);
            keys.order.pop_front();
        }
    }

    /// The session that has the key.
    pub(crate) fn find(&self, tenant: Option<&str>, key: &str) -> Option<&SessionId> {
        self.tenants.get(&tenant.map(Into::into))?.sessions.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_have_keys_of_their_own() {
        let mut index = KeyIndex::default();
        index.insert(Some("acme"), &"k".into(), &"acme.s-1".into(), Time(1));
        index.insert(None, &"k".into(), &"s-1".into(), Time(1));
        assert_eq!(index.find(Some("acme"), "k"), Some(&"acme.s-1".into()));
        assert_eq!(index.find(None, "k"), Some(&"s-1".into()));
        assert_eq!(index.find(Some("other"), "k"), None);
    }

    #[test]
    fn the_oldest_key_of_a_tenant_makes_room_and_an_expired_one_goes() {
        let mut index = KeyIndex::default();
        let session: SessionId = "s-1".into();
        index.insert(Some("other"), &"0".into(), &session, Time(0));
        for number in 0..=limits::KEYS_PER_TENANT_MAX as u64 {
            index.insert(None, &number.to_string().into(), &session, Time(number));
        }
        assert!(index.find(None, "0").is_none() && index.find(None, "1").is_some());
        assert!(index.find(Some("other"), "0").is_some(), "it is another tenant's");
        index.insert(
            None,
            &"last".into(),
            &session,
            Time(jackfield_events::limits::KEY_LIFETIME_MS + 3),
        );
        assert!(index.find(None, "2").is_none() && index.find(None, "3").is_some());
    }
}
