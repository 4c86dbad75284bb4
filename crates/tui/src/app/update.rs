//! Handles one input.

use super::{AppEffect, AppInput, AppState};
use crate::hub::{HubRequest, HubUpdate, RequestNumber};
use jackfield_events::Time;

impl AppState {
    /// Changes the state, and returns what is to be done.
    pub(crate) fn update(&mut self, now: Time, input: AppInput) -> Vec<AppEffect> {
        self.now = now;
        match input {
            AppInput::Resize { width, height } => {
                self.size = (width, height);
                Vec::new()
            }
            AppInput::Hub(update) => self.on_hub_update(update),
            AppInput::Key(_)
            | AppInput::Paste(_)
            | AppInput::Mouse(_)
            | AppInput::Tick
            | AppInput::EditedText(_)
            | AppInput::Files { .. } => Vec::new(),
        }
    }

    /// An effect that sends a request to the hub.
    pub(crate) fn request(&mut self, request: HubRequest) -> AppEffect {
        self.last_request = RequestNumber(self.last_request.0 + 1);
        AppEffect::Hub(self.last_request, request)
    }

    fn on_hub_update(&mut self, update: HubUpdate) -> Vec<AppEffect> {
        if let HubUpdate::Connection(connection) = update {
            self.connection = connection;
        }
        Vec::new()
    }
}
