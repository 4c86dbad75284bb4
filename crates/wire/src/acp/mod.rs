//! What each ACP method means to the hub: one table, read by everything that routes.

mod method;

pub use method::{Audience, Direction, Durability, METHODS, Method, MethodKind, Scope, method};
