//! Applies messages of the hub to a session.

use super::{ContextFill, SentRequest, SessionView, prompt_blocks::prompt_text};
use crate::{
    hub::{HubRequest, HubUpdate, RequestNumber, SessionRow},
    page::{PageChange, UpdateContext},
};
use jackfield_events::{EventBody, ReceivedEvent};
use serde_json::Value;

/// Updates of an agent after which the settings are read again.
const SETTING_UPDATES: &[&str] =
    &["available_commands_update", "current_mode_update", "config_option_update"];

impl SessionView {
    pub(super) fn on_hub_update(&mut self, cx: &mut UpdateContext<'_>, update: &HubUpdate) {
        match update {
            HubUpdate::Lists { sessions, .. } => {
                self.on_rows(sessions);
                // Changes during a lost connection were not seen.
                cx.send(HubRequest::ReadQueue { session: self.session.clone() });
                cx.send(HubRequest::ReadSettings { session: self.session.clone() });
            }
            HubUpdate::Changes { sessions, removed, .. } => {
                self.on_rows(sessions);
                if removed.contains(&self.session) {
                    cx.show_notice("The session was deleted");
                    cx.change_page(PageChange::Board);
                }
            }
            HubUpdate::LogPage(page) if page.session == self.session => {
                self.collect_events(&page.events);
                self.pane.on_page(page.clone());
            }
            HubUpdate::LogEvents { session, events } if *session == self.session => {
                self.collect_events(events);
                self.read_what_changed(cx, events);
                self.pane.on_events(events.clone());
            }
            HubUpdate::Settings { session, settings } if *session == self.session => {
                self.settings = (**settings).clone();
            }
            HubUpdate::Queue { session, prompts } if *session == self.session => {
                self.queue.set_prompts(prompts.clone());
                self.leave_empty_queue();
            }
            HubUpdate::Outcome { number, result } => self.on_outcome(cx, *number, result),
            HubUpdate::Connection(_)
            | HubUpdate::LogPage(_)
            | HubUpdate::LogEvents { .. }
            | HubUpdate::Settings { .. }
            | HubUpdate::Queue { .. }
            | HubUpdate::Agents(_) => {}
        }
    }

    fn on_rows(&mut self, rows: &[SessionRow]) {
        if let Some(row) = rows.iter().find(|it| it.session_id == self.session) {
            self.row = row.clone();
        }
    }

    fn collect_events(&mut self, events: &[ReceivedEvent]) {
        for event in events {
            self.collect_event(event);
        }
    }

    /// Keeps what the header, the history of prompts and the list of clients need.
    fn collect_event(&mut self, event: &ReceivedEvent) {
        self.clients.add_event(event);
        let seq = event.seq.map_or(0, |it| it.0);
        match &event.body {
            EventBody::Prompted(prompt) => {
                self.composer
                    .add_logged_prompt(seq, prompt_text(&prompt.frame["params"]["prompt"]));
            }
            EventBody::Said(said) if is_update(&said.frame, &["usage_update"]) => {
                let update = &said.frame["params"]["update"];
                let is_newer = self.context.is_none_or(|it| it.seq <= seq);
                if let Some(tokens) = update["used"].as_u64().filter(|_| is_newer) {
                    let size = update["size"].as_u64();
                    self.context = Some(ContextFill { seq, tokens, size });
                }
            }
            _ => {}
        }
    }

    fn read_what_changed(&self, cx: &mut UpdateContext<'_>, events: &[ReceivedEvent]) {
        let session = || self.session.clone();
        if events.iter().any(|it| changes_queue(&it.body)) {
            cx.send(HubRequest::ReadQueue { session: session() });
        }
        if events.iter().any(|it| changes_settings(&it.body)) {
            cx.send(HubRequest::ReadSettings { session: session() });
        }
    }

    fn on_outcome(
        &mut self,
        cx: &mut UpdateContext<'_>,
        number: RequestNumber,
        result: &Result<Value, String>,
    ) {
        let Some(request) = self.sent.remove(&number) else { return };
        match (request, result) {
            (SentRequest::Fork, Ok(value)) => {
                if let Some(id) = value["sessionId"].as_str() {
                    cx.change_page(PageChange::Session(id.to_owned()));
                }
            }
            (SentRequest::Other(_), Ok(_)) => {
                cx.send(HubRequest::ReadQueue { session: self.session.clone() });
                cx.send(HubRequest::ReadSettings { session: self.session.clone() });
            }
            (SentRequest::ReadLog(_) | SentRequest::Prompt(_), Ok(_)) => {}
            (SentRequest::ReadLog(range), Err(_)) => self.pane.on_read_failed(range),
            (SentRequest::Prompt(prompt), Err(why)) => {
                self.composer.restore_prompt(prompt);
                cx.show_notice(format!("The prompt was not sent: {why}"));
            }
            (SentRequest::Fork, Err(why)) => {
                cx.show_notice(format!("Failed to fork the session: {why}"));
            }
            (SentRequest::Other(purpose), Err(why)) => {
                cx.show_notice(format!("Failed to {purpose}: {why}"));
                cx.send(HubRequest::ReadQueue { session: self.session.clone() });
            }
        }
    }
}

fn changes_queue(body: &EventBody<Value>) -> bool {
    matches!(
        body,
        EventBody::Queued(_)
            | EventBody::Withdrawn(_)
            | EventBody::Prompted(_)
            | EventBody::Reordered(_)
            | EventBody::Bound(_)
            | EventBody::Closed
    )
}

fn changes_settings(body: &EventBody<Value>) -> bool {
    match body {
        EventBody::Opened(_) | EventBody::Configured(_) | EventBody::Bound(_) => true,
        EventBody::Said(said) => is_update(&said.frame, SETTING_UPDATES),
        _ => false,
    }
}

fn is_update(frame: &Value, kinds: &[&str]) -> bool {
    let kind = &frame["params"]["update"]["sessionUpdate"];
    kind.as_str().is_some_and(|it| kinds.contains(&it))
}
