//! What a gateway or another host asks a host, and what it answers.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// Say that you are there.
    Here,
    /// Take a client's connection, carried by the leg of this name.
    Leg(String),
    /// Own this session, if nobody living does. Asked of the owner, it asks whether that is true.
    Adopt(String),
    /// Let every session go, and take no new ones; or take new ones again. Answered with how many are left.
    Drain(bool),
}

impl Question {
    /// The last token of the subject that it is asked on.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Question::Here => "here",
            Question::Leg(_) => "leg",
            Question::Adopt(_) => "adopt",
            Question::Drain(_) => "drain",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Done,
    /// So many sessions are still here.
    Left(u32),
    /// Somebody else owns the session, and lives.
    Owned(String),
    /// There is no such session.
    Missing,
    /// It could not be done, for a reason in words; it may be tried again, or elsewhere.
    Refused(String),
    /// It drains: it takes nothing, and lets go of what it has.
    Draining,
}
