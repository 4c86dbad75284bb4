//! The environment variables of the daemon, and the programs that they lead to.

use crate::paths::Paths;
use jackfield_agents::find::ProgramLocations;

/// The environment of this process, without values that are not UTF-8.
pub fn process_env() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Where this process finds programs: by its environment, and in the folder of installed agents.
pub fn program_locations(paths: &Paths) -> ProgramLocations {
    ProgramLocations::new(process_env()).with_installed(paths.installed_agents())
}
