//! What a part of the interface reads, and what it can do, while it handles an input.

use super::{ActivePage, AppEffect, ViewOptions};
use crate::{
    hub::{HubRequest, RequestNumber},
    keymap::KeyBindings,
    text::ViewTheme,
};
use jackfield_events::Time;

/// A change of the page that has the focus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageChange {
    Board,
    /// Opens this session.
    Session(String),
    Inbox,
    Help,
    /// Leaves the inbox or the help.
    Back,
}

/// Passed to `update` of each part. Effects are collected here.
#[derive(Debug)]
pub(crate) struct UpdateContext<'a> {
    pub(crate) now: Time,
    pub(crate) options: &'a ViewOptions,
    pub(crate) theme: &'a ViewTheme,
    pub(crate) keymap: &'a KeyBindings,
    /// The page that has the focus.
    pub(crate) page: ActivePage,
    /// The width and height of the page.
    pub(crate) page_size: (u16, u16),
    last_request: &'a mut RequestNumber,
    result: UpdateResult,
}

/// What a part asked for.
#[derive(Debug, Default)]
pub(crate) struct UpdateResult {
    pub(crate) effects: Vec<AppEffect>,
    pub(crate) notice: Option<String>,
    pub(crate) page_change: Option<PageChange>,
}

impl<'a> UpdateContext<'a> {
    pub(crate) fn new(
        now: Time,
        (options, theme, keymap): (&'a ViewOptions, &'a ViewTheme, &'a KeyBindings),
        (page, page_size): (ActivePage, (u16, u16)),
        last_request: &'a mut RequestNumber,
    ) -> UpdateContext<'a> {
        let result = UpdateResult::default();
        UpdateContext { now, options, theme, keymap, page, page_size, last_request, result }
    }

    /// Sends a request to the hub. Its outcome has this number.
    pub(crate) fn send(&mut self, request: HubRequest) -> RequestNumber {
        *self.last_request = RequestNumber(self.last_request.0 + 1);
        self.result.effects.push(AppEffect::Hub(*self.last_request, request));
        *self.last_request
    }

    pub(crate) fn push_effect(&mut self, effect: AppEffect) {
        self.result.effects.push(effect);
    }

    /// Shows one line for a few seconds.
    pub(crate) fn show_notice(&mut self, text: impl Into<String>) {
        self.result.notice = Some(text.into());
    }

    pub(crate) fn change_page(&mut self, change: PageChange) {
        self.result.page_change = Some(change);
    }

    pub(crate) fn into_result(self) -> UpdateResult {
        self.result
    }
}
