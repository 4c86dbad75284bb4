//! What each method means to hub and gateway: one table, read by everything that routes.

mod row;
mod table;
#[cfg(test)]
mod tests;

pub use row::{
    Audience, AuditRule, Direction, Durability, GatewayRoute, MethodKind, MethodRow,
    MethodStability, OperatorRule, Scope, TenantRule,
};
pub use table::Method;

/// Whether a method belongs to our control protocol, also if this version does not know it.
pub fn is_control_method(name: &str) -> bool {
    name.starts_with("_jackfield/")
}
