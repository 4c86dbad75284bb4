//! The sessions whose agent process may run from a folder of an installed agent.

use super::ConfiguredAgents;
use crate::{context::CommandContext, hub::list_sessions, report::CommandError};

/// The ids of the sessions of the running daemon that have a process of this agent; none if no daemon runs.
pub(super) fn list_live_sessions(
    context: &CommandContext,
    agents: &ConfiguredAgents,
    agent: &str,
) -> Result<Vec<String>, CommandError> {
    let Some(mut conn) = context.daemon.connect_if_running("agents")? else {
        return Ok(Vec::new());
    };
    let catalog = &agents.survey.catalogue;
    let rows = list_sessions(&mut conn)?.into_iter();
    let live = rows.filter(|it| it.is_live() && catalog.resolve_id(&it.agent) == agent);
    Ok(live.map(|it| it.session_id).collect())
}
