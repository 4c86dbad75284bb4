//! The keys of the board, the inbox and the help.

use super::ActivePage;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// An action of a page other than the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageAction {
    Quit,
    Suspend,
    Redraw,
    ShowHelp,
    ShowInbox,
    Back,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    NewSession,
    Fork,
    Close,
    Delete,
    Undo,
    Rename,
    Filter,
    NextRequest,
    PreviousRequest,
}

/// The action of a key on a page.
pub(crate) fn find_page_action(page: ActivePage, key: KeyEvent) -> Option<PageAction> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match (is_control, key.code) {
        (true, KeyCode::Char('z')) => return Some(PageAction::Suspend),
        (true, KeyCode::Char('l')) => return Some(PageAction::Redraw),
        (false, KeyCode::F(1)) => return Some(PageAction::ShowHelp),
        (false, KeyCode::F(2)) => return Some(PageAction::ShowInbox),
        _ if page == ActivePage::Session => return None,
        (true, KeyCode::Char('c')) => return Some(PageAction::Quit),
        _ => {}
    }
    let action = match (is_control, key.code) {
        (false, KeyCode::Char('?')) => PageAction::ShowHelp,
        (false, KeyCode::Char('q')) if page == ActivePage::Board => PageAction::Quit,
        (false, KeyCode::Esc | KeyCode::Char('q')) => PageAction::Back,
        (false, KeyCode::Up | KeyCode::Char('k')) => PageAction::Up,
        (false, KeyCode::Down | KeyCode::Char('j')) => PageAction::Down,
        (false, KeyCode::PageUp) | (true, KeyCode::Char('u')) => PageAction::PageUp,
        (false, KeyCode::PageDown) | (true, KeyCode::Char('d')) => PageAction::PageDown,
        (false, KeyCode::Home | KeyCode::Char('g')) => PageAction::First,
        (false, KeyCode::End | KeyCode::Char('G')) => PageAction::Last,
        (false, KeyCode::Char(letter)) if page == ActivePage::Board => match letter {
            'n' => PageAction::NewSession,
            'f' => PageAction::Fork,
            'c' => PageAction::Close,
            'd' => PageAction::Delete,
            'u' => PageAction::Undo,
            'r' => PageAction::Rename,
            'i' => PageAction::ShowInbox,
            '/' => PageAction::Filter,
            _ => return None,
        },
        (false, KeyCode::Enter) => PageAction::Open,
        (false, KeyCode::Tab) if page == ActivePage::Inbox => PageAction::NextRequest,
        (false, KeyCode::BackTab) if page == ActivePage::Inbox => PageAction::PreviousRequest,
        _ => return None,
    };
    Some(action)
}
