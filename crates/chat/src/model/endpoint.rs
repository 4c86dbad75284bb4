//! Where the server is: the addresses made of the base URL, and the header that carries the key.

use super::{secrets::Secrets, trouble::Trouble};
use crate::Settings;
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
};

/// Some set it as it stands in a `curl` of the documentation.
const CHAT: &str = "/chat/completions";
const AZURE: &str = "openai.azure.com";

#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) chat: Url,
    pub(super) models: Url,
    /// None without a key: an empty one is no key.
    pub(super) key: Option<(HeaderName, HeaderValue)>,
}

impl Endpoint {
    pub(super) fn new(settings: &Settings) -> Result<Endpoint, Trouble> {
        let base = parse(&settings.base_url)?;
        let is_azure =
            settings.api_version.is_some() || base.host_str().is_some_and(|it| it.ends_with(AZURE));
        let under = |root: &str, path: &str| {
            let mut url = base.clone();
            url.set_path(&format!("{root}{path}"));
            if let Some(version) = &settings.api_version
                && !url.query_pairs().any(|(name, _)| name == "api-version")
            {
                url.query_pairs_mut().append_pair("api-version", version);
            }
            url
        };
        let path = base.path().trim_end_matches('/');
        let root = path.strip_suffix(CHAT).unwrap_or(path).trim_end_matches('/');
        // Azure lists models beside its deployments, of which the base URL is one.
        let resource = root.split_once("/deployments/").map_or(root, |(resource, _)| resource);
        let key = key(&settings.api_key, is_azure)?;
        Ok(Endpoint { chat: under(root, CHAT), models: under(resource, "/models"), key })
    }
}

/// As people see it: a secret in a query or before the host is hidden.
pub(super) fn shown(url: &Url, secrets: &Secrets) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        // A URL that has a password can have another.
        let _ = url.set_password(Some("***"));
    }
    secrets.hide(url.as_str())
}

fn parse(base: &str) -> Result<Url, Trouble> {
    let url = Url::parse(base).ok().filter(|it| matches!(it.scheme(), "http" | "https"));
    url.ok_or_else(|| {
        Trouble::Settings(format!(
            "OPENAI_BASE_URL is no address of a server: `{base}`. It should look like http://localhost:11434/v1."
        ))
    })
}

fn key(key: &str, is_azure: bool) -> Result<Option<(HeaderName, HeaderValue)>, Trouble> {
    let key = key.trim();
    if key.is_empty() {
        return Ok(None);
    }
    let (name, value) = if is_azure {
        (HeaderName::from_static("api-key"), key.to_owned())
    } else {
        (AUTHORIZATION, format!("Bearer {key}"))
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        let why = "OPENAI_API_KEY has characters that no header can carry. Copy it again.";
        Trouble::Settings(why.to_owned())
    })?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, Url, shown};
    use crate::{
        Settings,
        model::{secrets::Secrets, trouble::Trouble},
    };
    use proptest::prelude::*;

    fn endpoint(variables: &[(&str, &str)]) -> Result<Endpoint, Trouble> {
        let read = |name: &str| {
            variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
        };
        Endpoint::new(&Settings::read(read).0)
    }

    fn addresses(base: &str, version: &str) -> [String; 2] {
        let variables = [("OPENAI_BASE_URL", base), ("OPENAI_API_VERSION", version)];
        let it = endpoint(&variables).unwrap();
        [it.chat, it.models].map(String::from)
    }

    #[test]
    fn slashes_and_whole_addresses_are_understood() {
        let expected = ["http://h:1/v1/chat/completions", "http://h:1/v1/models"];
        for base in ["http://h:1/v1", "http://h:1/v1//", "http://h:1/v1/chat/completions/"] {
            assert_eq!(addresses(base, ""), expected, "{base}");
        }
        assert_eq!(addresses("http://h", ""), ["http://h/chat/completions", "http://h/models"]);
        let query = ["http://h/chat/completions?a=b", "http://h/models?a=b"];
        assert_eq!(addresses("http://h?a=b", ""), query);
    }

    #[test]
    fn azure_has_a_version_in_the_query_and_models_beside_deployments() {
        let base = "https://x.openai.azure.com/openai/deployments/gpt";
        let chat = format!("{base}/chat/completions?api-version=2024-10-21");
        let models = "https://x.openai.azure.com/openai/models?api-version=2024-10-21";
        assert_eq!(addresses(base, "2024-10-21"), [&chat, models]);
        let told = format!("{base}?api-version=1");
        assert_eq!(addresses(&told, "2")[0], format!("{base}/chat/completions?api-version=1"));
    }

    #[test]
    fn the_key_goes_into_the_header_the_server_reads_and_an_empty_one_into_none() {
        let header = |base, version, key| {
            let names = ["OPENAI_BASE_URL", "OPENAI_API_VERSION", "OPENAI_API_KEY"];
            let variables: Vec<_> = names.into_iter().zip([base, version, key]).collect();
            let key = endpoint(&variables).unwrap().key;
            key.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        };
        let bearer = Some("authorization: Bearer k".to_owned());
        let api_key = Some("api-key: k".to_owned());
        assert_eq!(header("http://h/v1", "", "k"), bearer);
        assert_eq!(header("http://h/v1", "2024-10-21", "k"), api_key);
        assert_eq!(header("https://x.openai.azure.com/openai/v1", "", "k"), api_key);
        assert_eq!(header("http://h/v1", "", ""), None);
    }

    #[test]
    fn what_is_no_address_and_what_is_no_key_is_told() {
        let why = endpoint(&[("OPENAI_BASE_URL", "localhost:11434")]).unwrap_err().to_string();
        assert!(why.starts_with("OPENAI_BASE_URL is no address of a server"), "{why}");
        let why = endpoint(&[("OPENAI_API_KEY", "a\nb")]).unwrap_err().to_string();
        assert!(why.starts_with("OPENAI_API_KEY has characters"), "{why}");
    }

    #[test]
    fn secrets_in_an_address_are_not_shown() {
        let url = Url::parse("http://me:secret@h/v1?api_key=a8Kd02mfQ71xZp").unwrap();
        let shown = shown(&url, &Secrets::default());
        assert!(!shown.contains("secret") && !shown.contains("a8Kd"), "{shown}");
    }

    proptest! {
        #[test]
        fn every_base_leads_to_one_address(path in "(/[a-z0-9]{1,5}){0,4}", slashes in "/{0,3}") {
            let expected = format!("https://h{path}/chat/completions");
            prop_assert_eq!(&addresses(&format!("https://h{path}{slashes}"), "")[0], &expected);
            let whole = format!("https://h{path}/chat/completions{slashes}");
            prop_assert_eq!(&addresses(&whole, "")[0], &expected);
        }
    }
}
