//! A file that records when this process was alive and when it opened which session, so that a test can detect whether
//! two agents served one session at the same time.

use std::{fs::File, io::Write as _, path::Path, process, thread, time::Duration};

use rustix::time::{ClockId, clock_gettime};

const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct WitnessFile {
    file: File,
}

impl WitnessFile {
    /// Starts to record. Many processes may share the file, because each line is one write.
    pub(crate) fn start(path: &Path) -> WitnessFile {
        let file = File::options().create(true).append(true).open(path);
        let file = file.expect("the witness takes lines");
        let mut witness = WitnessFile { file: file.try_clone().expect("a second handle") };
        thread::spawn(move || {
            loop {
                witness.write("alive");
                thread::sleep(PAUSE);
            }
        });
        WitnessFile { file }
    }

    pub(crate) fn note_session(&mut self, session: &str) {
        self.write(&format!("has {session}"));
    }

    fn write(&mut self, what: &str) {
        let now = clock_gettime(ClockId::Monotonic);
        let line =
            format!("{} {what} {}\n", process::id(), now.tv_sec * 1_000_000 + now.tv_nsec / 1_000);
        self.file.write_all(line.as_bytes()).expect("the witness takes lines");
    }
}
