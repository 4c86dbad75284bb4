//! Who connected to the socket: the process behind a connection, and whether it is below an agent.

use crate::effects::Ground;
use jackfield_agents::ProcessPlace;
use jackfield_hub::{AgentId, PeerPlace, PeerProcess};
use jackfield_transport::ClientStream;

/// What is known of a client's process at the moment it is let in. `None` for TCP, and for
/// connections of this process itself, such as those of the web front.
pub(crate) fn identify(stream: &ClientStream, ground: &Ground) -> Option<PeerProcess> {
    let peer = stream.unix_peer()?;
    let Some(pid) = peer.pid else {
        // What an agent starts is always visible from here.
        let place = PeerPlace::Outside;
        return Some(PeerProcess { pid: None, uid: peer.uid, exe: None, place });
    };
    if pid == std::process::id() {
        return None;
    }
    let found = ground.ledger.look_up_peer(peer.socket, pid);
    let place = match &found.place {
        ProcessPlace::Outside => PeerPlace::Outside,
        ProcessPlace::Unknown => PeerPlace::Unknown,
        ProcessPlace::Inside { mark } => match agent_of(&ground.mark, mark) {
            Some(agent) => PeerPlace::BelowAgent(agent),
            // The operator's own hook for notifications.
            None => PeerPlace::Outside,
        },
    };
    let exe = found.exe.map(|it| it.to_string_lossy().into());
    Some(PeerProcess { pid: Some(pid), uid: peer.uid, exe, place })
}

/// The agent whose process, or whose terminal, has this mark.
fn agent_of(ground: &str, mark: &str) -> Option<AgentId> {
    let rest = mark.strip_prefix(ground)?.strip_prefix('-')?;
    rest.split('-').next()?.parse().ok().map(AgentId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_and_their_terminals_are_known_by_their_marks_and_hooks_are_not() {
        assert_eq!(agent_of("9-f0", "9-f0-3"), Some(AgentId(3)));
        assert_eq!(agent_of("9-f0", "9-f0-3-t12"), Some(AgentId(3)));
        assert_eq!(agent_of("9-f0", "9-f0-n3"), None);
        assert_eq!(agent_of("9-f0", "9-f1-3"), None);
    }
}
