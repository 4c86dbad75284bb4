//! A fork is a copy: what its source was told, under the fork's name, and the fact of the fork.

use super::hold;
use bytes::Bytes;
use jackfield_events::{EventBody, SessionForked};
use jackfield_hub::SessionId;

pub(in crate::hub_sim) fn a_fork_is_a_copy_of_its_source(
    from: (&SessionId, &[Bytes]),
    to: (&SessionId, &[Bytes]),
    last: &EventBody,
) {
    let name = "a_fork_is_a_copy_of_its_source";
    let ((source, lines), (fork, copy)) = (from, to);
    let seq = match last {
        EventBody::Forked(SessionForked { from, seq_there, .. }) if from == source => seq_there.0,
        other => return hold(name, false, || format!("{fork} ends with {other:?}")),
    };
    let same_length = copy.len() as u64 == seq + 1 && seq <= lines.len() as u64;
    hold(name, same_length, || format!("{fork} has {} events of {seq}", copy.len()));
    let (ours, theirs) = (format!("\"{source}\""), format!("\"{fork}\""));
    for (line, copied) in lines.iter().zip(&copy[..copy.len() - 1]) {
        let expected = String::from_utf8_lossy(line).replace(&ours, &theirs);
        hold(name, expected.as_bytes() == &copied[..], || {
            format!("{fork} has {copied:?} and {source} has {line:?}")
        });
    }
}
