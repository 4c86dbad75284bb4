//! Parses the text of a file into an [`AgentSpec`].

use crate::{
    AgentSpec, CatalogError, LaunchVariant, check::check_spec, error::locate_line,
    package::global_install_command, violation::SpecViolation,
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

/// A name that no other variant has: `acp` or the dialect, with a number if necessary.
fn choose_variant_name(variants: &[LaunchVariant], index: usize) -> String {
    let base = variants[index].dialect.as_deref().unwrap_or("acp");
    let is_free = |name: &String| variants.iter().all(|it| it.name != *name);
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.to_owned()).chain(numbered);
    names.find(is_free).expect("there are more numbers than variants")
}

/// Fills in values that a file may omit because they follow from others.
pub(crate) fn apply_defaults(spec: &mut AgentSpec) {
    for variant in &mut spec.launch {
        if variant.bins.is_empty() {
            variant.bins.clone_from(&spec.bins);
        }
    }
    for index in 0..spec.launch.len() {
        if spec.launch[index].name.is_empty() {
            spec.launch[index].name = choose_variant_name(&spec.launch, index);
        }
    }
    if spec.install.is_none() {
        spec.install = global_install_command(&spec.packages);
    }
    if let Some(auth) = &mut spec.auth {
        for text in &mut auth.missing {
            *text = text.to_lowercase();
        }
    }
}
