//! The ids of messages and tool calls for the client, derived from positions in the history.

use agent_client_protocol::v1::schema::MessageId;

/// Returns the id of the message at a position of the history. A replay gives the same ids as the
/// live session.
pub(crate) fn message_id(position: usize) -> MessageId {
    MessageId::new(format!("m-{position}"))
}

/// Returns the id of a call for the client. Models restart their ids in every answer, but a client
/// needs ids that are unique in a session, so the position of the answer is the prefix.
pub(crate) fn client_call_id(answer_position: usize, call_id: &str) -> String {
    format!("{answer_position}-{call_id}")
}
