//! A fork is a copy: the events of its source under the fork's id, and the fork event.

use super::check_invariant;
use bytes::Bytes;
use jackfield_events::{EventBody, SessionForked};
use jackfield_hub::SessionId;

pub(in crate::hub_sim) fn fork_is_a_copy_of_its_source(
    from: (&SessionId, &[Bytes]),
    to: (&SessionId, &[Bytes]),
    last: &EventBody,
) {
    let name = "fork_is_a_copy_of_its_source";
    let ((source, lines), (fork, copy)) = (from, to);
    let seq = match last {
        EventBody::Forked(SessionForked { from, seq_there, .. }) if from == source => seq_there.0,
        other => return check_invariant(name, false, || format!("{fork} ends with {other:?}")),
    };
    let same_length = copy.len() as u64 == seq + 1 && seq <= lines.len() as u64;
    check_invariant(name, same_length, || format!("{fork} has {} events of {seq}", copy.len()));
    let (source_text, fork_text) = (format!("\"{source}\""), format!("\"{fork}\""));
    for (line, copied) in lines.iter().zip(&copy[..copy.len() - 1]) {
        let expected = String::from_utf8_lossy(line).replace(&source_text, &fork_text);
        check_invariant(name, expected.as_bytes() == &copied[..], || {
            format!("{fork} has {copied:?} and {source} has {line:?}")
        });
    }
}
