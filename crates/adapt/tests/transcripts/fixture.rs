//! One recording: what a program was started with, what it printed, how it ended.

use jackfield_agents::Exit;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Fixture {
    pub(crate) cli: String,
    pub(crate) case: String,
    pub(crate) stdout: Vec<u8>,
    pub(crate) exit: Exit,
    /// The prompt: the last argument, or the text that was fed.
    pub(crate) prompt: String,
}

impl Fixture {
    /// Every recording of a CLI that has something on stdout or stderr, by name.
    pub(crate) fn all(cli: &str) -> Vec<Fixture> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(cli);
        let versions = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
        let mut metas: Vec<PathBuf> = versions
            .flat_map(|version| fs::read_dir(version).unwrap())
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(".meta.json"))
            .collect();
        metas.sort();
        metas.iter().map(|meta| Fixture::read(cli, meta)).collect()
    }

    fn read(cli: &str, meta: &Path) -> Fixture {
        let name = meta.file_name().unwrap().to_str().unwrap();
        let case = name.strip_suffix(".meta.json").unwrap().to_owned();
        let told: Value = serde_json::from_slice(&fs::read(meta).unwrap()).unwrap();
        let beside = |kind: &str| fs::read(meta.with_file_name(format!("{case}.{kind}")));
        let stderr = beside("stderr").unwrap_or_default();
        let status = told["rc"].as_i64().and_then(|rc| i32::try_from(rc).ok());
        let exit = Exit {
            code: status.filter(|status| 0 <= *status),
            signal: status.filter(|status| *status < 0).map(i32::abs),
            stderr_tail: String::from_utf8_lossy(&stderr).into_owned(),
            ..Exit::default()
        };
        let last = told["cmd"].as_array().and_then(|cmd| cmd.last()?.as_str()).unwrap_or_default();
        let prompt = last.to_owned();
        let stdout = beside("stdout").unwrap_or_default();
        Fixture { cli: cli.to_owned(), case, stdout, exit, prompt }
    }

    /// Recordings in which somebody signalled the program.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.case.contains("SIG") || self.case.contains("interrupt")
    }
}
