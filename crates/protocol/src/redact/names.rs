//! Names that say that their value is a secret.

/// What a name means for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
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
    /// `auth`: a user and a password in base64, or nothing secret.
    Encoded,
}

const NAME_BYTES_MAX: usize = 64;
/// Names that are not made of the words below.
const WHOLE_NAMES: [(&str, NameKind); 7] = [
    ("authorization", NameKind::Header),
    ("proxy-authorization", NameKind::Header),
    ("cookie", NameKind::Cookie),
    ("set-cookie", NameKind::Cookie),
    ("client-key-data", NameKind::Token),
    ("secret_key_base", NameKind::Token),
    ("auth", NameKind::Encoded),
];
const VARIABLES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
const PASSWORDS: [&str; 5] = ["password", "passwd", "passphrase", "secret", "pwd"];
/// What variables end with besides.
const VARIABLES_ONLY: [&str; 7] = ["key", "pass", "pat", "psk", "jwt", "keypass", "storepass"];
/// Words that are also written without a sign before them, as in `PGPASSWORD` and `identitytoken`.
const ENDINGS: [&str; 4] = ["password", "passwd", "passphrase", "passcode"];
const TOKEN_ENDINGS: [&str; 10] = [
    "apikey",
    "authtoken",
    "accesstoken",
    "identitytoken",
    "registrytoken",
    "refreshtoken",
    "sessiontoken",
    "accesskey",
    "secretkey",
    "secretkeybase",
];
/// Parameters of a URL that sign it.
const SIGNATURES: [&str; 4] = ["sig", "signature", "x-amz-signature", "x-goog-signature"];
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
const KEYS: [&str; 23] = [
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
    "subscription",
    "storage",
    "application",
    "app",
    "functions",
    "deploy",
    "admin",
    "integration",
    "routing",
    "hmac",
    "jwt",
    "decryption",
];

/// Whether the value of this member, flag or header is a secret, whatever it looks like.
pub fn is_secret_name(name: &str) -> bool {
    kind(name).is_some_and(|it| it != NameKind::Encoded)
}

/// Whether a parameter of a URL with this name is a signature that grants access.
pub(super) fn is_signature(name: &str) -> bool {
    SIGNATURES.iter().any(|it| name.eq_ignore_ascii_case(it))
}

/// Whether the value of this variable of an environment is one. Wider than [`is_secret_name`]: an
/// environment is small, and a hidden value of it is rarely missed.
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    VARIABLES.iter().any(|it| name.contains(it))
}

pub(super) fn kind(name: &str) -> Option<NameKind> {
    let name = name.trim_matches(['-', '_']);
    if name.len() < 3 || NAME_BYTES_MAX < name.len() {
        return None;
    }
    if let Some((_, kind)) = WHOLE_NAMES.iter().find(|it| name.eq_ignore_ascii_case(it.0)) {
        return Some(*kind);
    }
    let parts = NameParts::of(name);
    let is_in = |list: &[&str]| list.iter().any(|it| parts.last.eq_ignore_ascii_case(it));
    let ends_in = |list: &[&str]| list.iter().any(|it| ends_with(parts.last, it));
    let password = is_in(&PASSWORDS) || ends_in(&ENDINGS);
    let token = is_in(&TOKENS) || ends_in(&TOKEN_ENDINGS);
    let is_variable = !name.contains(|c: char| c.is_ascii_lowercase());
    if is_variable && name.contains('_') {
        let keyed = parts.has_secret || is_in(&VARIABLES_ONLY);
        return (password || token || keyed).then_some(NameKind::Variable);
    }
    if password {
        return Some(NameKind::Password);
    }
    let opens = |it: &&str| parts.before.eq_ignore_ascii_case(it);
    let key = parts.last.eq_ignore_ascii_case("key") && KEYS.iter().any(opens);
    (key || token).then_some(NameKind::Token)
}

/// The last words of a name: `apiKey`, `API_KEY` and `x-api-key` have the same.
struct NameParts<'a> {
    before: &'a str,
    last: &'a str,
    has_secret: bool,
}

impl NameParts<'_> {
    fn of(name: &str) -> NameParts<'_> {
        let mut parts = NameParts { before: "", last: "", has_secret: false };
        let bytes = name.as_bytes();
        let mut from = 0;
        for at in 0..=bytes.len() {
            let ends = match bytes.get(at) {
                None => true,
                Some(byte) if !byte.is_ascii_alphanumeric() => name.is_char_boundary(at),
                Some(byte) => {
                    byte.is_ascii_uppercase() && 0 < at && !bytes[at - 1].is_ascii_uppercase()
                }
            };
            if !ends {
                continue;
            }
            let word = name[from..at].trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            if !word.is_empty() {
                parts.before = std::mem::replace(&mut parts.last, word);
                parts.has_secret |= word.eq_ignore_ascii_case("secret");
            }
            from = at;
        }
        parts
    }
}

fn ends_with(word: &str, ending: &str) -> bool {
    let from = word.len().checked_sub(ending.len());
    from.and_then(|it| word.get(it..)).is_some_and(|it| it.eq_ignore_ascii_case(ending))
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
            "PGPASSWORD",
            "identitytoken",
            "client-key-data",
            "secret_key_base",
            "Ocp-Apim-Subscription-Key",
            "GH_PAT",
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
            "auth",
            "sig",
            "PATH",
            "FILE_PATH",
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
