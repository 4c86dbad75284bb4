//! Tools that are off unless the settings turn them on.

use super::web_search::SearchService;
use crate::settings::ChatSettings;

/// What an optional tool depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolFeature {
    WebFetch,
    WebSearch,
    CodeSearch,
    LanguageServer,
}

/// The optional tools of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolFeatures {
    pub(crate) web_fetch: bool,
    pub(crate) web_search: Option<SearchService>,
    pub(crate) code_search: bool,
    pub(crate) language_server: bool,
}

impl ToolFeatures {
    pub(crate) fn from_settings(settings: &ChatSettings) -> Result<ToolFeatures, String> {
        let url = settings.web_search_url.as_deref();
        let header = settings.web_search_header.as_deref();
        Ok(ToolFeatures {
            web_fetch: settings.web_fetch,
            web_search: url.map(|it| SearchService::parse(it, header)).transpose()?,
            code_search: settings.code_search,
            language_server: !settings.language_servers.is_empty(),
        })
    }

    pub(super) fn has(&self, feature: ToolFeature) -> bool {
        match feature {
            ToolFeature::WebFetch => self.web_fetch,
            ToolFeature::WebSearch => self.web_search.is_some(),
            ToolFeature::CodeSearch => self.code_search,
            ToolFeature::LanguageServer => self.language_server,
        }
    }
}
