//! The environment variables of the flags. Each flag has one, named after the flag's id; `jackfield_daemon::Paths`
//! reads the three directories. A variable has one meaning: flags of the same name and different meaning have
//! different ids.

use std::ffi::OsStr;

/// The prefix of all variables of Jackfield. Agents do not see them.
pub(crate) const PREFIX: &str = "JACKFIELD_";

/// Whether a flag may have its value from this variable, and was not typed.
pub(crate) fn is_value_of(variable: &str, value: &OsStr) -> bool {
    std::env::var_os(variable).as_deref() == Some(value)
}

/// Any value but `0`, `no`, `off`, `false` and the empty one sets the flag.
pub(crate) fn flag_parser() -> clap::builder::FalseyValueParser {
    clap::builder::FalseyValueParser::new()
}

pub(crate) const ADAPT_VARIANT: &str = "JACKFIELD_ADAPT_VARIANT";
pub(crate) const ADD_DIR: &str = "JACKFIELD_ADD_DIR";
pub(crate) const AFTER: &str = "JACKFIELD_AFTER";
pub(crate) const AGENT: &str = "JACKFIELD_AGENT";
pub(crate) const ALL: &str = "JACKFIELD_ALL";
pub(crate) const ALL_AGENTS: &str = "JACKFIELD_ALL_AGENTS";
pub(crate) const APPROVE: &str = "JACKFIELD_APPROVE";
pub(crate) const ARCHIVE: &str = "JACKFIELD_ARCHIVE";
pub(crate) const ARCHIVE_AFTER: &str = "JACKFIELD_ARCHIVE_AFTER";
pub(crate) const AT: &str = "JACKFIELD_AT";
pub(crate) const AUDIT_SESSION: &str = "JACKFIELD_AUDIT_SESSION";
pub(crate) const BEFORE: &str = "JACKFIELD_BEFORE";
pub(crate) const BRIDGE: &str = "JACKFIELD_BRIDGE";
pub(crate) const BY: &str = "JACKFIELD_BY";
pub(crate) const CANCEL_ON_EXIT: &str = "JACKFIELD_CANCEL_ON_EXIT";
pub(crate) const CELL: &str = "JACKFIELD_CELL";
pub(crate) const CLOSED: &str = "JACKFIELD_CLOSED";
pub(crate) const COLOR: &str = "JACKFIELD_COLOR";
pub(crate) const CONFIG: &str = "JACKFIELD_CONFIG";
pub(crate) const CONFIG_FD: &str = "JACKFIELD_CONFIG_FD";
pub(crate) const CONSOLE_TENANT: &str = "JACKFIELD_CONSOLE_TENANT";
pub(crate) const CONTINUE_LATEST: &str = "JACKFIELD_CONTINUE_LATEST";
pub(crate) const CWD: &str = "JACKFIELD_CWD";
pub(crate) const DRAIN_TIMEOUT: &str = "JACKFIELD_DRAIN_TIMEOUT";
pub(crate) const DRY_RUN: &str = "JACKFIELD_DRY_RUN";
pub(crate) const EVENTS: &str = "JACKFIELD_EVENTS";
pub(crate) const EXPORT_FORMAT: &str = "JACKFIELD_EXPORT_FORMAT";
pub(crate) const FIX: &str = "JACKFIELD_FIX";
pub(crate) const FLEET: &str = "JACKFIELD_FLEET";
pub(crate) const FLEET_CERTS: &str = "JACKFIELD_FLEET_CERTS";
pub(crate) const FOLLOW: &str = "JACKFIELD_FOLLOW";
pub(crate) const FORCE: &str = "JACKFIELD_FORCE";
pub(crate) const FORMAT: &str = "JACKFIELD_FORMAT";
pub(crate) const HOST_NAME: &str = "JACKFIELD_HOST_NAME";
pub(crate) const IDLE_AFTER: &str = "JACKFIELD_IDLE_AFTER";
pub(crate) const IMAGE: &str = "JACKFIELD_IMAGE";
pub(crate) const INSECURE: &str = "JACKFIELD_INSECURE";
pub(crate) const INLINE: &str = "JACKFIELD_INLINE";
pub(crate) const INPUT: &str = "JACKFIELD_INPUT";
pub(crate) const INTERACTIVE: &str = "JACKFIELD_INTERACTIVE";
pub(crate) const ISOLATED: &str = "JACKFIELD_ISOLATED";
pub(crate) const JSON: &str = "JACKFIELD_JSON";
pub(crate) const KEEP: &str = "JACKFIELD_KEEP";
pub(crate) const KEEP_SESSIONS: &str = "JACKFIELD_KEEP_SESSIONS";
pub(crate) const KEYS: &str = "JACKFIELD_KEYS";
pub(crate) const LABEL: &str = "JACKFIELD_LABEL";
pub(crate) const LAYER: &str = "JACKFIELD_LAYER";
pub(crate) const LIMIT: &str = "JACKFIELD_LIMIT";
pub(crate) const LIST: &str = "JACKFIELD_LIST";
pub(crate) const LISTEN: &str = "JACKFIELD_LISTEN";
pub(crate) const LOG: &str = "JACKFIELD_LOG";
pub(crate) const MCP: &str = "JACKFIELD_MCP";
pub(crate) const METRICS: &str = "JACKFIELD_METRICS";
pub(crate) const MODE: &str = "JACKFIELD_MODE";
pub(crate) const MODEL: &str = "JACKFIELD_MODEL";
pub(crate) const MOUSE: &str = "JACKFIELD_MOUSE";
pub(crate) const MOVE: &str = "JACKFIELD_MOVE";
pub(crate) const NAME: &str = "JACKFIELD_NAME";
pub(crate) const NEW: &str = "JACKFIELD_NEW";
pub(crate) const NO_OPEN: &str = "JACKFIELD_NO_OPEN";
pub(crate) const NO_TEXT: &str = "JACKFIELD_NO_TEXT";
pub(crate) const NO_WAIT: &str = "JACKFIELD_NO_WAIT";
pub(crate) const OLDER_THAN: &str = "JACKFIELD_OLDER_THAN";
pub(crate) const ONLY_AGENT: &str = "JACKFIELD_ONLY_AGENT";
pub(crate) const ONLY_CWD: &str = "JACKFIELD_ONLY_CWD";
pub(crate) const ONLY_STATE: &str = "JACKFIELD_ONLY_STATE";
pub(crate) const ON_ASK: &str = "JACKFIELD_ON_ASK";
pub(crate) const OUTPUT: &str = "JACKFIELD_OUTPUT";
pub(crate) const OUTPUT_DIR: &str = "JACKFIELD_OUTPUT_DIR";
pub(crate) const PAIR: &str = "JACKFIELD_PAIR";
pub(crate) const PRINT: &str = "JACKFIELD_PRINT";
pub(crate) const PROBE: &str = "JACKFIELD_PROBE";
pub(crate) const PROGRAM: &str = "JACKFIELD_PROGRAM";
pub(crate) const QUIET: &str = "JACKFIELD_QUIET";
pub(crate) const RAW: &str = "JACKFIELD_RAW";
pub(crate) const REASONING: &str = "JACKFIELD_REASONING";
pub(crate) const REMOVE: &str = "JACKFIELD_REMOVE";
pub(crate) const REPLICAS: &str = "JACKFIELD_REPLICAS";
pub(crate) const RETAIN: &str = "JACKFIELD_RETAIN";
pub(crate) const RETAIN_SIZE: &str = "JACKFIELD_RETAIN_SIZE";
pub(crate) const REVOKE: &str = "JACKFIELD_REVOKE";
pub(crate) const ROLE: &str = "JACKFIELD_ROLE";
pub(crate) const ROTATE: &str = "JACKFIELD_ROTATE";
pub(crate) const RUN: &str = "JACKFIELD_RUN";
pub(crate) const SERVER: &str = "JACKFIELD_SERVER";
pub(crate) const SESSION: &str = "JACKFIELD_SESSION";
pub(crate) const SETTINGS: &str = "JACKFIELD_SETTINGS";
pub(crate) const SETUP_AGENTS: &str = "JACKFIELD_SETUP_AGENTS";
pub(crate) const SHARDS: &str = "JACKFIELD_SHARDS";
pub(crate) const SHARED: &str = "JACKFIELD_SHARED";
pub(crate) const SINCE: &str = "JACKFIELD_SINCE";
pub(crate) const SKIP_DAMAGED: &str = "JACKFIELD_SKIP_DAMAGED";
pub(crate) const SOCKET: &str = "JACKFIELD_SOCKET";
pub(crate) const START_TIMEOUT: &str = "JACKFIELD_START_TIMEOUT";
pub(crate) const STDIO: &str = "JACKFIELD_STDIO";
pub(crate) const STEER: &str = "JACKFIELD_STEER";
pub(crate) const SWEEP_EVERY: &str = "JACKFIELD_SWEEP_EVERY";
pub(crate) const TCP: &str = "JACKFIELD_TCP";
pub(crate) const TENANT: &str = "JACKFIELD_TENANT";
pub(crate) const TENANTS: &str = "JACKFIELD_TENANTS";
pub(crate) const TIMEOUT: &str = "JACKFIELD_TIMEOUT";
pub(crate) const TLS_CERT: &str = "JACKFIELD_TLS_CERT";
pub(crate) const TLS_KEY: &str = "JACKFIELD_TLS_KEY";
pub(crate) const TOKEN_FILE: &str = "JACKFIELD_TOKEN_FILE";
pub(crate) const TOKEN_NAME: &str = "JACKFIELD_TOKEN_NAME";
pub(crate) const UNDO: &str = "JACKFIELD_UNDO";
pub(crate) const SANDBOX: &str = "JACKFIELD_SANDBOX";
pub(crate) const UNENFORCED: &str = "JACKFIELD_UNENFORCED";
pub(crate) const UNIX: &str = "JACKFIELD_UNIX";
pub(crate) const URL: &str = "JACKFIELD_URL";
pub(crate) const VARIANT: &str = "JACKFIELD_VARIANT";
pub(crate) const VERBOSE: &str = "JACKFIELD_VERBOSE";
pub(crate) const VIEW: &str = "JACKFIELD_VIEW";
pub(crate) const WITHDRAW: &str = "JACKFIELD_WITHDRAW";
pub(crate) const YES: &str = "JACKFIELD_YES";
