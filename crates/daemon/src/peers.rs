//! Identifies the process that connected to the socket, and whether an agent started it.

use crate::spawn_context::SpawnContext;
use jackfield_agents::ProcessPlace;
use jackfield_hub::{AgentId, PeerPlace, PeerProcess};
use jackfield_transport::ClientStream;

/// The process of a client when it connects. `None` for TCP and for connections of this process
/// itself, such as those of the web server.
pub(crate) fn identify_peer(stream: &ClientStream, context: &SpawnContext) -> Option<PeerProcess> {
    let peer = stream.unix_peer()?;
    let Some(pid) = peer.pid else {
        // Processes that an agent started are always visible.
        let place = PeerPlace::Outside;
        return Some(PeerProcess { pid: None, uid: peer.uid, exe: None, place });
    };
    if pid == std::process::id() {
        return None;
    }
    let found = context.ledger.look_up_peer(peer.socket, pid);
    let place = match &found.place {
        ProcessPlace::Outside => PeerPlace::Outside,
        ProcessPlace::Unknown => PeerPlace::Unknown,
        ProcessPlace::Inside { mark } => match find_agent_by_mark(&context.mark, mark) {
            Some(agent) => PeerPlace::BelowAgent(agent),
            // The operator's own notification hook.
            None => PeerPlace::Outside,
        },
    };
    let exe = found.exe.map(|it| it.to_string_lossy().into());
    Some(PeerProcess { pid: Some(pid), uid: peer.uid, exe, place })
}

/// The agent whose process or terminal has this mark.
fn find_agent_by_mark(context: &str, mark: &str) -> Option<AgentId> {
    let rest = mark.strip_prefix(context)?.strip_prefix('-')?;
    rest.split('-').next()?.parse().ok().map(AgentId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_and_terminals_have_recognizable_marks_and_hooks_do_not() {
        assert_eq!(find_agent_by_mark("9-f0", "9-f0-3"), Some(AgentId(3)));
        assert_eq!(find_agent_by_mark("9-f0", "9-f0-3-t12"), Some(AgentId(3)));
        assert_eq!(find_agent_by_mark("9-f0", "9-f0-n3"), None);
        assert_eq!(find_agent_by_mark("9-f0", "9-f1-3"), None);
    }
}
