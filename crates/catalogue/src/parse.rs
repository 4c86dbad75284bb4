//! From the text of a file to a [`Spec`].

use crate::{
    Flaw, Spec,
    check::{Complaint, check},
    flaw::locate,
};

/// Reads one agent's file: the form first, then what the form cannot say.
pub fn parse(text: &str) -> Result<Spec, Flaw> {
    let mut spec: Spec = toml::from_str(text).map_err(|error| Flaw::of_toml(text, &error))?;
    check(&spec)
        .map_err(|Complaint { path, reason }| Flaw { line: locate(text, &path), reason })?;
    settle(&mut spec);
    Ok(spec)
}

/// Fills in what a file may leave out because it follows from the rest.
pub(crate) fn settle(spec: &mut Spec) {
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
