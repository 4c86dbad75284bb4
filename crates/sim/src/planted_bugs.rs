//! The bugs that `cargo xtask plant` plants: what each breaks, and which world must find it.
//!
//! The hooks are calls of `is_planted` in the code under test. Most of these bugs existed once.

/// A bug that the simulator must find.
#[derive(Debug, Clone, Copy)]
pub struct PlantedBug {
    pub name: &'static str,
    /// The name of the simulated world.
    pub world: &'static str,
    pub breaks: &'static str,
}

const fn bug(world: &'static str, name: &'static str, breaks: &'static str) -> PlantedBug {
    PlantedBug { name, world, breaks }
}

pub const PLANTED_BUGS: &[PlantedBug] = &[
    bug("hub", "release-pending-events", "clients receive events before they are durable"),
    bug("hub", "attach-without-replay", "a client that attaches does not receive earlier events"),
    bug(
        "hub",
        "ignore-slow-client",
        "the queue of a client that does not read grows without bound",
    ),
    bug("hub", "deliver-stale-read", "the result of an outdated read is delivered again"),
    bug(
        "hub",
        "read-past-the-gate",
        "an event is delivered by a read and again when it becomes durable",
    ),
    bug("hub", "restart-at-event-1", "a restarted hub numbers events from 1 again"),
    bug("hub", "forget-interrupted-turn", "a turn that a crash interrupted never ends"),
    bug(
        "hub",
        "drop-events-during-retry",
        "events that are appended during a retry are not stored",
    ),
    bug(
        "hub",
        "keep-client-request-id",
        "clients with equal request ids receive the answers of each other",
    ),
    bug("hub", "accept-error-as-answer", "an error of one client answers a permission request"),
    bug("hub", "accept-unknown-option", "an agent receives an option that it did not offer"),
    bug(
        "hub",
        "attach-without-open-requests",
        "a request to the user that was open before a client attached is never answered",
    ),
    bug(
        "hub",
        "forget-requests-to-dead-agent",
        "a request to an agent that dies is never answered",
    ),
    bug(
        "hub",
        "keep-last-early-update",
        "updates that an agent sends before it answers `session/new` are lost",
    ),
    bug("hub", "run-effects-before-durable", "an agent receives a prompt that is not durable"),
    bug("hub", "log-replay-of-load", "`session/load` logs all earlier updates again"),
    bug("hub", "count-half-of-written-bytes", "a slow client never catches up"),
    bug(
        "hub",
        "drop-answer-of-deleted-session",
        "a request that waits in a deleted session is never answered",
    ),
    bug("hub", "accept-frames-of-released-agent", "two agents write to one session"),
    bug("hub", "skip-own-turn-end", "`session/resume` skips the end of the turn of its own client"),
    bug(
        "hub",
        "stop-after-first-cancel",
        "a turn of an agent that ignores `session/cancel` never ends",
    ),
    bug("hub", "keep-agent-of-closed-session", "a closed session keeps its process"),
    bug(
        "hub",
        "forget-waiting-prompts-at-stop",
        "queued prompts are not answered when the hub stops",
    ),
    bug(
        "hub",
        "send-notices-to-plain-clients",
        "an ordinary ACP client receives notifications of the hub",
    ),
    bug("hub", "ask-users-after-rule-answered", "users are asked although a rule has answered"),
    bug("hub", "steer-behind-queue", "a steering prompt runs after queued prompts"),
    bug(
        "hub",
        "fork-with-queued-prompts",
        "queued prompts of a session are queued in its fork, too",
    ),
    bug("hub", "fork-with-open-turn", "an open turn never ends in a fork"),
    bug(
        "hub",
        "stop-agent-with-open-request",
        "an agent is stopped while it waits for an answer of the user",
    ),
    bug(
        "hub",
        "stop-agent-with-pending-answer",
        "an agent is stopped while a client waits for its answer",
    ),
    bug("hub", "one-agent-too-many", "more agents run than the limit permits"),
    bug(
        "hub",
        "forget-start-that-waits",
        "a start that waits for a free slot is never tried again",
    ),
    bug(
        "hub",
        "ignore-open-request-in-liveness",
        "a session is reported as quiet while a user is asked",
    ),
    bug("hub", "restore-without-mode", "a restored session has lost its mode"),
    bug("hub", "reseed-without-digest", "an agent that lost a session gets no digest of it"),
    bug("hub", "repeat-digest", "every prompt after a reseed carries the digest again"),
    bug(
        "hub",
        "resume-unseeded-session",
        "after a crash, an agent resumes a session that it was never given",
    ),
    bug("hub", "one-session-too-many-per-agent", "a process serves more sessions than it may"),
    bug("hub", "end-one-session-of-dead-agent", "only one session of a dead process is notified"),
    bug("hub", "fall-back-without-event", "another agent is used, and no event reports it"),
    bug("hub", "forget-prompt-key", "a repeated prompt runs twice"),
    bug(
        "hub",
        "forget-end-of-keyed-turn",
        "a prompt that is repeated after its turn is never answered",
    ),
    bug(
        "hub",
        "answer-last-waiter-only",
        "of two clients that repeat one prompt, the first is never answered",
    ),
    bug("hub", "release-session-during-turn", "the log of a released session has an open turn"),
    bug("hub", "release-session-before-durable", "the next host does not find the last events"),
    bug("hub", "release-session-with-ending-agent", "two agents write the files of one session"),
    bug(
        "hub",
        "start-turn-in-released-session",
        "a session that is released is never released, or its turn is cut off",
    ),
    bug("hub", "take-over-without-ending-turn", "a turn of a lost host never ends"),
    bug("hub", "take-over-own-session", "a session that is served here is restarted from its log"),
    bug("hub", "keep-one-prompt-key", "of two repeated prompts, the older runs twice"),
    bug("hub", "list-foreign-sessions", "a list has sessions of other tenants"),
    bug("hub", "cancel-foreign-turn", "a notification reaches a session of another tenant"),
    bug("hub", "fork-without-tenant", "a fork belongs to no tenant"),
    bug("hub", "share-agent-between-tenants", "one process serves sessions of two tenants"),
    bug("hub", "exceed-quota-by-one", "a tenant has one session or agent more than its quota"),
    bug("hub", "wake-beyond-quota", "sleeping sessions are restored beyond the quota"),
    bug("gateway", "gateway-lists-foreign-sessions", "a page has sessions of other tenants"),
    bug(
        "gateway",
        "gateway-relays-foreign-session",
        "a host receives a request for a session of another tenant",
    ),
    bug(
        "gateway",
        "gateway-forgets-open-request",
        "a request whose host is lost is never answered",
    ),
    bug(
        "gateway",
        "gateway-skips-rest-of-event",
        "the remaining frames of an event are lost with the connection to its host",
    ),
    bug(
        "gateway",
        "gateway-repeats-frames",
        "frames of the last event are delivered twice after a host is lost",
    ),
    bug(
        "gateway",
        "gateway-keeps-host-request-id",
        "requests of two hosts with equal ids are confused",
    ),
    bug("gateway", "gateway-reuses-prompt-key", "a prompt is taken for an earlier one"),
    bug(
        "gateway",
        "gateway-leaves-requests-open",
        "a client is asked although no host waits for the answer",
    ),
    bug(
        "gateway",
        "gateway-never-resumes-reading",
        "a connection that was paused for a slow client stays paused",
    ),
    bug(
        "gateway",
        "gateway-ignores-moved-session",
        "a client receives nothing more from a session that moves",
    ),
    bug(
        "gateway",
        "gateway-replays-twice",
        "a session that was being loaded when its host was lost is delivered twice",
    ),
    bug(
        "gateway",
        "gateway-forgets-new-session",
        "`session/new` is not answered when its host is lost",
    ),
    bug(
        "bus",
        "bus-keeps-client-request-id",
        "clients with equal request ids receive the answers of each other",
    ),
    bug("bus", "bus-moves-live-session", "a session does not stay with its worker"),
    bug(
        "bus",
        "bus-mixes-sessions-of-workers",
        "a client receives updates of a session that it did not use",
    ),
    bug(
        "bus",
        "bus-forgets-requests-to-dead-worker",
        "requests to a dead worker are never answered",
    ),
    bug(
        "bus",
        "bus-never-resumes-reading",
        "a worker that was paused for a slow client stays paused",
    ),
    bug(
        "bus",
        "bus-drops-early-updates",
        "updates that a worker sends before its session has an id are lost",
    ),
];

#[cfg(planted_bugs)]
pub use search::find_bugs;

#[cfg(planted_bugs)]
mod search {
    use super::PlantedBug;
    use crate::worlds::{SeedFailure, WORLDS};
    use jackfield_protocol::planted_bugs::plant_bug;
    use std::{
        num::NonZero,
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
    };

    /// Runs up to this many seeds for each bug, on all cores, and returns the first failure of each.
    pub fn find_bugs(bugs: &[PlantedBug], seeds: u64) -> Vec<Option<SeedFailure>> {
        let found =
            bugs.iter().map(|_| Mutex::default()).collect::<Vec<Mutex<Option<SeedFailure>>>>();
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
                scope.spawn(|| {
                    while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let failure = find_bug(bug, seeds);
                        let index = bugs.iter().position(|it| it.name == bug.name).expect("listed");
                        *found[index].lock().expect("no thread panics") = failure;
                    }
                });
            }
        });
        found.into_iter().map(|it| it.into_inner().expect("no thread panics")).collect()
    }

    fn find_bug(bug: &PlantedBug, seeds: u64) -> Option<SeedFailure> {
        let world = WORLDS.iter().find(|it| it.name == bug.world).expect("the world exists");
        plant_bug(bug.name);
        let failure = (0..seeds).find_map(|seed| (world.run)(seed, world.steps).err());
        plant_bug("");
        failure
    }
}
