//! Parses the text of a file into an [`AgentSpec`].

use crate::{
    AgentSpec, CatalogError,
    check::{SpecViolation, check_spec},
    error::locate_line,
};

/// Parses the file of one agent, checks it and applies defaults.
pub fn parse_agent_spec(text: &str) -> Result<AgentSpec, CatalogError> {
    let mut spec: AgentSpec =
        toml::from_str(text).map_err(|error| CatalogError::from_toml(text, &error))?;
    check_spec(&spec).map_err(|SpecViolation { path, reason }| CatalogError {
        line: locate_line(text, &path),
        reason,
    })?;
    apply_defaults(&mut spec);
    Ok(spec)
}

/// Fills in values that a file may omit because they follow from others.
pub(crate) fn apply_defaults(spec: &mut AgentSpec) {
    for variant in &mut spec.launch {
        if variant.bins.is_empty() {
            variant.bins.clone_from(&spec.bins);
        }
    }
    if let Some(auth) = &mut spec.auth {
        for text in &mut auth.missing {
            *text = text.to_lowercase();
        }
    }
}
