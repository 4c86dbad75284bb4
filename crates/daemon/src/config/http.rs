//! `[http]`: host names and origins of the web server, its certificate, and the directories in
//! which its clients may start agents.

use jackfield_policy::ApprovalMode;
use jackfield_transport::TlsCertificate;
use jackfield_web::{
    http::{HttpHost, WebOrigin},
    rest::ClientProfile,
};
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
    /// In addition to `localhost` and the addresses of this machine.
    hosts: Vec<ParsedString<HttpHost>>,
    /// Origins that may use it from a browser: `scheme://host[:port]`.
    origins: Vec<ParsedString<WebOrigin>>,
    /// The certificate chain of `https://` addresses, as PEM; the server's own certificate comes
    /// first.
    cert: Option<PathBuf>,
    /// Its private key, as PEM, which only the owner may read.
    key: Option<PathBuf>,
    /// Unencrypted addresses may be reachable from other machines.
    pub insecure: bool,
    /// Requests may start agents in directories below these.
    pub roots: Vec<PathBuf>,
    /// The directory of projects [default: `projects` in the state directory].
    pub projects: Option<PathBuf>,
    /// The directory of uploaded images [default: `uploads` in the state directory].
    pub uploads: Option<PathBuf>,
    /// The clients that requests are expected from.
    pub profile: ClientProfile,
    /// How permission requests of runs are answered whose request has no `approve` [default: that of the
    /// profile]: `ask` leaves them to a person, `all` allows them, `reads` allows tools that change nothing,
    /// `none` denies them.
    pub approve: Option<ApprovalMode>,
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

    /// Returns what is invalid.
    pub(super) fn check(&self) -> Result<(), String> {
        let (present, missing) = match (&self.cert, &self.key) {
            (Some(_), None) => ("cert", "key"),
            (None, Some(_)) => ("key", "cert"),
            _ => return Ok(()),
        };
        Err(format!("[http] has a `{present}` and no `{missing}`: TLS needs both, as PEM files"))
    }

    /// Relative paths are relative to the file.
    pub(super) fn resolve(&mut self, folder: &Path) {
        let files = self.cert.iter_mut().chain(&mut self.key);
        let dirs = self.roots.iter_mut().chain(&mut self.projects).chain(&mut self.uploads);
        for path in files.chain(dirs) {
            *path = folder.join(&path);
        }
    }
}

/// A value that is parsed from a string.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParsedString<T>(T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for ParsedString<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ParsedString<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(ParsedString).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{load, parse};
    use jackfield_policy::ApprovalMode;
    use std::{fs, path::Path};

    #[test]
    fn without_the_section_no_hosts_and_origins_are_set() {
        let http = parse("").unwrap().http;
        assert!(http.hosts().is_empty() && http.origins().is_empty());
        assert_eq!((http.certificate(), http.insecure), (None, false));
        assert!(parse("[http]\ninsecure = true\n").unwrap().http.insecure);
    }

    #[test]
    fn hosts_and_origins_are_read_and_mistakes_have_a_line() {
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
            ("hots = []", "unknown key `hots`"),
            ("profile = \"other\"", "`open-design`"),
        ];
        for (line, expected) in mistakes {
            let reason = parse(&format!("[http]\n{line}\n")).unwrap_err();
            assert!(reason.contains("line 2") && reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn relative_directories_are_relative_to_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        fs::write(&file, "[http]\nroots = [\"work\", \"/srv\"]\nprojects = \"p\"\n").unwrap();
        let http = load(&file).unwrap().http;
        assert_eq!(http.roots, [dir.path().join("work"), "/srv".into()]);
        assert_eq!((http.projects, http.uploads), (Some(dir.path().join("p")), None));
    }

    #[test]
    fn permission_requests_are_left_to_a_person_unless_configured() {
        assert_eq!(parse("").unwrap().http.approve, None);
        let approve = parse("[http]\napprove = \"all\"\n").unwrap().http.approve;
        assert_eq!(approve, Some(ApprovalMode::All));
        let reason = parse("[http]\napprove = \"some\"\n").unwrap_err();
        assert!(reason.contains("line 2") && reason.contains("`reads`"), "{reason}");
    }

    #[test]
    fn certificate_needs_a_key_and_is_relative_to_the_file() {
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
