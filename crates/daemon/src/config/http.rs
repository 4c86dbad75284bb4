//! `[http]`: the names that the web front answers to, the pages that may use it, its certificate, and
//! where its clients may put agents to work.

use jackfield_transport::TlsCertificate;
use jackfield_web::http::{HttpHost, WebOrigin};
use serde::{Deserialize, Deserializer, de::Error};
use std::{
    fmt::Display,
    path::{Path, PathBuf},
    str::FromStr,
};

/// `[http]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Beside `localhost` and the addresses of this machine.
    hosts: Vec<Written<HttpHost>>,
    /// Pages that may use it from a browser: `scheme://host[:port]`.
    origins: Vec<Written<WebOrigin>>,
    /// The certificate chain of `https://` addresses, as PEM; the server's own comes first.
    cert: Option<PathBuf>,
    /// Its private key, as PEM, closed to others.
    key: Option<PathBuf>,
    /// A request may put an agent to work in directories below these.
    pub roots: Vec<PathBuf>,
    /// Where the directories of projects are [default: `projects` in the state directory].
    pub projects: Option<PathBuf>,
    /// Where uploaded pictures are [default: `uploads` in the state directory].
    pub uploads: Option<PathBuf>,
}

impl HttpSettings {
    pub fn hosts(&self) -> Vec<HttpHost> {
        self.hosts.iter().map(|it| it.0.clone()).collect()
    }

    pub fn origins(&self) -> Vec<WebOrigin> {
        self.origins.iter().map(|it| it.0.clone()).collect()
    }

    pub fn certificate(&self) -> Option<TlsCertificate> {
        self.cert.clone().zip(self.key.clone()).map(|(chain, key)| TlsCertificate { chain, key })
    }

    /// Says what is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        let (there, missing) = match (&self.cert, &self.key) {
            (Some(_), None) => ("cert", "key"),
            (None, Some(_)) => ("key", "cert"),
            _ => return Ok(()),
        };
        Err(format!("[http] has a `{there}` and no `{missing}`: TLS needs both, as PEM files"))
    }

    /// A relative path is one beside the file it stands in.
    pub(super) fn resolve(&mut self, folder: &Path) {
        let files = self.cert.iter_mut().chain(&mut self.key);
        let dirs = self.roots.iter_mut().chain(&mut self.projects).chain(&mut self.uploads);
        for path in files.chain(dirs) {
            *path = folder.join(&path);
        }
    }
}

/// Something that is read from its text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written<T>(T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Written).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{load, parse};
    use std::{fs, path::Path};

    #[test]
    fn without_the_section_only_this_machine_is_known() {
        let http = parse("").unwrap().http;
        assert!(http.hosts().is_empty() && http.origins().is_empty());
        assert_eq!(http.certificate(), None);
    }

    #[test]
    fn names_and_pages_are_read_and_a_mistake_is_shown_with_its_line() {
        let text =
            "[http]\nhosts = [\"Build.example.org\"]\norigins = [\"https://a.example:443\"]\n";
        let http = parse(text).unwrap().http;
        assert_eq!(http.hosts()[0].to_string(), "build.example.org");
        assert_eq!(http.origins()[0].to_string(), "https://a.example");
        let mistakes = [
            ("hosts = [\"a.example:1\"]", "invalid host `a.example:1`"),
            ("hosts = [\"*\"]", "invalid host `*`"),
            ("origins = [\"*\"]", "invalid origin `*`"),
            ("origins = [\"https://a.example/\"]", "invalid origin"),
            ("hots = []", "unknown field `hots`"),
        ];
        for (line, said) in mistakes {
            let reason = parse(&format!("[http]\n{line}\n")).unwrap_err();
            assert!(reason.contains("line 2") && reason.contains(said), "{reason}");
        }
    }

    #[test]
    fn directories_are_found_beside_the_file_unless_they_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        fs::write(&file, "[http]\nroots = [\"work\", \"/srv\"]\nprojects = \"p\"\n").unwrap();
        let http = load(&file).unwrap().http;
        assert_eq!(http.roots, [dir.path().join("work"), "/srv".into()]);
        assert_eq!((http.projects, http.uploads), (Some(dir.path().join("p")), None));
    }

    #[test]
    fn a_certificate_has_a_key_and_is_found_beside_the_file() {
        let reason = parse("[http]\ncert = \"a.pem\"\n").unwrap_err();
        assert!(reason.contains("a `cert` and no `key`"), "{reason}");
        let reason = parse("[http]\nkey = \"a.pem\"\n").unwrap_err();
        assert!(reason.contains("a `key` and no `cert`"), "{reason}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        fs::write(&file, "[http]\ncert = \"tls/cert.pem\"\nkey = \"/etc/key.pem\"\n").unwrap();
        let found = load(&file).unwrap().http.certificate().unwrap();
        assert_eq!(found.chain, dir.path().join("tls/cert.pem"));
        assert_eq!(found.key, Path::new("/etc/key.pem"));
    }
}
