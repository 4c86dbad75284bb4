//! Tenants: a bound client receives and changes sessions of its tenant only, and quotas hold.

use super::{ReceivedResponse, check_invariant};
use crate::hub_sim::{HubWorld, markers};
use bytes::Bytes;
use jackfield_hub::{ConnId, Input, Output, SessionId, tenant_of};
use std::collections::BTreeSet;

/// A frame in which a client names a session of another tenant.
#[derive(Debug)]
pub(in crate::hub_sim) struct ForeignAccess {
    conn: ConnId,
    session: SessionId,
    method: String,
}

impl HubWorld {
    pub(in crate::hub_sim) fn foreign_access_of(&self, input: &Input) -> Option<ForeignAccess> {
        let Input::ClientSpoke { conn, frame } = input else { return None };
        let session: SessionId = frame.session_id()?.into();
        let method = frame.method()?.into_owned();
        self.is_foreign(*conn, &session).then_some(ForeignAccess { conn: *conn, session, method })
    }
}

impl ForeignAccess {
    /// Only a response may result from it.
    pub(in crate::hub_sim) fn check_no_effect(&self, output: &Output) {
        let touched = match output {
            Output::Append { session, .. }
            | Output::Summarize { session, .. }
            | Output::Read { session, .. }
            | Output::ReadPage { session, .. }
            | Output::Recall { session, .. }
            | Output::Delete { session } => *session == self.session,
            Output::Copy { from, .. } => *from == self.session,
            Output::ToAgent { text, .. } => {
                markers::contains(text, &format!("\"{}\"", self.method))
            }
            _ => false,
        };
        check_invariant("foreign_sessions_stay_untouched", !touched, || {
            let ForeignAccess { conn, session, method } = self;
            format!("`{method}` of {conn} in {session} caused {output:?}")
        });
    }
}

impl HubWorld {
    /// A request for a foreign session is answered as if the session did not exist.
    pub(in crate::hub_sim) fn foreign_session_is_reported_as_missing(
        &mut self,
        answer: &ReceivedResponse<'_>,
    ) {
        self.tally.count("foreign requests refused");
        let none = markers::contains(answer.text, "\"code\":\"session_not_found\"")
            || markers::contains(answer.text, "\"code\":\"overloaded\"");
        check_invariant("foreign_session_is_reported_as_missing", none, || {
            format!("{} received {:?}", answer.conn, answer.text)
        });
    }

    /// No message to a bound client names a session of another tenant.
    pub(in crate::hub_sim) fn messages_name_no_foreign_session(&self, conn: ConnId, text: &Bytes) {
        let is_foreign = |it: &&SessionId| self.is_foreign(conn, it);
        let received = self
            .disk
            .streams
            .keys()
            .filter(is_foreign)
            .find(|it| markers::contains(text, &format!("\"{it}\"")));
        check_invariant("messages_name_no_foreign_session", received.is_none(), || {
            format!("{conn} received the id of {received:?} in {text:?}")
        });
    }

    /// Quotas hold at every moment, and no process is shared between tenants.
    pub(in crate::hub_sim) fn tenant_quotas_hold(&mut self) {
        let usage = self.hub.usage();
        for tenant in self.tenants.iter() {
            let has = usage.get(&tenant.name).copied().unwrap_or_default();
            let fits = |has: usize, max: Option<usize>| max.is_none_or(|max| has <= max);
            let holds = fits(has.sessions, tenant.sessions) && fits(has.agents, tenant.agents);
            check_invariant("tenant_quotas_hold", holds, || format!("{tenant:?} has {has:?}"));
        }
        for process in self.hub.gauges().processes {
            let tenants: BTreeSet<_> = process.sessions.iter().map(|it| tenant_of(it)).collect();
            check_invariant("process_serves_one_tenant", tenants.len() <= 1, || {
                format!("{process:?}")
            });
        }
    }
}
