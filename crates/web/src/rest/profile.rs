//! Profiles of clients that were written for another daemon and are used unchanged.

use crate::rest::check::RunBody;
use jackfield_policy::ApprovalMode;
use serde::Deserialize;

/// The defaults of requests that leave a choice open, and how invalid values are handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientProfile {
    /// As the API documents it.
    #[default]
    Jackfield,
    /// As the daemon of Open Design: each run has an agent of its own that may do everything, and a value that is not
    /// valid has no effect.
    OpenDesign,
}

impl ClientProfile {
    /// Sets what a request of `/api/chat` leaves open.
    pub(crate) fn complete_chat(self, body: &mut RunBody) {
        body.keep.get_or_insert(false);
        if self == ClientProfile::OpenDesign {
            body.cancel_on_disconnect.get_or_insert(true);
        }
    }

    /// Sets what a request for any run leaves open.
    pub(crate) fn complete_run(self, body: &mut RunBody) {
        if self == ClientProfile::OpenDesign {
            body.keep.get_or_insert(false);
        }
    }

    /// How permission requests are answered if neither the request nor the configuration says it.
    pub(crate) fn default_approval(self) -> ApprovalMode {
        match self {
            ClientProfile::Jackfield => ApprovalMode::Ask,
            ClientProfile::OpenDesign => ApprovalMode::All,
        }
    }

    /// Whether an invalid model, setting or path is left out with a warning instead of refused.
    pub(crate) fn drops_invalid_values(self) -> bool {
        self == ClientProfile::OpenDesign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_design_clients_get_the_defaults_of_that_daemon_unless_they_choose() {
        let mut body = RunBody::default();
        ClientProfile::OpenDesign.complete_chat(&mut body);
        ClientProfile::OpenDesign.complete_run(&mut body);
        assert_eq!((body.keep, body.cancel_on_disconnect), (Some(false), Some(true)));
        assert_eq!(ClientProfile::OpenDesign.default_approval(), ApprovalMode::All);
        let mut body = RunBody { keep: Some(true), ..RunBody::default() };
        ClientProfile::OpenDesign.complete_run(&mut body);
        assert_eq!(body.keep, Some(true));
        let mut body = RunBody::default();
        ClientProfile::Jackfield.complete_run(&mut body);
        assert_eq!(body.keep, None);
    }
}
