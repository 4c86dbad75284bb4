//! One fault after the other, each of a random host at a random moment: no session has two agents, no prompt runs twice,
//! each has one outcome, and all gateways deliver the same events.
//!
//! One seed decides the faults and their hosts: `FLEET_SEED`, `FLEET_ROUNDS`.

use super::{
    crowd::{BOUND, Crowd, ended_well, facts},
    site::{NAMES, Site, Trouble, gaps},
};
use jackfield_test_support::rng::Rng;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

const SESSIONS: usize = 9;

const TROUBLES: [Trouble; 8] = [
    Trouble::Killed,
    Trouble::ServerKilled,
    Trouble::Deaf,
    Trouble::Ended,
    Trouble::Still,
    Trouble::WithTheLeader,
    Trouble::Cut,
    Trouble::ServerCut,
];

#[test]
#[ignore = "nightly: minutes; each kind of fault has a test of its own"]
#[expect(clippy::print_stderr, reason = "the events, for manual runs")]
fn repeated_faults_interrupt_only_running_turns() {
    let number = |name: &str, usual| env::var(name).map_or(usual, |it| it.parse().unwrap());
    let (seed, rounds) = (number("FLEET_SEED", 1), number("FLEET_ROUNDS", 3));
    let Some(mut site) = Site::new() else { return };
    let mut dice = Rng::new(seed);
    let witness = site.witness();
    let flags = ["--witness", witness.to_str().unwrap(), "--ignore-term", "--ignore-eof"];
    let mut crowd = Crowd::open(&site.gateways, SESSIONS, &flags);
    let (mut done, mut torn) = (Vec::new(), 0);
    for round in 0..rounds {
        let (trouble, host) = (dice.pick(&TROUBLES), dice.index(NAMES.len()));
        let during = |it| format!("during {round} of {it}\nslow 20 100");
        let asked = crowd.say_all(during, false);
        // The fault comes at any moment of the turn.
        std::thread::sleep(Duration::from_millis(dice.below(1500)));
        let since = Instant::now();
        site.befall(trouble, host);
        let after = |it| format!("after {round} of {it}");
        let again = crowd.say_all(after, true);
        for (talk, answer) in crowd.answers(&again, BOUND).iter().enumerate() {
            assert!(ended_well(answer), "round {round}, {trouble:?} of {host}: {answer:?}");
            done.push(after(talk));
        }
        let took = since.elapsed();
        for (talk, answer) in crowd.answers(&asked, BOUND).iter().enumerate() {
            if ended_well(answer) {
                done.push(during(talk));
            } else {
                torn += 1;
                let code = &answer.1["error"]["data"]["jackfield"]["code"];
                // A host that is asked to stop cancels running turns.
                let cancelled = answer.1["result"]["stopReason"] == "cancelled";
                let fits = code == "interrupted" || cancelled && trouble == Trouble::Ended;
                assert!(fits, "round {round}, {trouble:?} of {host}: {answer:?}");
            }
        }
        site.heal();
        eprintln!("round {round}: {trouble:?} of {host}; all sessions answered after {took:?}");
    }
    check(&mut crowd, &site, usize::try_from(rounds).unwrap(), &done);
    let moves = gaps(&witness).len();
    eprintln!(
        "seed {seed}: {} turns ended well, {torn} were interrupted; {moves} times a session got another agent",
        done.len()
    );
    drop(crowd);
    site.stop();
}

fn check(crowd: &mut Crowd, site: &Site, rounds: usize, done: &[String]) {
    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    for it in crowd.ran() {
        *ran.entry(it).or_default() += 1;
    }
    let twice: Vec<_> = ran.iter().filter(|it| 1 < *it.1).collect();
    assert!(twice.is_empty(), "ran twice: {twice:?}");
    let never: Vec<_> = done.iter().filter(|it| !ran.contains_key(*it)).collect();
    assert!(never.is_empty(), "answered and never ran: {never:?}");
    for transcript in crowd.transcripts(&site.gateways) {
        let counts = ["prompted", "ended"].map(|it| facts(&transcript, it));
        let shown = |it: &Value| it["params"].to_string();
        let story: Vec<_> = transcript.iter().map(shown).collect();
        assert_eq!(counts, [2 * rounds; 2], "{story:#?}");
    }
}
