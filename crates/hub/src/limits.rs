//! Every bound of the hub, each with its reason. When something is full, that is said, not waited for.

use crate::ByteLimits;

/// Bytes handed to a client and not yet written. Above it the client is behind: it reads the journal.
/// Twenty milliseconds at full speed: what a healthy client can be late by on a busy machine.
pub const OUTBOX_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A client that was behind reads on when its outbox has fallen below this.
pub const OUTBOX_BYTES_LOW: usize = OUTBOX_BYTES_MAX / 4;

/// Events one journal read may return, and their bytes: a slice of work the loop does at once.
pub const READ_EVENTS_MAX: usize = 2048;
pub const READ_BYTES_MAX: usize = 1024 * 1024;

/// Events in a page of a log, unless the client wants another number, and at most: some screens of a transcript.
pub const LOG_PAGE_EVENTS: u64 = 200;
pub const LOG_PAGE_EVENTS_MAX: u64 = 1000;
/// Bytes in a page of a log: as much as a client may have unwritten. One event may be larger.
pub const LOG_PAGE_BYTES_MAX: usize = OUTBOX_BYTES_MAX;

/// How often watchers are notified of changes: a person sees no difference. Rows in which only the number of events
/// changed are sent less often.
pub const WATCH_INTERVAL_MS: u64 = 100;
pub const WATCH_PROGRESS_MS: u64 = 1_000;

/// Names of attached clients in the row of a session, and their bytes: more than a person reads.
pub const LISTED_CLIENTS_MAX: usize = 16;
pub const LISTED_NAME_BYTES_MAX: usize = 64;

/// Bytes appended and not yet durable, per session. Above it the agent's pipe is no longer read.
pub const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;
pub const HELD_BYTES_LOW: usize = HELD_BYTES_MAX / 2;

/// The same of all sessions together: above it the agents of those that have something to write are not read.
pub const HELD_BYTES_ALL_MAX: usize = 64 * 1024 * 1024;

/// Bytes handed to all clients and not yet written. Above it a client is behind with `OUTBOX_BYTES_MIN` unwritten.
pub const OUTBOX_BYTES_ALL_MAX: usize = 64 * 1024 * 1024;
pub const OUTBOX_BYTES_MIN: usize = 64 * 1024;

/// Bytes of messages that are kept until something else has happened. For a session: prompts that wait, requests for an
/// agent that is being started, open asks. For an agent: what it says before it has answered `session/new`. For a
/// client: its requests that an agent has not answered, asks for it alone, answers that wait for events before them.
/// A message has 16 MiB at most: one of the longest, and half as much besides.
pub const KEPT_BYTES_MAX: usize = 24 * 1024 * 1024;
/// The same of all of them together: what the daemon may take beyond its journal and its outboxes.
pub const KEPT_BYTES_ALL_MAX: usize = 64 * 1024 * 1024;
/// So much may each keep in any case: large messages of some leave room for prompts and asks as people write them.
pub const KEPT_BYTES_MIN: usize = 64 * 1024;

/// What a session, a client or an agent is introduced with is kept as long as it is there: `initialize` and its answer,
/// `session/new` and what the agent offers in its answer. Lists of MCP servers, modes and models are a few kilobytes.
pub const SETUP_BYTES_MAX: usize = 1024 * 1024;

/// Requests one client may have in flight. An editor has a handful; a thousand is a runaway loop.
pub const PENDING_PER_CONN_MAX: usize = 1024;

/// Prompts waiting behind the running turn of a session.
pub const QUEUE_MAX: usize = 32;

/// Keys of a tenant that lead to a session: with the longest keys about 5 MB.
pub const KEYS_PER_TENANT_MAX: usize = 10_000;

/// Requests that wait for a session's agent to wake.
pub const PARKED_MAX: usize = 256;

/// Updates an agent may send before it has answered `session/new`.
pub const EARLY_MAX: usize = 4096;

/// Asks of one agent that wait for an answer at the same time.
pub const ASKS_MAX: usize = 256;

/// Tool calls of one agent that have not ended, and the bytes of what is known of them. An agent runs
/// a handful at a time; the largest inputs are whole files, and of one that does not fit only the
/// small members are kept.
pub const CALLS_MAX: usize = 64;
pub const CALLS_BYTES_MAX: usize = 1024 * 1024;

/// Sessions a list page holds.
pub const LIST_PAGE: usize = 100;

/// How long each step of a start may take before it fails: the process starts, answers `initialize`,
/// opens or restores a session. A process starts in milliseconds unless the machine is overloaded;
/// `initialize` includes a cold `npx` start; a session with a long history is loaded in a minute or two.
pub const STARTING_MS_MAX: u64 = 60_000;
pub const INITIALIZING_MS_MAX: u64 = 60_000;
pub const OPENING_MS_MAX: u64 = 180_000;

/// How long a launch variant may take to answer `initialize` if another one can be tried: half of the
/// usual time, so that both fit into what a client waits, and four times what the slowest known agent
/// needs.
pub const VARIANT_START_MS_MAX: u64 = 30_000;

/// How long an agent may take to accept a setting that a client changes.
pub const SETTING_REPLY_MS_MAX: u64 = 60_000;

/// A turn without a message of the agent and without a running tool is canceled after this time: a model
/// that thinks hard is silent for a minute or two, a connection that was lost stays silent forever.
pub const THINKING_MS_MAX: u64 = 600_000;

/// An agent that tells a session's past has told it when it has been quiet for so long after its
/// answer to `session/load`, or at the latest after the second figure. Those that go on after the
/// answer do so in one burst of a millisecond or two.
pub const LOAD_QUIET_MS: u64 = 100;
pub const LOAD_QUIET_MS_MAX: u64 = 5_000;

/// How long a phase may be silent before that is said. A process is there in milliseconds, an answer
/// to `initialize` after a cold `npx` start of a minute, and a session is loaded in as much; a model
/// that thinks hard says nothing for a minute; a tool is a build or a test run, and many take five.
pub const STARTING_QUIET_MS: u64 = 10_000;
pub const INITIALIZING_QUIET_MS: u64 = 60_000;
pub const OPENING_QUIET_MS: u64 = 60_000;
pub const THINKING_QUIET_MS: u64 = 120_000;
pub const TOOL_QUIET_MS: u64 = 300_000;

/// Shapes of sessions that warm processes are kept for: a few projects at a time.
pub const WARM_SHAPES_MAX: usize = 8;

/// An agent that has answered `session/load` and told nothing of a conversation that was is given
/// so long to begin: those that begin after their answer do so at once.
pub const LOAD_SILENCE_MS: u64 = 1_000;

/// How long the last process of a session is waited for before a new one is started: two writers
/// spoil some agents' files. A stop in order takes less, even of an agent that ignores it.
pub const PARTING_MS_MAX: u64 = 10_000;

/// A session that somebody else has open is asked for once more after this time.
pub const LOCK_RETRY_MS: u64 = 1_000;

/// How long a new process may take to accept the settings of its session before it is prompted.
pub const SETTING_MS_MAX: u64 = 10_000;

/// What an agent that has lost a session is told of it: some eight thousand tokens, which leaves
/// every model room to work. One message of it, and how far back the journal is read for it.
pub const DIGEST_BYTES_MAX: usize = 32 * 1024;
pub const DIGEST_PIECE_MAX: usize = 4 * 1024;
pub const DIGEST_EVENTS_MAX: u64 = 8_192;

/// The delay between the steps of canceling: most agents stop within 250 ms.
pub const CANCEL_GRACE_MS: u64 = 3_000;

/// What running turns get to end by themselves when the daemon stops.
pub const STOP_GRACE_MS: u64 = 2_000;

/// An agent that ended this often in the window is not started again until the window has passed.
pub const RESTARTS_MAX: usize = 5;
pub const RESTART_WINDOW_MS: u64 = 60_000;
pub const RESTART_BACKOFF_MS: u64 = 100;
/// The pause before a start doubles so often, and no further: to six seconds.
pub const RESTART_DOUBLINGS_MAX: usize = 6;

/// A suspended session without subscribers is released after this time, where it need not be kept:
/// a client that was cut off is back by then, and one that had it adopted has attached.
pub const UNATTENDED_MS: u64 = 10_000;

/// First pause before an append that failed is tried again; it doubles up to the second figure.
pub const APPEND_RETRY_MS: u64 = 100;
pub const APPEND_RETRY_MS_MAX: u64 = 10_000;

/// A turn has ended: its client hears that at once, and the summary of the session is written so much
/// later. After a crash the sessions of the last moment are read from their logs; a figure that people
/// do not notice in a start, and far more than a turn of the fastest agent takes.
pub const SUMMARY_MS: u64 = 250;

/// The bounds on what the hub keeps in memory, as a value: the constants above, unless whoever runs
/// the hub wants smaller ones. The simulator does, so that it gets to see what happens at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub outbox_bytes_max: usize,
    pub outbox_bytes_low: usize,
    pub held_bytes_max: usize,
    pub held_bytes_low: usize,
    pub held_bytes_all_max: usize,
    pub outbox_bytes_all_max: usize,
    /// What sessions, agents and clients keep.
    pub kept: ByteLimits,
    pub pending_per_conn_max: usize,
    pub queue_max: usize,
    pub parked_max: usize,
    pub early_max: usize,
    pub asks_max: usize,
    pub list_page: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            outbox_bytes_max: OUTBOX_BYTES_MAX,
            outbox_bytes_low: OUTBOX_BYTES_LOW,
            held_bytes_max: HELD_BYTES_MAX,
            held_bytes_low: HELD_BYTES_LOW,
            held_bytes_all_max: HELD_BYTES_ALL_MAX,
            outbox_bytes_all_max: OUTBOX_BYTES_ALL_MAX,
            kept: ByteLimits {
                own_max: KEPT_BYTES_MAX,
                own_min: KEPT_BYTES_MIN,
                all_max: KEPT_BYTES_ALL_MAX,
            },
            pending_per_conn_max: PENDING_PER_CONN_MAX,
            queue_max: QUEUE_MAX,
            parked_max: PARKED_MAX,
            early_max: EARLY_MAX,
            asks_max: ASKS_MAX,
            list_page: LIST_PAGE,
        }
    }
}

const _: () = assert!(READ_BYTES_MAX <= OUTBOX_BYTES_MAX);
const _: () = assert!(OUTBOX_BYTES_LOW < OUTBOX_BYTES_MAX);
const _: () = assert!(LOAD_QUIET_MS < LOAD_QUIET_MS_MAX);
const _: () = assert!(HELD_BYTES_LOW < HELD_BYTES_MAX);
const _: () = assert!(OUTBOX_BYTES_MIN < OUTBOX_BYTES_LOW);
