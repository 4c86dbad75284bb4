//! Chooses the launch variant of an agent among those whose program is installed.

use super::{ProcessLimits, format_refusal};
use jackfield_agents::{
    find::{
        ChosenVariant, ProgramLocations, choose_variant, find_variant_program,
        list_installed_variants,
    },
    probe::describe_missing,
};
use jackfield_catalog::AgentSpec;
use jackfield_hub::VariantChoice;
use std::sync::Arc;

/// The variant to start, and the one to try if it fails. The error says why there is none.
pub(super) fn choose<'a>(
    spec: &'a AgentSpec,
    choice: &VariantChoice,
    limits: ProcessLimits,
    locations: &ProgramLocations,
) -> Result<(ChosenVariant<'a>, Option<Arc<str>>), String> {
    let mut installed = list_installed_variants(spec, locations);
    if limits == ProcessLimits::Sandbox {
        installed.sort_by_key(|it| spec.sandbox.last_variants.contains(&it.variant.name));
    }
    let position = |name: &str| installed.iter().position(|it| it.variant.name == name);
    let index = match choice {
        VariantChoice::Any => 0,
        VariantChoice::Preferred(name) | VariantChoice::From(name) => position(name).unwrap_or(0),
        VariantChoice::Only(name) => match position(name) {
            Some(index) => index,
            None => return Err(describe_unusable(spec, name, locations)),
        },
    };
    if installed.is_empty() {
        let missing = choose_variant(spec, locations).map(|_| ()).expect_err("none is installed");
        let description = describe_missing(spec, &missing);
        return Err(format_refusal(&description.message, &description.fix));
    }
    let may_try_next = !matches!(choice, VariantChoice::Only(_));
    let next = installed.get(index + 1).filter(|_| may_try_next);
    let next = next.map(|it| it.variant.name.as_str().into());
    Ok((installed.swap_remove(index), next))
}

/// Why a variant that was asked for by name cannot be used.
fn describe_unusable(spec: &AgentSpec, name: &str, locations: &ProgramLocations) -> String {
    let missing =
        spec.find_variant(name).and_then(|it| find_variant_program(spec, it, locations).err());
    if let Some(missing) = missing {
        let description = describe_missing(spec, &missing);
        return format_refusal(&description.message, &description.fix);
    }
    let what = format!("`{}` has no launch variant `{name}`", spec.id);
    format_refusal(&what, &format!("choose one of {}", spec.list_variants()))
}
