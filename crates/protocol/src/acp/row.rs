//! The columns of the method table.

/// What one method means to hub and gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodRow {
    pub stability: MethodStability,
    pub direction: Direction,
    pub kind: MethodKind,
    pub scope: Scope,
    pub audience: Audience,
    pub durability: Durability,
    pub tenant: TenantRule,
    pub operator: OperatorRule,
    pub audit: AuditRule,
    pub route: GatewayRoute,
}

/// Which specification defines the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodStability {
    /// The released schema of ACP.
    Stable,
    /// The unstable schema of ACP.
    Unstable,
    /// No schema any more, but agents still have it.
    Legacy,
    /// The control protocol, `_jackfield/*`. Only the hub and its clients send such methods.
    Ours,
}

/// Which way the method travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToAgent,
    ToClient,
    Both,
}

/// Whether the method wants an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    Request,
    Notification,
    Either,
}

/// What the params name, which decides where the message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Nothing: the message is about the connection or the agent as a whole.
    Connection,
    /// A session, by `sessionId`.
    Session,
    /// A request without an answer, by `requestId`.
    Pending,
}

/// Who receives the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The hub itself, which answers.
    Hub,
    Agent,
    /// Every client that is attached to the session.
    Subscribers,
    /// Every attached client that can answer; the first answer counts.
    Everyone,
    /// The client whose prompt runs.
    Driver,
}

/// Whether the message is written to the journal before it is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    Journaled,
    Passing,
}

/// What clients that are bound to a tenant may do with the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantRule {
    Allowed,
    /// Allowed with params that have been checked: directories, MCP servers and `_meta`.
    Checked,
    /// Allowed for tenants with `commands = true`: the params name a program to start.
    Commands,
    /// The same, because the method concerns the agent process, which tenants share.
    Process,
    /// Refused: the method concerns all tenants.
    Refused,
}

/// What clients that run below an agent may do with the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorRule {
    Allowed,
    /// Allowed if the params choose neither a program nor what is approved.
    Checked,
    Refused,
}

/// Whether the audit log of a gateway has an entry for the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditRule {
    Audited,
    /// The method only opens a connection or reads a list.
    Skipped,
}

/// Where a gateway sends a request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayRoute {
    /// The host that owns the named session; without a session, the client's home host.
    Owner,
    /// Every host that the client is connected to, and each one that it will be connected to.
    Opening,
    /// All hosts; the answers are merged.
    AllHosts,
    /// A host that is chosen for a new session.
    Placed,
    /// Nowhere: a client of a fleet may not send it.
    Refused,
}
