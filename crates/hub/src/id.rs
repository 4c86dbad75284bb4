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

/// Makes session ids from a seed the driver drew. They are names, not credentials.
#[derive(Debug)]
pub(crate) struct SessionNames(u64);

impl SessionNames {
    pub(crate) fn new(seed: u64) -> SessionNames {
        SessionNames(seed)
    }

    pub(crate) fn session(&mut self) -> SessionId {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut bits = self.draw();
        let mut name = String::from("s-");
        for _ in 0..12 {
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
