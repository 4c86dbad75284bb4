//! Sends one prompt after the other in every session of a crowd; each must end normally.

use super::{
    Member,
    crowd::{Asked, BOUND, Crowd, ended_well, facts},
};
use jackfield_e2e::wait_for;
use std::time::{Duration, Instant};

pub(crate) struct Shift {
    runs: Vec<Run>,
    longest: Duration,
}

/// The running turn of a session.
struct Run {
    /// The number of earlier turns.
    number: usize,
    asked: Asked,
    since: Instant,
}

impl Shift {
    pub(crate) fn begin(crowd: &mut Crowd) -> Shift {
        let runs = (0..crowd.talks.len()).map(|talk| Run::begin(crowd, talk, 0)).collect();
        Shift { runs, longest: Duration::ZERO }
    }

    /// Continues until the condition holds.
    pub(crate) fn work(&mut self, crowd: &mut Crowd, mut done: impl FnMut(&Shift) -> bool) {
        wait_for("the end of the work", BOUND, || {
            crowd.listen();
            for (talk, run) in self.runs.iter_mut().enumerate() {
                let Some(answer) = crowd.answer(run.asked) else { continue };
                assert!(ended_well(answer), "turn {} of session {talk}: {answer:?}", run.number);
                self.longest = self.longest.max(answer.0 - run.since);
                *run = Run::begin(crowd, talk, run.number + 1);
            }
            done(self).then_some(())
        });
    }

    /// Continues until each session has had this many more turns.
    pub(crate) fn turns(&mut self, crowd: &mut Crowd, more: usize) {
        let targets: Vec<usize> = self.runs.iter().map(|it| it.number + more).collect();
        let enough = |it: &Shift| it.runs.iter().zip(&targets).all(|(it, to)| *to <= it.number);
        self.work(crowd, enough);
    }

    /// The longest turn so far.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Waits for the last turns and checks that every prompt ran once. Returns the number of turns.
    pub(crate) fn end(self, crowd: &mut Crowd, gateways: &[Member; 2]) -> usize {
        let asked: Vec<Asked> = self.runs.iter().map(|it| it.asked).collect();
        assert!(crowd.answers(&asked, BOUND).iter().all(ended_well));
        let of = |(talk, run): (usize, &Run)| (0..=run.number).map(move |it| text(talk, it));
        let mut expected: Vec<String> = self.runs.iter().enumerate().flat_map(of).collect();
        expected.sort();
        assert_eq!(crowd.ran(), expected, "every prompt ran once");
        for (run, transcript) in self.runs.iter().zip(crowd.transcripts(gateways)) {
            let count = run.number + 1;
            let names = ["prompted", "ended"];
            assert_eq!(names.map(|it| facts(&transcript, it)), [count; 2], "{transcript:?}");
        }
        expected.len()
    }
}

impl Run {
    fn begin(crowd: &mut Crowd, talk: usize, number: usize) -> Run {
        let since = Instant::now();
        Run { number, asked: crowd.say(talk, &text(talk, number), false), since }
    }
}

fn text(talk: usize, number: usize) -> String {
    format!("turn {number} of {talk}\nslow 3 100")
}
