//! stub
mod address;
mod auth;
mod chunk;
mod conn;
mod dial;
mod listen;
mod outbox;
mod relay;
mod socket;
mod stdio;
mod stream;
mod token;

pub use address::{Address, AddressError};
pub use auth::Refusal;
pub use conn::{ClientEvent, ConnHandle, open};
pub use dial::{DialError, Socket, dial, dial_blocking, dial_until_up};
pub use listen::{AcceptError, BindError, Listener};
pub use relay::{Ended, relay};
pub use stream::{Stream, pair};
pub use token::{Token, TokenError};
