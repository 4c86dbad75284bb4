//! Handles one input: routes it to the parts that it concerns, and lays the parts out again if the page has changed.

use super::{AppState, HelpState, frame_layout};
use crate::{
    board::BoardState,
    hub::{ConnectionState, HubUpdate},
    inbox::InboxState,
    keymap::{KeyAction, KeyContext},
    page::{ActivePage, AppEffect, AppInput, PageChange, UpdateContext},
    session::SessionView,
};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEvent};
use jackfield_events::Time;

/// How long a notice is shown.
const NOTICE_MS: u64 = 4_000;

impl AppState {
    /// Changes the state, and returns what is to be done.
    pub(crate) fn update(&mut self, now: Time, input: AppInput) -> Vec<AppEffect> {
        self.now = now;
        let mut effects = Vec::new();
        match input {
            AppInput::Resize { width, height } => self.size = (width, height),
            AppInput::Key(key) => self.on_key(key, &mut effects),
            AppInput::Hub(update) => self.on_hub_update(update, &mut effects),
            AppInput::Tick => self.on_tick(&mut effects),
            AppInput::Drawn => self.with_context(&mut effects, |app, cx| app.inbox.on_drawn(cx)),
            AppInput::Paste(_) => {
                self.with_context(&mut effects, |app, cx| app.inbox.on_typed(cx));
                self.send_to_page(&input, &mut effects);
            }
            AppInput::Mouse(mouse) => self.on_mouse(mouse, &mut effects),
            AppInput::EditedText(_) | AppInput::Files { .. } => {
                self.send_to_session(&input, &mut effects);
            }
            AppInput::SyntaxLoaded(language) => self.on_syntax_loaded(language, &mut effects),
        }
        self.lay_out(&mut effects);
        if let Some(loading) = &self.theme.syntax_loading {
            effects.extend(loading.take_needed().into_iter().map(AppEffect::LoadSyntax));
        }
        effects
    }

    /// Runs a part with a context, and applies what it asked for.
    pub(super) fn with_context(
        &mut self,
        effects: &mut Vec<AppEffect>,
        run: impl FnOnce(&mut AppParts<'_>, &mut UpdateContext<'_>),
    ) {
        let shared = (&self.options, &self.theme, &self.keymap);
        let mut cx = UpdateContext::new(
            self.now,
            shared,
            (self.page, self.page_size),
            &mut self.last_request,
        );
        let mut parts = AppParts {
            board: &mut self.board,
            session: &mut self.session,
            inbox: &mut self.inbox,
            help: &mut self.help,
        };
        run(&mut parts, &mut cx);
        let result = cx.into_result();
        effects.extend(result.effects);
        if let Some(text) = result.notice {
            self.show_notice(text, effects);
        }
        if let Some(change) = result.page_change {
            self.change_page(change, effects);
        }
    }

    pub(super) fn show_notice(&mut self, text: String, effects: &mut Vec<AppEffect>) {
        let until = self.now.plus(NOTICE_MS);
        self.notice = Some((text, until));
        effects.push(AppEffect::WakeAt(until));
    }

    fn on_key(&mut self, key: KeyEvent, effects: &mut Vec<AppEffect>) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.with_context(effects, |app, cx| app.inbox.on_typed(cx));
        if !self.on_global_key(key, effects) {
            self.send_to_page(&AppInput::Key(key), effects);
        }
    }

    /// What has the focus.
    pub(crate) fn key_context(&self) -> KeyContext {
        match (self.page, &self.session) {
            (ActivePage::Session, Some(session)) => session.focus(),
            (ActivePage::Board | ActivePage::Session, _) => self.board.key_context(),
            (ActivePage::Inbox, _) => self.inbox.key_context(),
            (ActivePage::Help, _) => KeyContext::Help,
        }
    }

    /// Whether the key was an action of every page.
    fn on_global_key(&mut self, key: KeyEvent, effects: &mut Vec<AppEffect>) -> bool {
        let action = self.keymap.action(self.key_context(), &key);
        let is_interrupt =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match action {
            Some(KeyAction::ShowHelp) if self.page == ActivePage::Help => {
                self.change_page(PageChange::Back, effects);
            }
            Some(KeyAction::ShowHelp) => self.change_page(PageChange::Help, effects),
            Some(KeyAction::ShowInbox) => self.change_page(PageChange::Inbox, effects),
            Some(KeyAction::Quit) => self.quit(effects),
            Some(KeyAction::Suspend) => effects.push(AppEffect::Suspend),
            Some(KeyAction::Redraw) => effects.push(AppEffect::Redraw),
            // Ctrl-C ends a program unless it has another meaning.
            None if is_interrupt && self.page != ActivePage::Session => self.quit(effects),
            _ => return false,
        }
        true
    }

    fn on_mouse(&mut self, mut mouse: MouseEvent, effects: &mut Vec<AppEffect>) {
        let page = frame_layout(self).page;
        if page.contains((mouse.column, mouse.row).into()) {
            mouse.column -= page.x;
            mouse.row -= page.y;
            self.send_to_page(&AppInput::Mouse(mouse), effects);
        }
    }

    /// Ends the interface. Deletions that could still be taken back are done now.
    fn quit(&mut self, effects: &mut Vec<AppEffect>) {
        self.with_context(effects, |app, cx| app.board.finish_deletions(cx));
        effects.push(AppEffect::Quit);
    }

    fn send_to_page(&mut self, input: &AppInput, effects: &mut Vec<AppEffect>) {
        match self.page {
            ActivePage::Board => self.with_context(effects, |app, cx| app.board.update(cx, input)),
            ActivePage::Inbox => self.with_context(effects, |app, cx| app.inbox.update(cx, input)),
            ActivePage::Session => self.send_to_session(input, effects),
            ActivePage::Help => self.with_context(effects, |app, cx| app.help.update(cx, input)),
        }
    }

    fn send_to_session(&mut self, input: &AppInput, effects: &mut Vec<AppEffect>) {
        self.with_context(effects, |app, cx| {
            if let Some(session) = app.session {
                session.update(cx, input);
            }
        });
    }

    fn on_hub_update(&mut self, update: HubUpdate, effects: &mut Vec<AppEffect>) {
        if let HubUpdate::Connection(connection) = &update {
            if matches!(self.connection, ConnectionState::Lost(_))
                && *connection == ConnectionState::Connected
            {
                self.show_notice("Connected again".to_owned(), effects);
            }
            self.connection = connection.clone();
        }
        let is_first_list = matches!(update, HubUpdate::Lists { .. }) && !self.board.has_lists();
        let is_for_inbox = matches!(&update, HubUpdate::LogPage(it) if self.inbox.awaits(it));
        let input = AppInput::Hub(update);
        self.with_context(effects, |app, cx| app.inbox.update(cx, &input));
        if is_for_inbox {
            return;
        }
        self.with_context(effects, |app, cx| app.board.update(cx, &input));
        self.send_to_session(&input, effects);
        if let Some(wanted) = self.options.session.clone().filter(|_| is_first_list) {
            self.open_named_session(&wanted, effects);
        }
    }

    /// What has code is rendered again.
    fn on_syntax_loaded(&mut self, language: String, effects: &mut Vec<AppEffect>) {
        if let Some(loading) = &self.theme.syntax_loading {
            loading.on_loaded(&language);
        }
        let input = AppInput::SyntaxLoaded(language);
        self.with_context(effects, |app, cx| app.inbox.update(cx, &input));
        self.send_to_session(&input, effects);
    }

    fn on_tick(&mut self, effects: &mut Vec<AppEffect>) {
        if self.notice.as_ref().is_some_and(|(_, until)| *until <= self.now) {
            self.notice = None;
        }
        self.with_context(effects, |app, cx| app.board.update(cx, &AppInput::Tick));
        self.with_context(effects, |app, cx| app.inbox.update(cx, &AppInput::Tick));
        self.send_to_session(&AppInput::Tick, effects);
    }

    /// Tells the parts the size of the page if it has changed.
    fn lay_out(&mut self, effects: &mut Vec<AppEffect>) {
        let page = frame_layout(self).page;
        if self.page_size == (page.width, page.height) {
            return;
        }
        self.page_size = (page.width, page.height);
        let (width, height) = self.page_size;
        let input = AppInput::Resize { width, height };
        self.with_context(effects, |app, cx| app.board.update(cx, &input));
        self.with_context(effects, |app, cx| app.inbox.update(cx, &input));
        self.with_context(effects, |app, cx| app.help.update(cx, &input));
        self.send_to_session(&input, effects);
    }
}

/// The parts that a context can be given to.
pub(super) struct AppParts<'a> {
    pub(super) board: &'a mut BoardState,
    pub(super) session: &'a mut Option<SessionView>,
    pub(super) inbox: &'a mut InboxState,
    pub(super) help: &'a mut HelpState,
}
