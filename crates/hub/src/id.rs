//! Ids of connections, agent processes and sessions.

use jackfield_events::SessionId;
use std::fmt;

/// A client connection, for as long as it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// One agent process, for as long as it runs. A restarted agent is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentId(pub u64);

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c-{}", self.0)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a-{}", self.0)
    }
}

const PREFIX: &str = "s-";
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const RANDOM_CHARS: usize = 12;

/// Whether a text has the form of a session id without a tenant.
pub(crate) fn is_session_name(text: &str) -> bool {
    let random = text.strip_prefix(PREFIX).unwrap_or_default();
    random.len() == RANDOM_CHARS && random.bytes().all(|it| ALPHABET.contains(&it))
}

/// Makes session ids from a seed the driver drew. They are names, not credentials.
#[derive(Debug)]
pub(crate) struct SessionNames(u64);

impl SessionNames {
    pub(crate) fn new(seed: u64) -> SessionNames {
        SessionNames(seed)
    }

    pub(crate) fn session(&mut self) -> SessionId {
        let mut bits = self.draw();
        let mut name = String::from(PREFIX);
        for _ in 0..RANDOM_CHARS {
            name.push(char::from(ALPHABET[(bits & 31) as usize]));
            bits >>= 5;
        }
        name.into()
    }

    /// `SplitMix64`.
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
