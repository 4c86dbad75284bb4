//! Methods that the bus handles specially.

use jackfield_protocol::Frame;
use jackfield_protocol::acp::Method;

/// The method that opens a session whose id is not known yet.
const OPEN_METHOD: &str = Method::SessionNew.name();
/// Methods that end the session they name.
const CLOSE_METHODS: [&str; 2] = [Method::SessionClose.name(), Method::SessionDelete.name()];
/// Methods that resume a session which its worker may not have.
const RESUME_METHODS: [&str; 2] = [Method::SessionLoad.name(), Method::SessionResume.name()];
/// Notifications that cancel a request by its id, in ACP and in MCP.
const CANCEL_METHODS: [&str; 2] = [Method::CancelRequest.name(), "notifications/cancelled"];
/// A request that may refer to a pending request.
const ELICIT_METHOD: &str = Method::ElicitationCreate.name();

pub(super) fn opens_session(frame: &Frame) -> bool {
    frame.method().as_deref() == Some(OPEN_METHOD)
}

pub(super) fn closes_session(frame: &Frame) -> bool {
    frame.method().is_some_and(|it| CLOSE_METHODS.contains(&&*it))
}

pub(super) fn resumes_session(frame: &Frame) -> bool {
    frame.method().is_some_and(|it| RESUME_METHODS.contains(&&*it))
}

pub(super) fn cancels_request(frame: &Frame) -> bool {
    frame.method().is_some_and(|it| CANCEL_METHODS.contains(&&*it))
}

pub(super) fn may_refer_to_request(frame: &Frame) -> bool {
    frame.method().as_deref() == Some(ELICIT_METHOD)
}
