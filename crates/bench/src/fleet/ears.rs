//! Clients of one daemon, each on a thread of its own, and the sessions that they have opened there.

use crate::{
    talk::{prompt, start},
    way::{Bench, Line, Way},
};
use anyhow::{Result, ensure};
use std::thread;

/// As many as a few people have windows open: one connection alone would be the narrowest place.
const CLIENTS: u64 = 8;

pub(crate) struct Ears {
    ears: Vec<Ear>,
}

struct Ear {
    line: Line,
    sessions: Vec<String>,
}

impl Ears {
    /// Opens so many sessions, each with a fake agent of its own.
    pub(crate) fn open(daemon: &Bench, sessions: u64) -> Result<Ears> {
        let clients = CLIENTS.min(sessions);
        let share = |client| sessions / clients + u64::from(client < sessions % clients);
        let open = |count| -> Result<Ear> {
            let mut line = daemon.connect(Way::Unix)?;
            line.talk.initialize()?;
            let cwd = daemon.dir.path().to_string_lossy().into_owned();
            let sessions = (0..count).map(|_| line.talk.open(&cwd)).collect::<Result<_>>()?;
            Ok(Ear { line, sessions })
        };
        let ears: Result<_> = thread::scope(|scope| {
            let opening: Vec<_> =
                (0..clients).map(|client| scope.spawn(move || open(share(client)))).collect();
            opening.into_iter().map(|it| it.join().expect("a client does not panic")).collect()
        });
        Ok(Ears { ears: ears? })
    }

    /// Says this in every session and listens until each has answered. Each client shows every other line to
    /// `take`, with something of its own that is returned.
    pub(crate) fn prompt<T: Default + Send>(
        &mut self,
        text: &str,
        take: impl Fn(&mut T, &[u8]) + Sync,
    ) -> Result<Vec<T>> {
        let take = &take;
        thread::scope(|scope| {
            let listening: Vec<_> = self
                .ears
                .iter_mut()
                .map(|ear| scope.spawn(move || ear.prompt(text, take)))
                .collect();
            listening.into_iter().map(|it| it.join().expect("a client does not panic")).collect()
        })
    }

    /// The same where lines are only counted.
    pub(crate) fn count(&mut self, text: &str) -> Result<u64> {
        Ok(self.prompt(text, |count: &mut u64, _| *count += 1)?.iter().sum())
    }
}

impl Ear {
    fn prompt<T: Default>(&mut self, text: &str, take: impl Fn(&mut T, &[u8])) -> Result<T> {
        let talk = &mut self.line.talk;
        for session in &self.sessions {
            talk.send("session/prompt", &prompt(session, text))?;
        }
        let (mut open, mut taken) = (self.sessions.len(), T::default());
        while 0 < open {
            let line = talk.line()?;
            if memchr::memmem::find(start(line), b"\"id\":").is_none() {
                take(&mut taken, line);
                continue;
            }
            let ended = memchr::memmem::find(line, b"stopReason").is_some();
            ensure!(ended, "a prompt failed: {}", String::from_utf8_lossy(line));
            open -= 1;
        }
        Ok(taken)
    }
}
