//! What earlier words of a text say about the next ones, beyond the word directly before: the command
//! that a line runs, the entry of a `.netrc`, and a pair of `name` and `value`.

use super::{lead::PrecedingWord, names::NameKind, value::is_placeholder};
use std::ops::Range;

/// A `value` belongs to a `name` at most so many words before it.
const PAIR_WORDS_MAX: u8 = 8;

#[derive(Debug, Default)]
pub(super) struct LineContext {
    command: Option<PasswordProgram>,
    netrc: NetrcField,
    /// A `name` whose value is a secret, and how many words may come before the value.
    pair: Option<(NameKind, u8)>,
    /// The line goes on behind its end.
    continues: bool,
}

/// A program that takes a password in its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PasswordProgram {
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

/// The next field of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum NetrcField {
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

impl LineContext {
    /// Takes the next word in; returns what it says about the word behind it.
    pub(super) fn read(&mut self, word: &str) -> PrecedingWord {
        self.continues = word == "\\";
        self.pair = self.pair.take().filter(|it| 0 < it.1).map(|it| (it.0, it.1 - 1));
        let bare = word.trim_matches(is_wrapping);
        if self.netrc != NetrcField::Outside || matches!(bare, "machine" | "default") {
            self.netrc = self.netrc.next(bare);
            if self.netrc == NetrcField::Password {
                return PrecedingWord::Whole;
            }
        }
        if let Some(command) = self.command
            && let Some(lead) = command.lead_of(bare)
        {
            return lead;
        }
        if self.command == Some(PasswordProgram::Sshpass) && !bare.starts_with('-') {
            // The program that it runs has flags of its own.
            self.command = None;
        }
        self.command = PasswordProgram::named(name_at_end(bare), self.command).or(self.command);
        PrecedingWord::Nothing
    }

    pub(super) fn end_line(&mut self) {
        if !self.continues {
            self.command = None;
        }
    }

    /// A password that stands in one word with its flag.
    pub(super) fn attached(&self, word: &str) -> Option<Range<usize>> {
        let flags: &[&str] = match self.command? {
            PasswordProgram::Curl => &["--user=", "--proxy-user=", "-u", "-U"],
            PasswordProgram::Httpie => &["--auth=", "-a"],
            PasswordProgram::Sshpass | PasswordProgram::Mysql => &["-p"],
            _ => return None,
        };
        let start = word.len() - word.trim_start_matches(is_wrapping).len();
        let flag = flags.iter().find(|it| word[start..].starts_with(**it))?;
        let from = start + flag.len();
        let value = word[from..].trim_end_matches(is_wrapping);
        let skipped = match self.command? {
            PasswordProgram::Curl | PasswordProgram::Httpie => value.find(':')? + 1,
            _ => 0,
        };
        let fits = skipped < value.len() && !is_placeholder(&value[skipped..]);
        fits.then(|| from + skipped..from + value.len())
    }

    pub(super) fn set_pair(&mut self, kind: Option<NameKind>) {
        self.pair = kind.map(|it| (it, PAIR_WORDS_MAX));
    }

    /// What the value of the pair that was begun is.
    pub(super) fn pair(&self) -> Option<NameKind> {
        self.pair.map(|it| it.0)
    }
}

impl PasswordProgram {
    fn named(name: &str, before: Option<PasswordProgram>) -> Option<PasswordProgram> {
        Some(match name {
            "curl" => PasswordProgram::Curl,
            "http" | "https" | "xh" => PasswordProgram::Httpie,
            "sshpass" => PasswordProgram::Sshpass,
            "mysql" | "mysqldump" | "mysqladmin" | "mysqlimport" | "mariadb" | "mariadb-dump" => {
                PasswordProgram::Mysql
            }
            "redis-cli" => PasswordProgram::Redis,
            "ldapsearch" | "ldapadd" | "ldapmodify" | "ldapdelete" | "ldapwhoami" => {
                PasswordProgram::Ldap
            }
            "zip" | "unzip" => PasswordProgram::Zip,
            "openssl" => PasswordProgram::Openssl,
            "docker" | "podman" | "nerdctl" | "skopeo" | "buildah" | "oras" | "helm" | "crane" => {
                PasswordProgram::Registry
            }
            "login" if before == Some(PasswordProgram::Registry) => PasswordProgram::RegistryLogin,
            _ => return None,
        })
    }

    fn lead_of(self, flag: &str) -> Option<PrecedingWord> {
        match (self, flag) {
            (PasswordProgram::Curl, "-u" | "-U" | "--user" | "--proxy-user")
            | (PasswordProgram::Httpie, "-a" | "--auth")
            | (PasswordProgram::Openssl, "-pass" | "-passin" | "-passout") => {
                Some(PrecedingWord::BehindColon)
            }
            (PasswordProgram::Sshpass | PasswordProgram::RegistryLogin, "-p")
            | (PasswordProgram::Redis, "-a" | "--pass")
            | (PasswordProgram::Ldap, "-w")
            | (PasswordProgram::Zip, "-P") => Some(PrecedingWord::Whole),
            _ => None,
        }
    }
}

impl NetrcField {
    fn next(self, word: &str) -> NetrcField {
        match (self, word) {
            (NetrcField::Outside | NetrcField::Keyword { .. }, "machine") => NetrcField::Host,
            (NetrcField::Outside | NetrcField::Keyword { .. }, "default") => {
                NetrcField::Keyword { complete: false }
            }
            (NetrcField::Host, _) if word == "localhost" || word.contains('.') => {
                NetrcField::Keyword { complete: true }
            }
            (NetrcField::Keyword { .. }, "login" | "account") => NetrcField::User,
            (NetrcField::Keyword { complete: true }, "password" | "passwd") => NetrcField::Password,
            (NetrcField::User | NetrcField::Password, _) => NetrcField::Keyword { complete: true },
            _ => NetrcField::Outside,
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
