//! Sessions that sleep, written straight into the log as a host would have left them.

use super::world::{SERVERS, SHARDS};
use anyhow::{Context as _, Result, bail};
use jackfield_events::{
    EventBody, PromptCapabilities, RawJson, SessionEvent, SessionOpened, SessionSummary,
};
use jackfield_hub::{Seq, Time};
use jackfield_journal::{AppendRequest, CellAddress, CellConfig, Journal, StreamOwnership};
use jackfield_nats_access::NatsServers;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

/// At the same time, each of which waits for the servers most of the time.
const WRITERS: usize = 256;
/// Of each session.
const TRIES: usize = 5;
const STACK: usize = 256 * 1024;
/// A host that has gone.
const OWNER: &str = "seed/0123456789abcdef";

/// Writes so many, each opened in `cwd`.
pub(crate) fn sleepers(servers: Vec<String>, cwd: &str, count: u64) -> Result<()> {
    let cell = CellConfig { shards: SHARDS, replicas: SERVERS, ..CellConfig::default() };
    let servers = NatsServers::on_loopback(servers);
    let journal = Journal::connect(CellAddress { servers, cell, owner: Some(OWNER.to_owned()) })?;
    let owners = journal.stream_ownership().context("a fleet shares its journal")?;
    let next = AtomicU64::new(0);
    let write = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if count <= number {
                return Ok(());
            }
            // A machine that stands still for a moment may be longer away than a journal waits.
            let mut tries = 0;
            while let Err(error) = sleeper(&journal, &owners, number, cwd) {
                tries += 1;
                if TRIES <= tries {
                    bail!(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        let writer = || thread::Builder::new().stack_size(STACK).spawn_scoped(scope, write);
        let writers = (0..WRITERS).map(|_| writer()).collect::<Result<Vec<_>, _>>()?;
        writers.into_iter().try_for_each(|it| it.join().expect("a writer does not panic"))
    })
}

/// The name of one of them.
pub(crate) fn name(number: u64) -> String {
    format!("s-{number:08x}")
}

fn sleeper(journal: &Journal, owners: &StreamOwnership, number: u64, cwd: &str) -> Result<()> {
    let name = name(number);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let event =
        SessionEvent { seq: Seq(1), at: Time(u64::try_from(now.as_millis())?), body: opened(cwd) };
    let mut state = SessionSummary::default();
    state.fold(&event);
    let mut body = Vec::new();
    event.encode(&mut body);
    let epoch = journal.claim_stream(&name)?.epoch;
    let append = AppendRequest {
        stream: name.as_str().into(),
        epoch,
        first: 1,
        count: 1,
        body: body.into(),
        summary: Some(state.to_summary()),
    };
    journal.append_batch(&[append]).into_iter().try_for_each(|it| it.map(drop))?;
    Ok(owners.release_stream(&name, epoch)?)
}

/// What an agent with a few modes leaves.
fn opened(cwd: &str) -> EventBody {
    let params = serde_json::json!({ "cwd": cwd, "mcpServers": [] });
    let mode = |it: &str| serde_json::json!({ "id": it, "name": it, "description": it });
    let modes = ["ask", "code", "plan"].map(mode);
    let setup = serde_json::json!({ "modes": { "currentModeId": "ask", "availableModes": modes } });
    EventBody::Opened(SessionOpened {
        agent: "fake".into(),
        argv: vec!["fake-agent".into()],
        cwd: cwd.to_owned(),
        params: RawJson::trusted(params.to_string()),
        agent_session: "0123456789abcdef".into(),
        setup: RawJson::trusted(setup.to_string()),
        variant: None,
        fallback: None,
        sandbox: None,
        prompt_capabilities: PromptCapabilities::default(),
    })
}
