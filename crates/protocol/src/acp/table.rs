//! The method table: one row for every method of ACP and of our control protocol.
//!
//! To add a method, add a row. It does not compile until every column has a value, and every exhaustive
//! match over [`Method`] then asks what the method means there.

use super::row::{
    Audience, AuditRule, Direction, Durability, GatewayRoute, MethodKind, MethodRow,
    MethodStability, OperatorRule, Scope, TenantRule,
};

/// Turns the rows into the enum and its lookups.
macro_rules! methods {
    ($($variant:ident $name:literal:
       $stability:ident $direction:ident $kind:ident $scope:ident $audience:ident $durability:ident,
       $tenant:ident $operator:ident $audit:ident $route:ident;)*) => {
        /// A method that the hub knows. Any other method is passed on between client and agent.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Method {
            pub const ALL: &[Method] = &[$(Method::$variant,)*];

            /// The method with this name, if the hub knows it.
            pub fn from_name(name: &str) -> Option<Method> {
                match name {
                    $($name => Some(Method::$variant),)*
                    _ => None,
                }
            }

            pub const fn name(self) -> &'static str {
                match self {
                    $(Method::$variant => $name,)*
                }
            }

            pub const fn row(self) -> MethodRow {
                match self {
                    $(Method::$variant => MethodRow {
                        stability: MethodStability::$stability,
                        direction: Direction::$direction,
                        kind: MethodKind::$kind,
                        scope: Scope::$scope,
                        audience: Audience::$audience,
                        durability: Durability::$durability,
                        tenant: TenantRule::$tenant,
                        operator: OperatorRule::$operator,
                        audit: AuditRule::$audit,
                        route: GatewayRoute::$route,
                    },)*
                }
            }
        }
    };
}

// Columns: stability, direction, kind, scope, audience, durability; tenant rule, operator rule, audit
// rule, gateway route. Some rows say less than the protocol: `elicitation/create` names a session or a
// pending request; `mcp/message` to the agent goes to the agent; the methods of proxy chains are here so
// that the hub refuses them by name. A control method is never journaled as a message: the hub writes
// an event of its own.
methods! {
    CancelRequest "$/cancel_request":
        Stable Both Notification Pending Hub Passing, Allowed Allowed Audited Owner;
    AuthStatus "auth/status":
        Unstable ToAgent Request Connection Agent Passing, Process Allowed Audited Owner;
    AuthStatusUpdate "auth/status_update":
        Unstable ToClient Notification Connection Subscribers Passing, Allowed Allowed Audited Owner;
    Authenticate "authenticate":
        Stable ToAgent Request Connection Agent Passing, Process Allowed Audited Owner;
    ElicitationComplete "elicitation/complete":
        Stable ToClient Notification Connection Subscribers Passing, Allowed Allowed Audited Owner;
    ElicitationCreate "elicitation/create":
        Stable ToClient Request Session Everyone Journaled, Allowed Allowed Audited Owner;
    FsReadTextFile "fs/read_text_file":
        Stable ToClient Request Session Driver Passing, Allowed Allowed Audited Owner;
    FsWriteTextFile "fs/write_text_file":
        Stable ToClient Request Session Driver Passing, Allowed Allowed Audited Owner;
    Initialize "initialize":
        Stable ToAgent Request Connection Hub Passing, Allowed Allowed Skipped Opening;
    Logout "logout":
        Stable ToAgent Request Connection Agent Passing, Process Allowed Audited Owner;
    McpMessage "mcp/message":
        Unstable Both Either Connection Driver Passing, Allowed Allowed Audited Owner;
    ProvidersDisable "providers/disable":
        Unstable ToAgent Request Connection Agent Passing, Process Allowed Audited Owner;
    ProvidersList "providers/list":
        Unstable ToAgent Request Connection Agent Passing, Process Allowed Audited Owner;
    ProvidersSet "providers/set":
        Unstable ToAgent Request Connection Agent Passing, Process Allowed Audited Owner;
    ProxyInitialize "proxy/initialize":
        Unstable ToAgent Request Connection Hub Passing, Allowed Allowed Audited Owner;
    ProxySuccessor "proxy/successor":
        Unstable Both Either Connection Hub Passing, Allowed Allowed Audited Owner;
    SessionArchive "session/archive":
        Unstable ToAgent Request Session Agent Journaled, Allowed Allowed Audited Owner;
    SessionCancel "session/cancel":
        Stable ToAgent Notification Session Agent Journaled, Allowed Allowed Audited Owner;
    SessionClose "session/close":
        Stable ToAgent Request Session Hub Journaled, Allowed Allowed Audited Owner;
    SessionDelete "session/delete":
        Stable ToAgent Request Session Hub Passing, Allowed Allowed Audited Owner;
    SessionFork "session/fork":
        Unstable ToAgent Request Session Hub Journaled, Checked Checked Audited Owner;
    SessionList "session/list":
        Stable ToAgent Request Connection Hub Passing, Allowed Allowed Skipped AllHosts;
    SessionLoad "session/load":
        Stable ToAgent Request Session Hub Passing, Checked Checked Audited Owner;
    SessionNew "session/new":
        Stable ToAgent Request Connection Hub Journaled, Checked Checked Audited Placed;
    SessionPrompt "session/prompt":
        Stable ToAgent Request Session Agent Journaled, Allowed Allowed Audited Owner;
    SessionRequestPermission "session/request_permission":
        Stable ToClient Request Session Everyone Journaled, Allowed Allowed Audited Owner;
    SessionResume "session/resume":
        Stable ToAgent Request Session Hub Passing, Checked Checked Audited Owner;
    SessionSetConfigOption "session/set_config_option":
        Stable ToAgent Request Session Agent Journaled, Allowed Allowed Audited Owner;
    SessionSetMode "session/set_mode":
        Stable ToAgent Request Session Agent Journaled, Allowed Allowed Audited Owner;
    SessionSetModel "session/set_model":
        Legacy ToAgent Request Session Agent Journaled, Allowed Allowed Audited Owner;
    SessionSetTitle "session/set_title":
        Unstable ToAgent Request Session Agent Journaled, Allowed Allowed Audited Owner;
    SessionStatus "session/status":
        Unstable ToAgent Request Session Agent Passing, Allowed Allowed Skipped Owner;
    SessionUnarchive "session/unarchive":
        Unstable ToAgent Request Session Agent Journaled, Allowed Allowed Audited Owner;
    SessionUpdate "session/update":
        Stable ToClient Notification Session Subscribers Journaled, Allowed Allowed Audited Owner;
    TerminalCreate "terminal/create":
        Stable ToClient Request Session Driver Passing, Allowed Allowed Audited Owner;
    TerminalKill "terminal/kill":
        Stable ToClient Request Session Driver Passing, Allowed Allowed Audited Owner;
    TerminalOutput "terminal/output":
        Stable ToClient Request Session Driver Passing, Allowed Allowed Audited Owner;
    TerminalRelease "terminal/release":
        Stable ToClient Request Session Driver Passing, Allowed Allowed Audited Owner;
    TerminalWaitForExit "terminal/wait_for_exit":
        Stable ToClient Request Session Driver Passing, Allowed Allowed Audited Owner;
    ControlAnswer "_jackfield/answer":
        Ours ToAgent Request Session Hub Passing, Allowed Refused Audited Owner;
    ControlAsk "_jackfield/ask":
        Ours ToClient Notification Session Subscribers Passing, Allowed Allowed Audited Owner;
    ControlAsks "_jackfield/asks":
        Ours ToAgent Request Connection Hub Passing, Allowed Allowed Skipped AllHosts;
    ControlAttach "_jackfield/attach":
        Ours ToAgent Request Session Hub Passing, Allowed Allowed Audited Owner;
    ControlAuth "_jackfield/auth":
        Ours ToAgent Either Connection Hub Passing, Allowed Allowed Audited Owner;
    ControlChallenge "_jackfield/challenge":
        Ours ToAgent Request Connection Hub Passing, Allowed Allowed Audited Owner;
    ControlChanges "_jackfield/changes":
        Ours ToClient Notification Connection Subscribers Passing, Allowed Allowed Audited Owner;
    ControlConnect "_jackfield/connect":
        Ours ToAgent Either Connection Hub Passing, Checked Checked Skipped Opening;
    ControlEvent "_jackfield/event":
        Ours ToClient Notification Session Subscribers Passing, Allowed Allowed Audited Owner;
    ControlFindKey "_jackfield/find_key":
        Ours ToAgent Request Connection Hub Passing, Allowed Allowed Skipped AllHosts;
    ControlGap "_jackfield/gap":
        Ours ToClient Notification Session Subscribers Passing, Allowed Allowed Audited Owner;
    ControlImport "_jackfield/import":
        Ours ToAgent Request Session Hub Passing, Commands Refused Audited Placed;
    ControlListen "_jackfield/listen":
        Ours ToAgent Request Connection Hub Passing, Refused Refused Audited Refused;
    ControlRelay "_jackfield/relay":
        Ours ToAgent Notification Connection Hub Passing, Allowed Allowed Audited Refused;
    ControlMove "_jackfield/move":
        Ours ToAgent Request Session Hub Passing, Allowed Allowed Audited Owner;
    ControlMoved "_jackfield/moved":
        Ours ToClient Notification Session Subscribers Passing, Allowed Allowed Audited Owner;
    ControlOperator "_jackfield/operator":
        Ours ToAgent Request Connection Hub Passing, Allowed Allowed Audited Owner;
    ControlQueue "_jackfield/queue":
        Ours ToAgent Request Session Hub Passing, Allowed Allowed Audited Owner;
    ControlReadLog "_jackfield/read_log":
        Ours ToAgent Request Session Hub Passing, Allowed Allowed Skipped Owner;
    ControlRelease "_jackfield/release":
        Ours ToAgent Request Session Hub Passing, Allowed Allowed Audited Owner;
    ControlRename "_jackfield/rename":
        Ours ToAgent Request Session Hub Passing, Allowed Refused Audited Owner;
    ControlSession "_jackfield/session":
        Ours ToClient Notification Session Subscribers Passing, Allowed Allowed Audited Owner;
    ControlSessions "_jackfield/sessions":
        Ours ToAgent Request Connection Hub Passing, Allowed Allowed Skipped AllHosts;
    ControlSettings "_jackfield/settings":
        Ours ToAgent Request Session Hub Passing, Allowed Allowed Skipped Owner;
    ControlStatus "_jackfield/status":
        Ours ToAgent Request Connection Hub Passing, Allowed Allowed Skipped AllHosts;
    ControlStop "_jackfield/stop":
        Ours ToAgent Request Connection Hub Passing, Refused Refused Audited Refused;
    ControlStorage "_jackfield/storage":
        Ours ToClient Notification Connection Subscribers Passing, Allowed Allowed Audited Owner;
    ControlTenant "_jackfield/tenant":
        Ours ToAgent Notification Connection Hub Passing, Allowed Allowed Audited Owner;
    ControlTurn "_jackfield/turn":
        Ours ToClient Notification Session Subscribers Passing, Allowed Allowed Audited Owner;
    ControlWatch "_jackfield/watch":
        Ours ToAgent Request Connection Hub Passing, Allowed Allowed Skipped AllHosts;
    ControlWithdraw "_jackfield/withdraw":
        Ours ToAgent Request Session Hub Passing, Allowed Allowed Audited Owner;
}

impl Method {
    /// Reads or writes a file of the client.
    pub fn is_file(self) -> bool {
        matches!(self, Method::FsReadTextFile | Method::FsWriteTextFile)
    }

    /// Concerns a terminal of the client.
    pub fn is_terminal(self) -> bool {
        use Method::{
            TerminalCreate, TerminalKill, TerminalOutput, TerminalRelease, TerminalWaitForExit,
        };
        matches!(
            self,
            TerminalCreate | TerminalKill | TerminalOutput | TerminalRelease | TerminalWaitForExit
        )
    }
}
