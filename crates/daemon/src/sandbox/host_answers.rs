//! Answers of the user about hosts that apply until they are removed, by sandbox profile. The daemon adds them, and the
//! user removes them with a command.

use jackfield_events::Time;
use jackfield_private_files as private_files;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// One answer. It applies to processes in sandboxes of this profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredHostAnswer {
    pub profile: String,
    /// In the canonical form of the network proxy.
    pub host: String,
    pub port: u16,
    pub allowed: bool,
    /// The session in which the user answered.
    pub session: String,
    pub at: Time,
}

impl StoredHostAnswer {
    pub fn is_about(&self, profile: &str, host: &str, port: u16) -> bool {
        self.profile == profile && self.host == host && self.port == port
    }
}

/// The file with the answers.
#[derive(Debug)]
pub struct HostAnswers {
    file: PathBuf,
}

impl HostAnswers {
    pub fn new(file: PathBuf) -> HostAnswers {
        HostAnswers { file }
    }

    /// All answers, ordered by profile, host and port.
    pub fn list(&self) -> io::Result<Vec<StoredHostAnswer>> {
        match fs::read(&self.file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|it| damaged(&self.file, &it)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => {
                let message = format!("cannot read `{}`: {error}", self.file.display());
                Err(io::Error::new(error.kind(), message))
            }
        }
    }

    /// Whether connections to a host are allowed, if the user has answered it.
    pub(super) fn find(&self, profile: &str, host: &str, port: u16) -> io::Result<Option<bool>> {
        let answers = self.list()?;
        let found = answers.iter().find(|it| it.is_about(profile, host, port));
        Ok(found.map(|it| it.allowed))
    }

    /// Stores an answer. It replaces the one about the same host.
    pub(super) fn add(&self, answer: StoredHostAnswer) -> io::Result<()> {
        self.change(|answers| {
            answers.retain(|it| !it.is_about(&answer.profile, &answer.host, answer.port));
            answers.push(answer);
            let key = |it: &StoredHostAnswer| (it.profile.clone(), it.host.clone(), it.port);
            answers.sort_by_key(key);
        })
    }

    /// Removes the answers that `is_removed` selects, and returns them.
    pub fn remove(
        &self,
        is_removed: impl Fn(&StoredHostAnswer) -> bool,
    ) -> io::Result<Vec<StoredHostAnswer>> {
        self.change(|answers| answers.extract_if(.., |it| is_removed(it)).collect())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<StoredHostAnswer>) -> T) -> io::Result<T> {
        let _lock = private_files::lock_file(&self.file)?;
        let mut answers = self.list()?;
        let result = change(&mut answers);
        let text = serde_json::to_vec_pretty(&answers).expect("answers are JSON");
        private_files::replace_file(&self.file, &text)?;
        Ok(result)
    }
}

fn damaged(file: &Path, error: &serde_json::Error) -> io::Error {
    let message = format!("`{}` is damaged, remove it: {error}", file.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(profile: &str, host: &str, allowed: bool) -> StoredHostAnswer {
        let (profile, host) = (profile.to_owned(), host.to_owned());
        StoredHostAnswer { profile, host, port: 443, allowed, session: "s".to_owned(), at: Time(1) }
    }

    #[test]
    fn answer_is_found_for_its_profile_until_it_is_replaced_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let answers = HostAnswers::new(folder.path().join("state/hosts.json"));
        let find = |profile: &str, port: u16| answers.find(profile, "a.example", port).unwrap();
        assert_eq!(find("workspace", 443), None);
        answers.add(answer("workspace", "b.example", true)).unwrap();
        answers.add(answer("workspace", "a.example", true)).unwrap();
        assert_eq!(find("workspace", 443), Some(true));
        assert_eq!((find("workspace", 80), find("read-only", 443)), (None, None));
        answers.add(answer("workspace", "a.example", false)).unwrap();
        assert_eq!(find("workspace", 443), Some(false));
        let hosts: Vec<String> = answers.list().unwrap().into_iter().map(|it| it.host).collect();
        assert_eq!(hosts, ["a.example", "b.example"]);
        let removed = answers.remove(|it| it.host == "a.example").unwrap();
        assert_eq!(removed, [answer("workspace", "a.example", false)]);
        assert_eq!(find("workspace", 443), None);
    }

    #[test]
    fn damaged_file_is_an_error_and_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts.json");
        fs::write(&file, "[{").unwrap();
        let answers = HostAnswers::new(file.clone());
        let error = answers.add(answer("workspace", "a.example", true)).unwrap_err();
        assert!(error.to_string().contains("is damaged, remove it"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "[{");
    }
}
