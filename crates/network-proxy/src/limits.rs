//! Every limit of a proxy with its reason.

use std::time::Duration;

/// The limits that depend on the machine and on the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Concurrent connections. Further ones wait in the queue of the socket. Each needs two files, and at
    /// most about 150 KiB of memory.
    pub connections_max: usize,
    /// How long a complete head of a request may take, also after the response before it.
    pub head_timeout: Duration,
    /// How long the resolver, the connection to a host and its TLS handshake may take together.
    pub connect_timeout: Duration,
    /// A connection on which no byte moves for this long is closed, after at most twice this time. A model
    /// may think for minutes before its next token.
    pub idle_timeout: Duration,
    /// How long the user may take to answer a question.
    pub question_timeout: Duration,
}

impl Default for ProxyLimits {
    fn default() -> ProxyLimits {
        ProxyLimits {
            connections_max: 256,
            head_timeout: Duration::from_mins(1),
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_mins(30),
            question_timeout: Duration::from_mins(5),
        }
    }
}

/// A request line with all its headers. Some servers set cookies of 8 KiB each.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
pub(crate) const HEADERS_MAX: usize = 128;
/// Questions that wait for an answer: more of them are no longer questions to a person.
pub(crate) const QUESTIONS_MAX: usize = 16;
/// Answers that are kept for the session.
pub(crate) const ANSWERS_MAX: usize = 1024;
/// Addresses of one name that are tried.
pub(crate) const ADDRESSES_MAX: usize = 8;
/// When the next address is tried in parallel, as RFC 8305 recommends.
pub(crate) const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);
/// The pause after a failure to accept a connection, for example because all files are in use.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The part of an invalid host that a report contains.
pub(crate) const REPORTED_HOST_CHARS_MAX: usize = 253;
