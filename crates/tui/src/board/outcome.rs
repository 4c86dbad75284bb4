//! How requests of the board ended.

use super::BoardState;
use crate::{
    hub::RequestNumber,
    page::{ActivePage, PageChange, UpdateContext},
};
use serde_json::Value;

/// A request of the board that the hub has not answered yet.
#[derive(Debug)]
pub(crate) enum AwaitedOutcome {
    NewSession,
    Fork { title: String },
    Close { title: String },
    Rename { title: String },
    Delete { session: String, title: String },
}

impl BoardState {
    pub(super) fn on_outcome(
        &mut self,
        cx: &mut UpdateContext<'_>,
        number: RequestNumber,
        result: &Result<Value, String>,
    ) {
        let Some(awaited) = self.awaited.remove(&number) else { return };
        match result {
            Ok(value) => self.on_success(cx, &awaited, value),
            Err(why) => self.on_failure(cx, &awaited, why),
        }
    }

    fn on_success(&mut self, cx: &mut UpdateContext<'_>, awaited: &AwaitedOutcome, value: &Value) {
        let notice = match awaited {
            AwaitedOutcome::NewSession => "Session started".to_owned(),
            AwaitedOutcome::Fork { title } => format!("Forked “{title}”"),
            AwaitedOutcome::Close { title } => format!("Closed “{title}”"),
            AwaitedOutcome::Rename { .. } | AwaitedOutcome::Delete { .. } => return,
        };
        cx.show_notice(notice);
        let is_new = matches!(awaited, AwaitedOutcome::NewSession | AwaitedOutcome::Fork { .. });
        if let Some(session) = value["sessionId"].as_str().filter(|_| is_new) {
            self.cursor.select_session(session);
            self.follow_cursor();
            // The user may have gone on to something else.
            if cx.page == ActivePage::Board && self.dialog.is_none() {
                cx.change_page(PageChange::Session(session.to_owned()));
            }
        }
    }

    fn on_failure(&mut self, cx: &mut UpdateContext<'_>, awaited: &AwaitedOutcome, why: &str) {
        let what = match awaited {
            AwaitedOutcome::NewSession => "The session was not started".to_owned(),
            AwaitedOutcome::Fork { title } => format!("“{title}” was not forked"),
            AwaitedOutcome::Close { title } => format!("“{title}” was not closed"),
            AwaitedOutcome::Rename { title } => format!("“{title}” was not renamed"),
            AwaitedOutcome::Delete { session, title } => {
                self.choice.deleted.remove(session);
                self.rebuild_list();
                format!("“{title}” was not deleted")
            }
        };
        cx.show_notice(format!("{what}: {why}"));
    }
}
