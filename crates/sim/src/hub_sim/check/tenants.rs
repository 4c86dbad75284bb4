//! Tenants: whoever is bound to one hears and touches its sessions only, and has no more than it may.

use super::{Answer, hold};
use crate::hub_sim::{World, peek};
use bytes::Bytes;
use jackfield_hub::{ConnId, Input, Output, SessionId, tenant_of};
use std::collections::BTreeSet;

/// A frame by which a client tries to touch what is another tenant's.
#[derive(Debug)]
pub(in crate::hub_sim) struct Try {
    conn: ConnId,
    session: SessionId,
    method: String,
}

impl World {
    pub(in crate::hub_sim) fn tried_by(&self, input: &Input) -> Option<Try> {
        let Input::ClientSpoke { conn, frame } = input else { return None };
        let session: SessionId = frame.session_id()?.into();
        let method = frame.method()?.into_owned();
        self.is_strange(*conn, &session).then_some(Try { conn: *conn, session, method })
    }
}

impl Try {
    /// What comes of it is an answer, and nothing else.
    pub(in crate::hub_sim) fn touches_nothing(&self, came: &Output) {
        let touched = match came {
            Output::Append { session, .. }
            | Output::Summarize { session, .. }
            | Output::Read { session, .. }
            | Output::Recall { session, .. }
            | Output::Delete { session } => *session == self.session,
            Output::Copy { from, .. } => *from == self.session,
            Output::ToAgent { text, .. } => peek::contains(text, &format!("\"{}\"", self.method)),
            _ => false,
        };
        hold("nobody_touches_what_is_foreign", !touched, || {
            let Try { conn, session, method } = self;
            format!("`{method}` of {conn} in {session} made {came:?}")
        });
    }
}

impl World {
    /// Who asks about a session of somebody else hears that there is none.
    pub(in crate::hub_sim) fn a_stranger_hears_that_there_is_none(&mut self, answer: &Answer<'_>) {
        self.tally.count("strangers turned away");
        let none = peek::contains(answer.text, "\"code\":\"session_not_found\"")
            || peek::contains(answer.text, "\"code\":\"overloaded\"");
        hold("a_stranger_hears_that_there_is_none", none, || {
            format!("{} heard {:?}", answer.conn, answer.text)
        });
    }

    /// Nothing that a bound client is told names a session of anybody else.
    pub(in crate::hub_sim) fn nobody_hears_of_another_tenant(&self, conn: ConnId, text: &Bytes) {
        let theirs = |it: &&SessionId| self.is_strange(conn, it);
        let heard = self
            .disk
            .streams
            .keys()
            .filter(theirs)
            .find(|it| peek::contains(text, &format!("\"{it}\"")));
        hold("nobody_hears_of_another_tenant", heard.is_none(), || {
            format!("{conn} heard of {heard:?} in {text:?}")
        });
    }

    /// Quotas hold at every moment, and no process is shared.
    pub(in crate::hub_sim) fn no_tenant_has_more_than_it_may(&mut self) {
        let usage = self.hub.usage();
        for tenant in self.tenants.iter() {
            let has = usage.get(&tenant.name).copied().unwrap_or_default();
            let fits = |has: usize, max: Option<usize>| max.is_none_or(|max| has <= max);
            let holds = fits(has.sessions, tenant.sessions) && fits(has.agents, tenant.agents);
            hold("no_tenant_has_more_than_it_may", holds, || format!("{tenant:?} has {has:?}"));
        }
        for process in self.hub.gauges().processes {
            let tenants: BTreeSet<_> = process.sessions.iter().map(|it| tenant_of(it)).collect();
            hold("a_process_serves_one_tenant", tenants.len() <= 1, || format!("{process:?}"));
        }
    }
}
