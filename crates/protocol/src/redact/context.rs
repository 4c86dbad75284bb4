//! What earlier words of a text say about the next ones, beyond the word directly before: the command
//! that a line runs, the entry of a `.netrc`, and a pair of `name` and `value`.

use super::{lead::Lead, names::Kind, value::is_placeholder};
use std::ops::Range;

/// A `value` belongs to a `name` at most so many words before it.
const PAIR_WORDS_MAX: u8 = 8;

#[derive(Debug, Default)]
pub(super) struct Context {
    command: Option<Command>,
    netrc: Netrc,
    /// A `name` whose value is a secret, and how many words may come before the value.
    pair: Option<(Kind, u8)>,
    /// The line goes on behind its end.
    continues: bool,
}

/// A program that takes a password in its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    /// `-u user:password`
    Curl,
    /// `-a user:password`
    Httpie,
    /// `-p password`, also as one word
    Sshpass,
    /// `-ppassword`
    Mysql,
    /// `-a password`
    Redis,
    /// `-w password`
    Ldap,
    /// `-P password`
    Zip,
    /// `-passin pass:password`
    Openssl,
    /// A client of a registry, which may go on with `login`
    Registry,
    /// `-p password`
    RegistryLogin,
}

/// Which part of an entry comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Netrc {
    #[default]
    Outside,
    Host,
    /// `login`, `account` or `password`; the last only if a login or a host was seen.
    Keyword {
        complete: bool,
    },
    User,
    Password,
}

impl Context {
    /// Takes the next word in; returns what it says about the word behind it.
    pub(super) fn read(&mut self, word: &str) -> Lead {
        self.continues = word == "\\";
        self.pair = self.pair.take().filter(|it| 0 < it.1).map(|it| (it.0, it.1 - 1));
        let bare = word.trim_matches(is_wrapping);
        if self.netrc != Netrc::Outside || matches!(bare, "machine" | "default") {
            self.netrc = self.netrc.next(bare);
            if self.netrc == Netrc::Password {
                return Lead::Whole;
            }
        }
        if let Some(command) = self.command
            && let Some(lead) = command.lead_of(bare)
        {
            return lead;
        }
        if self.command == Some(Command::Sshpass) && !bare.starts_with('-') {
            // The program that it runs has flags of its own.
            self.command = None;
        }
        self.command = Command::named(name_at_end(bare), self.command).or(self.command);
        Lead::Nothing
    }

    pub(super) fn end_line(&mut self) {
        if !self.continues {
            self.command = None;
        }
    }

    /// A password that stands in one word with its flag.
    pub(super) fn attached(&self, word: &str) -> Option<Range<usize>> {
        let flags: &[&str] = match self.command? {
            Command::Curl => &["--user=", "--proxy-user=", "-u", "-U"],
            Command::Httpie => &["--auth=", "-a"],
            Command::Sshpass | Command::Mysql => &["-p"],
            _ => return None,
        };
        let start = word.len() - word.trim_start_matches(is_wrapping).len();
        let flag = flags.iter().find(|it| word[start..].starts_with(**it))?;
        let from = start + flag.len();
        let value = word[from..].trim_end_matches(is_wrapping);
        let skipped = match self.command? {
            Command::Curl | Command::Httpie => value.find(':')? + 1,
            _ => 0,
        };
        let fits = skipped < value.len() && !is_placeholder(&value[skipped..]);
        fits.then(|| from + skipped..from + value.len())
    }

    pub(super) fn set_pair(&mut self, kind: Option<Kind>) {
        self.pair = kind.map(|it| (it, PAIR_WORDS_MAX));
    }

    /// What the value of the pair that was begun is.
    pub(super) fn pair(&self) -> Option<Kind> {
        self.pair.map(|it| it.0)
    }
}

impl Command {
    fn named(name: &str, before: Option<Command>) -> Option<Command> {
        Some(match name {
            "curl" => Command::Curl,
            "http" | "https" | "xh" => Command::Httpie,
            "sshpass" => Command::Sshpass,
            "mysql" | "mysqldump" | "mysqladmin" | "mysqlimport" | "mariadb" | "mariadb-dump" => {
                Command::Mysql
            }
            "redis-cli" => Command::Redis,
            "ldapsearch" | "ldapadd" | "ldapmodify" | "ldapdelete" | "ldapwhoami" => Command::Ldap,
            "zip" | "unzip" => Command::Zip,
            "openssl" => Command::Openssl,
            "docker" | "podman" | "nerdctl" | "skopeo" | "buildah" | "oras" | "helm" | "crane" => {
                Command::Registry
            }
            "login" if before == Some(Command::Registry) => Command::RegistryLogin,
            _ => return None,
        })
    }

    fn lead_of(self, flag: &str) -> Option<Lead> {
        match (self, flag) {
            (Command::Curl, "-u" | "-U" | "--user" | "--proxy-user")
            | (Command::Httpie, "-a" | "--auth")
            | (Command::Openssl, "-pass" | "-passin" | "-passout") => Some(Lead::BehindColon),
            (Command::Sshpass | Command::RegistryLogin, "-p")
            | (Command::Redis, "-a" | "--pass")
            | (Command::Ldap, "-w")
            | (Command::Zip, "-P") => Some(Lead::Whole),
            _ => None,
        }
    }
}

impl Netrc {
    fn next(self, word: &str) -> Netrc {
        match (self, word) {
            (Netrc::Outside | Netrc::Keyword { .. }, "machine") => Netrc::Host,
            (Netrc::Outside | Netrc::Keyword { .. }, "default") => {
                Netrc::Keyword { complete: false }
            }
            (Netrc::Host, _) if word == "localhost" || word.contains('.') => {
                Netrc::Keyword { complete: true }
            }
            (Netrc::Keyword { .. }, "login" | "account") => Netrc::User,
            (Netrc::Keyword { complete: true }, "password" | "passwd") => Netrc::Password,
            (Netrc::User | Netrc::Password, _) => Netrc::Keyword { complete: true },
            _ => Netrc::Outside,
        }
    }
}

/// What may stand around an argument in a list or a quote.
pub(super) fn is_wrapping(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | ',' | '[' | ']' | '(' | ')' | '{' | '}' | '\\' | '$' | ';')
}

/// The name of a program at the end of a word, without its directory.
fn name_at_end(word: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let from = word.rfind(|c| !is_name(c));
    from.map_or(word, |it| &word[it + word[it..].chars().next().map_or(1, char::len_utf8)..])
}
