//! One recording: the arguments, the output and the exit of a program.

use jackfield_agents::AgentExit;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Recording {
    pub(crate) cli: String,
    pub(crate) case: String,
    pub(crate) stdout: Vec<u8>,
    pub(crate) exit: AgentExit,
    /// The prompt, which is the last argument.
    pub(crate) prompt: String,
}

impl Recording {
    /// All recordings of a CLI, ordered by path.
    pub(crate) fn all(cli: &str) -> Vec<Recording> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(cli);
        let versions = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
        let mut metas: Vec<PathBuf> = versions
            .flat_map(|version| fs::read_dir(version).unwrap())
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(".meta.json"))
            .collect();
        metas.sort();
        metas.iter().map(|meta| Recording::read(cli, meta)).collect()
    }

    fn read(cli: &str, meta: &Path) -> Recording {
        let name = meta.file_name().unwrap().to_str().unwrap();
        let case = name.strip_suffix(".meta.json").unwrap().to_owned();
        let metadata: Value = serde_json::from_slice(&fs::read(meta).unwrap()).unwrap();
        let read_output = |kind: &str| fs::read(meta.with_file_name(format!("{case}.{kind}")));
        let stderr = read_output("stderr").unwrap_or_default();
        let status = metadata["rc"].as_i64().and_then(|rc| i32::try_from(rc).ok());
        let exit = AgentExit {
            code: status.filter(|status| 0 <= *status),
            signal: status.filter(|status| *status < 0).map(i32::abs),
            stderr_tail: String::from_utf8_lossy(&stderr).into_owned(),
            ..AgentExit::default()
        };
        let last =
            metadata["cmd"].as_array().and_then(|cmd| cmd.last()?.as_str()).unwrap_or_default();
        let prompt = last.to_owned();
        let stdout = read_output("stdout").unwrap_or_default();
        Recording { cli: cli.to_owned(), case, stdout, exit, prompt }
    }

    /// Whether the program was interrupted during the recording.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.case.contains("SIG") || self.case.contains("interrupt")
    }
}
