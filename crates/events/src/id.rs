//! Ids and positions that events name. Each is a type of its own, so that one is never passed as another.

use serde::{Deserialize, Serialize};
use std::{
    borrow::{Borrow, Cow},
    fmt,
    ops::Deref,
    sync::Arc,
};

/// A position in the log of one session. The first event has 1; 0 is before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Seq(pub u64);

impl Seq {
    #[must_use]
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

/// A time in milliseconds since the Unix epoch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Time(pub u64);

impl Time {
    #[must_use]
    pub fn plus(self, ms: u64) -> Time {
        Time(self.0.saturating_add(ms))
    }

    /// Milliseconds from an earlier time to this one.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Defines a cheap-to-clone text id. It derefs to `str` so that it can be printed, compared and sent;
/// a text becomes an id only by an explicit conversion.
macro_rules! text_id {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> $name {
                $name(text.into())
            }
        }

        impl From<Cow<'_, str>> for $name {
            fn from(text: Cow<'_, str>) -> $name {
                $name(text.into())
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> $name {
                $name(text)
            }
        }

        impl From<$name> for Arc<str> {
            fn from(id: $name) -> Arc<str> {
                id.0
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name(Arc::from(""))
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

text_id! {
    /// The hub's id of a session: `s-` and 12 base32 characters, in a fleet with the tenant before them.
    /// Clients know no other.
    SessionId
}

text_id! {
    /// The id under which an agent knows a session. It is sent to that agent and never to a client.
    AgentSessionId
}

text_id! {
    /// The name of an agent in the configuration, such as `claude`.
    AgentName
}

text_id! {
    /// The configured name of a host in a fleet. It stays the same over restarts of the host.
    HostId
}

text_id! {
    /// The name of a tenant. It is the part of a session id before the dot.
    TenantName
}
