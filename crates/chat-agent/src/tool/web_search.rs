//! The tool `web_search`: asks the search service that the settings name.
//!
//! The service gets `GET URL?q=QUERY` and answers with JSON, as `SearXNG`, Brave and many others do.

use super::{
    PreparedCall, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    truncate::{OUTPUT_CHARS_MAX, truncate_middle},
};
use crate::http;
use jackfield_protocol::chain;
use reqwest::{
    Url,
    header::{ACCEPT, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde_json::Value;
use std::{fmt::Write as _, time::Duration};

const SEARCH_MAX: Duration = Duration::from_secs(30);
/// Services answer with ten results or so; more does not help the model.
const RESULTS_MAX: usize = 10;
const RESPONSE_BYTES_MAX: usize = 1 << 20;
const SNIPPET_CHARS_MAX: usize = 500;
/// Where services put the list of results.
const LIST_POINTERS: [&str; 5] = ["/results", "/web/results", "/items", "/organic", "/data"];

/// Where to search, from the settings.
#[derive(Debug, Clone)]
pub(crate) struct SearchService {
    url: Url,
    /// Usually carries a key.
    header: Option<(HeaderName, HeaderValue)>,
}

#[derive(Debug)]
pub(crate) struct WebSearch {
    service: SearchService,
    query: String,
}

impl SearchService {
    /// `header` has the form `Name: value`.
    pub(crate) fn parse(url: &str, header: Option<&str>) -> Result<SearchService, String> {
        let parsed = Url::parse(url).ok().filter(|it| matches!(it.scheme(), "http" | "https"));
        let url =
            parsed.ok_or_else(|| format!("OPENAI_WEB_SEARCH_URL is not a valid URL: `{url}`"))?;
        let header = header.map(|it| {
            let (name, value) = it.split_once(':')?;
            let name = HeaderName::try_from(name.trim()).ok()?;
            let mut value = HeaderValue::try_from(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        match header {
            Some(None) => {
                Err("OPENAI_WEB_SEARCH_HEADER is not of the form `Name: value`".to_owned())
            }
            Some(header) => Ok(SearchService { url, header }),
            None => Ok(SearchService { url, header: None }),
        }
    }
}

pub(super) fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let query = args.required_text("query")?;
    let Some(service) = context.features.web_search.clone() else {
        return Err("No search service is configured.".to_owned());
    };
    Ok(PreparedCall {
        input: args.to_input(),
        title: query.clone(),
        kind: args.tool().kind,
        locations: Vec::new(),
        content: Vec::new(),
        permission: RequiredPermission::Named("web_search".to_owned()),
        work: ToolWork::WebSearch(WebSearch { service, query }),
    })
}

impl WebSearch {
    pub(super) async fn run(self) -> ToolOutcome {
        let outcome = tokio::time::timeout(SEARCH_MAX, self.search()).await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(format!("The search service has not answered within {} s.", SEARCH_MAX.as_secs()))
        });
        ToolOutcome::from_result(outcome.map(ToolOutcome::success))
    }

    async fn search(&self) -> Result<String, String> {
        let mut url = self.service.url.clone();
        url.query_pairs_mut().append_pair("q", &self.query);
        let client = http::client_builder().redirect(Policy::none()).build();
        let client =
            client.map_err(|error| format!("Failed to set up the HTTP client: {error}."))?;
        let mut request = client.get(url).header(ACCEPT, "application/json");
        if let Some((name, value)) = &self.service.header {
            request = request.header(name, value);
        }
        let failed = |error: reqwest::Error| {
            format!("The search service cannot be used: {}.", chain(&error.without_url()))
        };
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if RESPONSE_BYTES_MAX < body.len() {
                return Err("The answer of the search service is too long.".to_owned());
            }
        }
        if !status.is_success() {
            return Err(format!("The search service answered with {status}."));
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|_| {
            "The search service did not answer with JSON: check OPENAI_WEB_SEARCH_URL.".to_owned()
        })?;
        format_results(&answer)
    }
}

fn format_results(answer: &Value) -> Result<String, String> {
    let list = LIST_POINTERS.iter().find_map(|it| answer.pointer(it)?.as_array());
    let list = list.or(answer.as_array()).ok_or_else(|| {
        "The answer of the search service has no list of results: check OPENAI_WEB_SEARCH_URL."
            .to_owned()
    })?;
    let mut text = String::new();
    for (number, result) in (1..).zip(list.iter().take(RESULTS_MAX)) {
        let member = |names: &[&str]| {
            names.iter().find_map(|it| result[*it].as_str()).unwrap_or_default().trim()
        };
        let (title, url) = (member(&["title", "name"]), member(&["url", "link"]));
        let snippet = member(&["content", "description", "snippet", "text"]);
        let snippet: String = snippet.chars().take(SNIPPET_CHARS_MAX).collect();
        let _ = writeln!(text, "{number}. {title}\n   {url}\n   {snippet}");
    }
    if text.is_empty() {
        return Ok("Nothing was found.".to_owned());
    }
    Ok(truncate_middle(&text, OUTPUT_CHARS_MAX, "use a narrower query"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{IoCapabilities, test_session::with_test_session};
    use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
    use serde_json::json;

    #[test]
    fn results_of_common_services_are_read() {
        let result = json!({ "title": "T", "url": "http://u", "content": "C" });
        let other = json!({ "name": "T", "link": "http://u", "snippet": "C" });
        for answer in [
            json!({ "results": [result] }),
            json!({ "web": { "results": [result] } }),
            json!({ "items": [other] }),
            json!([result]),
        ] {
            assert_eq!(format_results(&answer).unwrap(), "1. T\n   http://u\n   C\n");
        }
        assert_eq!(format_results(&json!({ "results": [] })).unwrap(), "Nothing was found.");
        assert!(format_results(&json!({ "error": "x" })).is_err());
    }

    #[tokio::test]
    async fn query_is_sent_to_the_configured_service() {
        let server = ScriptedModel::start([]);
        server.serve("/search", Reply::json(&json!({ "results": [{ "title": "Found" }] })));
        with_test_session(IoCapabilities::default(), async |mut session| {
            let url = format!("{}/search", server.url());
            session.context.features.web_search =
                Some(SearchService::parse(&url, Some("X-Key: k")).unwrap());
            let outcome = session.call("web_search", json!({ "query": "a b" })).await;
            assert!(outcome.text.starts_with("1. Found"), "{}", outcome.text);
            session.context.features.web_search =
                Some(SearchService::parse("http://127.0.0.1:9/", None).unwrap());
            let outcome = session.call("web_search", json!({ "query": "a b" })).await;
            assert!(outcome.is_error, "{}", outcome.text);
        })
        .await;
    }

    #[test]
    fn invalid_settings_are_reported() {
        for (url, header) in [("localhost", None), ("http://h", Some("no colon"))] {
            assert!(SearchService::parse(url, header).is_err());
        }
    }
}
