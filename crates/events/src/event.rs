//! One entry of a session's log.

use crate::{
    AgentBound, AgentExited, AgentMessage, AgentQuiet, AgentSuspended, ConnectionRefused,
    EventKind, MessageDropped, OperationRefused, PromptQueued, PromptWithdrawn, QueueReordered,
    RawJson, RequestServed, RuleLearned, SandboxApplied, Seq, SessionForked, SessionId,
    SessionImported, SessionMoved, SessionOpened, SettingChanged, Time, TurnCancelled, TurnEnded,
    TurnStarted, UnaskedCall, UserAnswered, UserAsked,
};
use jackfield_protocol::{Frame, redact};
use serde::{Deserialize, Serialize};

/// An event with its position in the session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    pub seq: Seq,
    pub at: Time,
    pub body: EventBody,
}

/// What happened. The member `is` of the JSON form names the variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "camelCase", bound = "J: Clone + Serialize")]
pub enum EventBody<J = RawJson> {
    Opened(SessionOpened<J>),
    Forked(SessionForked<J>),
    Imported(SessionImported),
    Moved(SessionMoved),
    Bound(AgentBound<J>),
    Said(AgentMessage<J>),
    Queued(PromptQueued<J>),
    Reordered(QueueReordered),
    Withdrawn(PromptWithdrawn),
    Prompted(TurnStarted<J>),
    Cancelled(TurnCancelled),
    Ended(TurnEnded<J>),
    Asked(UserAsked<J>),
    Answered(UserAnswered<J>),
    Refused(OperationRefused<J>),
    Sandboxed(SandboxApplied<J>),
    HostRefused(ConnectionRefused),
    LeftOut(MessageDropped),
    Learned(RuleLearned<J>),
    Unasked(UnaskedCall<J>),
    Served(RequestServed<J>),
    Configured(SettingChanged<J>),
    Gone(AgentExited),
    Quiet(AgentQuiet),
    Slept(AgentSuspended),
    /// A client closed the session.
    Closed,
}

impl SessionEvent {
    /// The same event in a copy of the session: its frame names the other session.
    #[must_use]
    pub fn with_session_id(&self, session: &SessionId) -> SessionEvent {
        let mut event = self.clone();
        if let Some(frame) = event.body.frame_mut()
            && let Ok(parsed) = Frame::parse(frame.bytes().clone())
            && parsed.session_id().is_some()
        {
            *frame = RawJson::trusted(parsed.with_session_id(session).bytes().clone());
        }
        event
    }
}

impl<J> EventBody<J> {
    /// The turn that the event belongs to, if it names one.
    pub fn turn(&self) -> Option<u64> {
        match self {
            EventBody::Said(AgentMessage { turn, .. })
            | EventBody::Prompted(TurnStarted { turn, .. })
            | EventBody::Cancelled(TurnCancelled { turn, .. })
            | EventBody::Ended(TurnEnded { turn, .. })
            | EventBody::Quiet(AgentQuiet { turn, .. }) => Some(*turn),
            _ => None,
        }
    }

    pub fn kind(&self) -> EventKind {
        match self {
            EventBody::Opened(_) => EventKind::Opened,
            EventBody::Forked(_) => EventKind::Forked,
            EventBody::Imported(_) => EventKind::Imported,
            EventBody::Moved(_) => EventKind::Moved,
            EventBody::Bound(_) => EventKind::Bound,
            EventBody::Said(_) => EventKind::Said,
            EventBody::Queued(_) => EventKind::Queued,
            EventBody::Reordered(_) => EventKind::Reordered,
            EventBody::Withdrawn(_) => EventKind::Withdrawn,
            EventBody::Prompted(_) => EventKind::Prompted,
            EventBody::Cancelled(_) => EventKind::Cancelled,
            EventBody::Ended(_) => EventKind::Ended,
            EventBody::Asked(_) => EventKind::Asked,
            EventBody::Answered(_) => EventKind::Answered,
            EventBody::Refused(_) => EventKind::Refused,
            EventBody::Sandboxed(_) => EventKind::Sandboxed,
            EventBody::HostRefused(_) => EventKind::HostRefused,
            EventBody::LeftOut(_) => EventKind::LeftOut,
            EventBody::Learned(_) => EventKind::Learned,
            EventBody::Unasked(_) => EventKind::Unasked,
            EventBody::Served(_) => EventKind::Served,
            EventBody::Configured(_) => EventKind::Configured,
            EventBody::Gone(_) => EventKind::Gone,
            EventBody::Quiet(_) => EventKind::Quiet,
            EventBody::Slept(_) => EventKind::Slept,
            EventBody::Closed => EventKind::Closed,
        }
    }
}

impl EventBody {
    fn frame_mut(&mut self) -> Option<&mut RawJson> {
        match self {
            EventBody::Said(AgentMessage { frame, .. })
            | EventBody::Queued(PromptQueued { frame, .. })
            | EventBody::Prompted(TurnStarted { frame, .. })
            | EventBody::Asked(UserAsked { frame, .. })
            | EventBody::Configured(SettingChanged { frame, .. }) => Some(frame),
            _ => None,
        }
    }

    /// About how many bytes it takes in memory and on disk, for limits.
    pub fn size_bytes(&self) -> usize {
        let len = |json: &RawJson| json.bytes().len();
        128 + match self {
            EventBody::Opened(it) => len(&it.params) + len(&it.setup),
            EventBody::Forked(it) => len(&it.params),
            EventBody::Bound(it) => len(&it.setup),
            EventBody::Said(it) => len(&it.frame),
            EventBody::Queued(it) => len(&it.frame),
            EventBody::Prompted(it) => len(&it.frame),
            EventBody::Ended(it) => len(it.outcome.json()),
            EventBody::Asked(it) => len(&it.frame),
            EventBody::Answered(it) => len(&it.answer),
            EventBody::Refused(it) => it.why.len() + it.peer.as_ref().map_or(0, len),
            EventBody::Sandboxed(it) => {
                len(&it.plan) + it.hosts.iter().map(String::len).sum::<usize>()
            }
            EventBody::HostRefused(it) => it.host.len() + it.why.len() + it.way_out.len(),
            EventBody::Learned(it) => len(&it.rule),
            EventBody::Unasked(it) => len(&it.call),
            EventBody::Served(it) => len(&it.call),
            EventBody::Configured(it) => len(&it.frame) + len(&it.answer),
            EventBody::Gone(it) => it.stderr.len(),
            EventBody::Reordered(it) => 8 * it.order.len(),
            EventBody::Imported(_)
            | EventBody::Moved(_)
            | EventBody::Withdrawn(_)
            | EventBody::Cancelled(_)
            | EventBody::LeftOut(_)
            | EventBody::Quiet(_)
            | EventBody::Slept(_)
            | EventBody::Closed => 0,
        }
    }
}

/// The first line of the first text block of a prompt, without secrets and at most 80 characters long.
pub fn first_prompt_line(frame: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct PromptFrame {
        params: PromptParams,
    }
    #[derive(Deserialize)]
    struct PromptParams {
        prompt: Vec<serde_json::Value>,
    }
    let blocks = frame.parse::<PromptFrame>()?.params.prompt;
    let text = blocks.iter().find_map(|block| block.get("text")?.as_str())?;
    // Redacted before it is cut: a part of a secret is no longer recognized.
    let line = redact::text(text.trim().lines().next()?);
    Some(line.chars().take(80).collect())
}
