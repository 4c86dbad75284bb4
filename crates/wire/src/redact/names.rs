//! Names that say that their value is a secret.

/// What a name says about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `OPENAI_API_KEY`: a variable, and variables have values.
    Variable,
    /// `password`: its value may look like anything.
    Password,
    /// `token`, `apiKey`: words of programs too, so the value must look like a secret.
    Token,
    /// `Authorization`: a scheme, then the secret.
    Header,
    /// `Cookie`: the rest of the line.
    Cookie,
}

const NAME_BYTES_MAX: usize = 64;
const VARIABLES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
const PASSWORDS: [&str; 5] = ["password", "passwd", "passphrase", "secret", "pwd"];
const TOKENS: [&str; 10] = [
    "token",
    "apikey",
    "apitoken",
    "accesskey",
    "accesstoken",
    "authtoken",
    "secretkey",
    "privatekey",
    "credential",
    "credentials",
];
/// What makes a `key` one that opens something.
const KEYS: [&str; 11] = [
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "encryption",
    "signing",
    "account",
    "service",
    "shared",
    "master",
];

/// Whether the value of this member, flag or header is a secret.
pub fn is_secret_name(name: &str) -> bool {
    kind(name).is_some()
}

/// Whether the value of this variable of an environment is one. Wider than [`is_secret_name`]: there
/// are few variables, and nobody reads them for pleasure.
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    VARIABLES.iter().any(|it| name.contains(it))
}

pub(super) fn kind(name: &str) -> Option<Kind> {
    let name = name.trim_matches(['-', '_']);
    if name.len() < 3 || NAME_BYTES_MAX < name.len() {
        return None;
    }
    match name.to_ascii_lowercase().as_str() {
        "authorization" | "proxy-authorization" => return Some(Kind::Header),
        "cookie" | "set-cookie" => return Some(Kind::Cookie),
        _ => {}
    }
    let words = words(name);
    let last = words.last()?.as_str();
    let before = words.len().checked_sub(2).map(|it| words[it].as_str());
    let is_variable = !name.contains(|c: char| c.is_ascii_lowercase());
    let secret = PASSWORDS.contains(&last) || TOKENS.contains(&last);
    if is_variable && name.contains('_') {
        let keyed = matches!(last, "key" | "pass") || words.iter().any(|it| it == "secret");
        return (secret || keyed).then_some(Kind::Variable);
    }
    if PASSWORDS.contains(&last) {
        return Some(Kind::Password);
    }
    let key = last == "key" && before.is_some_and(|it| KEYS.contains(&it));
    (key || TOKENS.contains(&last)).then_some(Kind::Token)
}

/// `apiKey`, `API_KEY` and `x-api-key` in words, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        let begins = c.is_ascii_uppercase() && !before.is_ascii_uppercase();
        if matches!(c, '_' | '-' | '.') || begins {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric() {
            words.last_mut().expect("there is always one").push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.retain(|it| !it.is_empty());
    words
}

/// The name that ends here, without the quotes around it.
pub(super) fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches(['"', '\'', '`', '\\']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let from = text
        .rfind(|c| !is_name(c))
        .map_or(0, |it| it + text[it..].chars().next().map_or(0, char::len_utf8));
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_names_of_other_things() {
        for name in [
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASS",
            "SECRET_KEY_BASE",
            "GH_TOKEN",
            "apiKey",
            "api_key",
            "x-api-key",
            "--api-key",
            "token",
            "accessToken",
            "password",
            "clientSecret",
            "Authorization",
            "cookie",
            "private_key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "key",
            "KEY",
            "primary_key",
            "tokens",
            "max_tokens",
            "inputTokens",
            "TOKEN_COUNT",
            "tokenizer",
            "keyboard",
            "sessionKey",
            "toolCallId",
            "",
            "id",
            "publicKey",
            "monkey",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn the_name_before_a_sign_is_found_behind_its_quotes() {
        assert_eq!(name_before("{\\\"apiKey\\\""), "apiKey");
        assert_eq!(name_before("?x=1&api_key"), "api_key");
        assert_eq!(name_before("äapi"), "api");
        assert_eq!(name_before("\""), "");
    }
}
