//! A file that says when this process was alive, and since when it had which session: whoever reads it can
//! tell whether two agents ever had the same one.

use std::{fs::File, io::Write as _, path::Path, process, thread, time::Duration};

use rustix::time::{ClockId, clock_gettime};

const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Witness {
    file: File,
}

impl Witness {
    /// From now on the file says that we live. Many processes may share it: a line is written in one go.
    pub(crate) fn start(path: &Path) -> Witness {
        let file = File::options().create(true).append(true).open(path);
        let file = file.expect("the witness takes lines");
        let mut witness = Witness { file: file.try_clone().expect("a second handle") };
        thread::spawn(move || {
            loop {
                witness.write("alive");
                thread::sleep(PAUSE);
            }
        });
        Witness { file }
    }

    pub(crate) fn has(&mut self, session: &str) {
        self.write(&format!("has {session}"));
    }

    fn write(&mut self, what: &str) {
        let now = clock_gettime(ClockId::Monotonic);
        let line =
            format!("{} {what} {}\n", process::id(), now.tv_sec * 1_000_000 + now.tv_nsec / 1_000);
        self.file.write_all(line.as_bytes()).expect("the witness takes lines");
    }
}
