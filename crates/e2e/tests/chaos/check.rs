//! After the last stop: nothing lives, no daemon asserted, and the journal, the clients and the agents
//! tell the same story.

use super::{
    story::{self, Story},
    world::World,
};
use jackfield_e2e::wait_for;
use jackfield_journal::{DurabilityLevel, Journal};
use serde_json::Value;
use std::{collections::BTreeMap, fs, time::Duration};

/// Checks everything that can be checked when all is over; what the logs contain.
pub(super) fn check(world: &World) -> BTreeMap<String, u64> {
    let home = &world.home;
    let bound = Duration::from_secs(20);
    wait_for("every process to be gone", bound, || home.alive(&[]).is_empty().then_some(()));
    check_daemons(world);
    let mut ran: BTreeMap<String, String> = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    for (session, log) in logs(world) {
        let story = Story::of(&log);
        for wrong in &story.wrong {
            world.fault(format!("{session}: {wrong}"));
        }
        for seq in world.ear.unlike(&session, &log) {
            world.fault(format!("{session}: {seq} was heard otherwise, or is not in the log"));
        }
        for (token, how) in story.ran {
            if ran.insert(token.clone(), how).is_some() {
                world.fault(format!("{token} ran in two sessions"));
            }
        }
        for (kind, count) in story.kinds {
            *kinds.entry(kind).or_default() += count;
        }
    }
    check_answers(world, &ran);
    check_agents(world, &ran);
    kinds
}

/// A failed assertion leaves a dump and a word on stderr.
pub(super) fn check_daemons(world: &World) {
    let said = world.home.said();
    for line in said.lines().filter(|it| it.contains("panicked") || it.contains("assertion")) {
        world.fault(format!("a daemon failed: {line}"));
    }
    let state = fs::read_dir(world.home.path().join("state")).into_iter().flatten().flatten();
    for file in state.filter(|it| it.file_name().to_string_lossy().starts_with("crash-")) {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        let last: Vec<&str> = text.lines().rev().take(20).collect();
        world.fault(format!("a daemon left a dump; its last inputs, newest first: {last:#?}"));
    }
}

/// Every session's events, read back from the file; a record with a wrong checksum is an error.
fn logs(world: &World) -> Vec<(String, Vec<Value>)> {
    let path = world.home.path().join("state/journal.db");
    let journal = Journal::open(&path, DurabilityLevel::Process).unwrap();
    let mut logs = Vec::new();
    for stream in journal.list_streams().unwrap() {
        let mut log = Vec::new();
        loop {
            let after = log.len() as u64;
            let events = journal.read_events(&stream.name, after, 10_000, 16 << 20).unwrap();
            if events.is_empty() {
                break;
            }
            for event in events {
                if event.seq != log.len() as u64 + 1 {
                    world.fault(format!("{}: {} follows {}", stream.name, event.seq, log.len()));
                }
                log.push(serde_json::from_slice(&event.line).unwrap());
            }
        }
        if log.len() as u64 != stream.head {
            world.fault(format!("{}: {} of {} events", stream.name, log.len(), stream.head));
        }
        logs.push((stream.name.to_string(), log));
    }
    logs
}

/// What a client was told about its prompt stands in the log.
fn check_answers(world: &World, ran: &BTreeMap<String, String>) {
    for (token, outcome) in world.outcomes() {
        let Ok(reason) = outcome else { continue };
        let how = ran.get(&token).map(String::as_str);
        // One that was cancelled before its turn never ran.
        if how != Some("stopped") && !(reason == "cancelled" && how.is_none()) {
            world.fault(format!("{token} was answered `{reason}`, and its turn {how:?}"));
        }
    }
}

/// No agent was given a prompt twice, or one that the log does not have.
fn check_agents(world: &World, ran: &BTreeMap<String, String>) {
    let mut given: BTreeMap<String, u64> = BTreeMap::new();
    for number in 0..world.plan.sessions {
        for file in fs::read_dir(world.agent_state(number)).into_iter().flatten().flatten() {
            let text = fs::read_to_string(file.path()).unwrap();
            let lines = text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
            let prompts = lines.filter_map(|it| story::token(it["user"].as_str()?));
            prompts.for_each(|it| *given.entry(it).or_default() += 1);
        }
    }
    for (token, times) in given {
        if times != 1 || !ran.contains_key(&token) {
            let how = ran.get(&token);
            world.fault(format!("an agent was given {token} {times} times; its turn {how:?}"));
        }
    }
}
