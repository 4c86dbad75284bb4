//! Files of the session: through the client where it serves them, because it knows what is not saved
//! yet; else on disk. Inside the session's directories in both cases.

use super::Site;
use agent_client_protocol::v1::schema::{
    ReadTextFileRequest, ToolCallLocation, WriteTextFileRequest,
};
use jackfield_inside::{Place, ReadFile, RemoveFile, WriteFile};
use jackfield_wire::Fault;
use std::path::{Component, Path, PathBuf};

/// A path that a model named, found inside the session's directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Absolute, with the links that it was named with: the client knows it so.
    pub(super) path: PathBuf,
    /// Without links.
    pub(super) real: PathBuf,
    /// For people and for the model: relative to the working directory where it can be.
    pub(super) shown: String,
    pub(super) exists: bool,
    pub(super) is_dir: bool,
}

impl Target {
    /// Finds a path. Relative ones are below the working directory.
    pub(super) async fn find(name: &str, site: &Site) -> Result<Target, String> {
        let (name, dirs) = (name.to_owned(), site.dirs.clone());
        aside(move || look(&name, &dirs)).await
    }

    /// The same, of something that must be there.
    pub(super) async fn find_existing(name: &str, site: &Site) -> Result<Target, String> {
        let target = Target::find(name, site).await?;
        if target.exists { Ok(target) } else { Err(no_file(&target.shown)) }
    }

    /// The same, of a file that can be read or written as text.
    pub(super) async fn find_file(name: &str, site: &Site) -> Result<Target, String> {
        let target = Target::find(name, site).await?;
        if target.is_dir {
            let shown = &target.shown;
            return Err(format!("`{shown}` is a directory. Use `list` to see what is in it."));
        }
        Ok(target)
    }

    pub(super) fn location(&self, line: Option<u32>) -> ToolCallLocation {
        ToolCallLocation::new(self.path.clone()).line(line)
    }

    /// Lines of the file, or all of it.
    pub(super) async fn read(
        &self,
        site: &Site,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, String> {
        let text = if site.offers.read {
            let request = ReadTextFileRequest::new(site.session.clone(), self.path.clone());
            let request = request.line(line).limit(limit);
            let answer = site.client.send_request(request).block_task().await;
            answer.map_err(|error| format!("The client cannot read `{}`: {error}", self.shown))?
        } else {
            let (line, limit) = (line.map(u64::from), limit.map(u64::from));
            let request = ReadFile { path: self.path.clone(), line, limit };
            let dirs = site.dirs.clone();
            let read = aside(move || request.run(&dirs)).await;
            return self.check_text(read.map_err(|fault| sentence(&fault))?);
        };
        self.check_text(text.content)
    }

    /// The whole text; nothing if there is no such file yet.
    pub(super) async fn read_if_there(&self, site: &Site) -> Result<Option<String>, String> {
        let target = Target::find(&self.path.to_string_lossy(), site).await?;
        if target.exists { self.read(site, None, None).await.map(Some) } else { Ok(None) }
    }

    pub(super) async fn write(&self, site: &Site, text: &str) -> Result<(), String> {
        let (path, content) = (self.path.clone(), text.to_owned());
        if site.offers.write {
            let request = WriteTextFileRequest::new(site.session.clone(), path, content);
            let answer = site.client.send_request(request).block_task().await;
            let failed = |error| format!("The client cannot write `{}`: {error}", self.shown);
            return answer.map(|_| ()).map_err(failed);
        }
        let dirs = site.dirs.clone();
        let written = aside(move || WriteFile { path, content }.run(&dirs)).await;
        written.map_err(|fault| sentence(&fault))
    }

    /// The protocol has no way to have the client do it.
    pub(super) async fn remove(&self, site: &Site) -> Result<(), String> {
        let (path, dirs) = (self.path.clone(), site.dirs.clone());
        let removed = aside(move || RemoveFile { path }.run(&dirs)).await;
        removed.map_err(|fault| sentence(&fault))
    }

    fn check_text(&self, text: String) -> Result<String, String> {
        if text.contains('\0') {
            return Err(format!("`{}` is a binary file: it has bytes of zero.", self.shown));
        }
        Ok(text)
    }
}

/// Runs what waits for a disk where it may wait.
pub(super) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("nobody aborts it, and it does not panic")
}

/// How a path is shown: relative to the working directory where it can be.
pub(super) fn shown(path: &Path, dirs: &[PathBuf]) -> String {
    let home = dirs.first();
    let real = home.and_then(|it| std::fs::canonicalize(it).ok());
    let below = home.into_iter().chain(&real).find_map(|it| path.strip_prefix(it).ok());
    match below.unwrap_or(path) {
        it if it.as_os_str().is_empty() => ".".to_owned(),
        it => it.display().to_string(),
    }
}

pub(super) fn no_file(shown: &str) -> String {
    format!("There is no `{shown}`. Use `list` or `glob` to see what there is.")
}

fn look(name: &str, dirs: &[PathBuf]) -> Result<Target, String> {
    let name = name.trim();
    let name = Path::new(name.strip_prefix("file://").unwrap_or(name));
    let Some(home) = dirs.first() else {
        return Err("The session has no directory, so there are no files.".to_owned());
    };
    // Without `.` in it, as the client would write it.
    let path: PathBuf = home.join(name).components().collect();
    let place = Place::find(&path, dirs).map_err(|fault| sentence(&fault))?;
    let real = place.missing.iter().fold(place.path(), |it, name| it.join(name));
    let goes_up = path.components().any(|it| it == Component::ParentDir);
    let path = if goes_up { real.clone() } else { path };
    let shown = shown(&path, dirs);
    Ok(Target { exists: place.missing.is_empty(), is_dir: real.is_dir(), path, real, shown })
}

fn sentence(fault: &Fault) -> String {
    match fault {
        Fault::InvalidParams { why } | Fault::Internal { why } => format!("{why}."),
        Fault::FileNotFound { path } => no_file(path),
        fault => format!("{fault}."),
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::{Offers, files::Target, world::in_world};
    use std::fs;

    const FILES: Offers = Offers { read: true, write: true, terminal: false };

    #[tokio::test]
    async fn a_path_outside_is_refused_whoever_serves_the_files() {
        for offers in [Offers::default(), FILES] {
            in_world(offers, async |world| {
                let outside = tempfile::tempdir().unwrap();
                let link = world.at("out");
                std::os::unix::fs::symlink(outside.path(), &link).unwrap();
                for name in ["../x", "out/x", "/etc/passwd", "a/../../x"] {
                    let why = Target::find(name, &world.site).await.unwrap_err();
                    let says_so = why.contains("outside the session's directories");
                    assert!(says_so || why.contains("goes up"), "{name}: {why}");
                }
                assert!(world.client.heard().is_empty());
            })
            .await;
        }
    }

    #[tokio::test]
    async fn a_path_is_shown_as_the_model_would_write_it() {
        in_world(Offers::default(), async |world| {
            fs::create_dir(world.at("a")).unwrap();
            fs::write(world.at("a/b"), "text").unwrap();
            let whole = world.at("a/b").to_string_lossy().into_owned();
            for name in ["a/b", "./a/b", "a/../a/b", &whole, &format!("file://{whole}")] {
                let target = Target::find(name, &world.site).await.unwrap();
                assert_eq!((target.shown.as_str(), target.exists), ("a/b", true), "{name}");
            }
            assert_eq!(Target::find(".", &world.site).await.unwrap().shown, ".");
            assert!(!Target::find("a/c/d", &world.site).await.unwrap().exists);
        })
        .await;
    }

    #[tokio::test]
    async fn the_client_is_asked_for_what_it_offers_and_for_nothing_else() {
        for (offers, heard) in [
            (Offers::default(), vec![]),
            (Offers { read: true, ..Offers::default() }, vec!["read a"]),
            (Offers { write: true, ..Offers::default() }, vec!["write a"]),
            (FILES, vec!["write a", "read a"]),
        ] {
            in_world(offers, async |world| {
                let target = Target::find("a", &world.site).await.unwrap();
                target.write(&world.site, "text\n").await.unwrap();
                assert_eq!(target.read(&world.site, None, None).await.unwrap(), "text\n");
                assert_eq!(fs::read_to_string(world.at("a")).unwrap(), "text\n");
                assert_eq!(world.client.heard(), heard);
            })
            .await;
        }
    }
}
