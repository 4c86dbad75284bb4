//! The URLs of the server, derived from the base URL, and the header that carries the API key.

use super::error::ModelError;
use crate::ChatSettings;
use jackfield_protocol::redact::SecretRedactor;
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
};

/// Stripped from the base URL: some users copy the whole URL from a `curl` example.
const CHAT_PATH: &str = "/chat/completions";
const AZURE_DOMAIN: &str = "openai.azure.com";

#[derive(Debug, Clone)]
pub(super) struct ModelEndpoint {
    pub(super) chat_url: Url,
    pub(super) models_url: Url,
    /// `None` if the key is empty.
    pub(super) key_header: Option<(HeaderName, HeaderValue)>,
}

impl ModelEndpoint {
    pub(super) fn new(settings: &ChatSettings) -> Result<ModelEndpoint, ModelError> {
        let base = parse_base_url(&settings.base_url)?;
        let is_azure = settings.api_version.is_some()
            || base.host_str().is_some_and(|it| it.ends_with(AZURE_DOMAIN));
        let build_url = |root: &str, path: &str| {
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
        let root = path.strip_suffix(CHAT_PATH).unwrap_or(path).trim_end_matches('/');
        // Azure lists models next to its deployments, and the base URL names one deployment.
        let resource = root.split_once("/deployments/").map_or(root, |(resource, _)| resource);
        Ok(ModelEndpoint {
            chat_url: build_url(root, CHAT_PATH),
            models_url: build_url(resource, "/models"),
            key_header: key_header(&settings.api_key, is_azure)?,
        })
    }
}

/// Formats a URL for messages. A password and secrets in the query are redacted.
pub(super) fn redact_url(url: &Url, redactor: &SecretRedactor) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        // A URL that has a password accepts another one.
        let _ = url.set_password(Some("***"));
    }
    redactor.redact(url.as_str())
}

fn parse_base_url(base: &str) -> Result<Url, ModelError> {
    let url = Url::parse(base).ok().filter(|it| matches!(it.scheme(), "http" | "https"));
    url.ok_or_else(|| {
        ModelError::Settings(format!(
            "OPENAI_BASE_URL is not a valid URL: `{base}`. It should look like http://localhost:11434/v1."
        ))
    })
}

fn key_header(key: &str, is_azure: bool) -> Result<Option<(HeaderName, HeaderValue)>, ModelError> {
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
        let message =
            "OPENAI_API_KEY has characters that an HTTP header cannot carry. Copy it again.";
        ModelError::Settings(message.to_owned())
    })?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

#[cfg(test)]
mod tests {
    use super::{ModelEndpoint, Url, redact_url};
    use crate::{ChatSettings, model::error::ModelError};
    use jackfield_protocol::redact::SecretRedactor;
    use proptest::prelude::*;

    fn endpoint(variables: &[(&str, &str)]) -> Result<ModelEndpoint, ModelError> {
        let read = |name: &str| {
            variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
        };
        ModelEndpoint::new(&ChatSettings::from_variables(read).0)
    }

    fn endpoint_urls(base: &str, version: &str) -> [String; 2] {
        let variables = [("OPENAI_BASE_URL", base), ("OPENAI_API_VERSION", version)];
        let it = endpoint(&variables).unwrap();
        [it.chat_url, it.models_url].map(String::from)
    }

    #[test]
    fn base_url_may_have_slashes_or_the_full_chat_path() {
        let expected = ["http://h:1/v1/chat/completions", "http://h:1/v1/models"];
        for base in ["http://h:1/v1", "http://h:1/v1//", "http://h:1/v1/chat/completions/"] {
            assert_eq!(endpoint_urls(base, ""), expected, "{base}");
        }
        assert_eq!(endpoint_urls("http://h", ""), ["http://h/chat/completions", "http://h/models"]);
        let query = ["http://h/chat/completions?a=b", "http://h/models?a=b"];
        assert_eq!(endpoint_urls("http://h?a=b", ""), query);
    }

    #[test]
    fn azure_urls_have_a_version_and_list_models_next_to_deployments() {
        let base = "https://x.openai.azure.com/openai/deployments/gpt";
        let chat = format!("{base}/chat/completions?api-version=2024-10-21");
        let models = "https://x.openai.azure.com/openai/models?api-version=2024-10-21";
        assert_eq!(endpoint_urls(base, "2024-10-21"), [&chat, models]);
        let with_version = format!("{base}?api-version=1");
        assert_eq!(
            endpoint_urls(&with_version, "2")[0],
            format!("{base}/chat/completions?api-version=1")
        );
    }

    #[test]
    fn key_header_depends_on_the_server_and_an_empty_key_sets_none() {
        let header = |base, version, key| {
            let names = ["OPENAI_BASE_URL", "OPENAI_API_VERSION", "OPENAI_API_KEY"];
            let variables: Vec<_> = names.into_iter().zip([base, version, key]).collect();
            let key = endpoint(&variables).unwrap().key_header;
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
    fn invalid_url_and_invalid_key_are_reported() {
        let message = endpoint(&[("OPENAI_BASE_URL", "localhost:11434")]).unwrap_err().to_string();
        assert!(message.starts_with("OPENAI_BASE_URL is not a valid URL"), "{message}");
        let message = endpoint(&[("OPENAI_API_KEY", "a\nb")]).unwrap_err().to_string();
        assert!(message.starts_with("OPENAI_API_KEY has characters"), "{message}");
    }

    #[test]
    fn secrets_in_a_url_are_redacted() {
        let url = Url::parse("http://me:secret@h/v1?api_key=a8Kd02mfQ71xZp").unwrap();
        let redacted = redact_url(&url, &SecretRedactor::default());
        assert!(!redacted.contains("secret") && !redacted.contains("a8Kd"), "{redacted}");
    }

    proptest! {
        #[test]
        fn equivalent_base_urls_give_the_same_chat_url(path in "(/[a-z0-9]{1,5}){0,4}", slashes in "/{0,3}") {
            let expected = format!("https://h{path}/chat/completions");
            prop_assert_eq!(&endpoint_urls(&format!("https://h{path}{slashes}"), "")[0], &expected);
            let whole = format!("https://h{path}/chat/completions{slashes}");
            prop_assert_eq!(&endpoint_urls(&whole, "")[0], &expected);
        }
    }
}
