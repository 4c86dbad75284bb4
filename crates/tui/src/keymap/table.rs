//! The table of all actions.

use super::{KeyAction, KeyContext};
use KeyContext::{
    Board, BoardFilter, Composer, Detail, Help, Inbox, LineInput, Picker, Queue, Session,
};

/// One action: its name in `config.toml`, where it applies, and its keys.
#[derive(Debug)]
pub(crate) struct ActionRow {
    pub(crate) action: KeyAction,
    pub(crate) name: &'static str,
    pub(crate) contexts: &'static [KeyContext],
    /// In a context that takes text, keys that are characters have no effect.
    pub(crate) default_keys: &'static [&'static str],
    /// The word in the footer; empty if it is not shown there.
    pub(crate) hint: &'static str,
    pub(crate) meaning: &'static str,
}

const fn row(
    action: KeyAction,
    name: &'static str,
    contexts: &'static [KeyContext],
    default_keys: &'static [&'static str],
    hint: &'static str,
    meaning: &'static str,
) -> ActionRow {
    ActionRow { action, name, contexts, default_keys, hint, meaning }
}

const LISTS: &[KeyContext] = &[Board, BoardFilter, Session, Queue, Detail, Picker, Inbox, Help];
const PAGES: &[KeyContext] =
    &[Board, BoardFilter, Session, Composer, Queue, Detail, Picker, LineInput, Inbox, Help];

/// All actions, in the order of the help. In the footer, an action that comes first is shown first.
#[rustfmt::skip]
pub(crate) const ACTIONS: &[ActionRow] = &[
    row(KeyAction::SendPrompt, "composer.send", &[Composer], &["enter"], "send", "Sends the prompt, or queues it while a turn runs."),
    row(KeyAction::InsertNewline, "composer.newline", &[Composer], &["alt-enter", "shift-enter", "ctrl-j"], "new line", "Starts a new line. A backslash at the end of the line and the key of composer.send do the same."),
    row(KeyAction::CancelTurn, "session.cancel", &[Session, Composer, Queue], &["ctrl-c"], "cancel", "Cancels the running turn. In the input field, it clears the text first."),
    row(KeyAction::SteerPrompt, "composer.steer", &[Composer], &["alt-s", "ctrl-enter"], "steer", "Cancels the running turn and sends the prompt instead."),
    row(KeyAction::FocusTranscript, "composer.leave", &[Composer], &["esc"], "transcript", "Moves the focus to the transcript."),
    row(KeyAction::EditExternally, "composer.external_editor", &[Composer], &["ctrl-g"], "$EDITOR", "Opens the text in the program that $VISUAL or $EDITOR names. Ctrl-X Ctrl-E does the same in emacs editing."),
    row(KeyAction::HistoryPrevious, "composer.history_previous", &[Composer], &["ctrl-p"], "", "Shows the prompt before. The arrow up does the same in the first line."),
    row(KeyAction::HistoryNext, "composer.history_next", &[Composer], &["ctrl-n"], "", "Shows the prompt after. The arrow down does the same in the last line."),
    row(KeyAction::Complete, "composer.complete", &[Composer], &["tab"], "", "Inserts the selected file or command; moves the focus to the transcript if none is shown."),
    row(KeyAction::MovePageUp, "composer.page_up", &[Composer], &["pageup"], "", "Scrolls the transcript up by a page."),
    row(KeyAction::MovePageDown, "composer.page_down", &[Composer], &["pagedown"], "", "Scrolls the transcript down by a page."),
    row(KeyAction::MoveFirst, "composer.first", &[Composer], &["ctrl-home"], "", "Scrolls the transcript to its beginning."),
    row(KeyAction::MoveLast, "composer.last", &[Composer], &["ctrl-end"], "", "Scrolls the transcript to its end."),

    row(KeyAction::OpenSession, "board.open", &[Board, BoardFilter], &["enter", "l"], "open", "Opens the selected session."),
    row(KeyAction::NewSession, "board.new", &[Board], &["n"], "new", "Starts a session with the default agent in this directory."),
    row(KeyAction::NewSessionWithAgent, "board.new_with_agent", &[Board], &["N"], "", "Starts a session with an agent from a list."),
    row(KeyAction::FilterBoard, "board.filter", &[Board], &["/"], "filter", "Filters the sessions by the characters of their title, directory, agent and state."),
    row(KeyAction::CloseSession, "board.close", &[Board], &["c"], "close", "Closes the session and stops its agent; its log is kept."),
    row(KeyAction::DeleteSession, "board.delete", &[Board], &["d", "delete"], "delete", "Deletes the session after 5 seconds, in which board.undo takes it back."),
    row(KeyAction::UndoDelete, "board.undo", &[Board], &["u"], "", "Takes back the last deletion."),
    row(KeyAction::ForkSession, "board.fork", &[Board], &["f"], "fork", "Copies the session into a new one."),
    row(KeyAction::ToggleGroup, "board.toggle_group", &[Board], &["space"], "", "Hides or shows the sessions of the group."),
    row(KeyAction::ToggleClosed, "board.toggle_closed", &[Board], &["h"], "", "Shows or hides closed sessions."),
    row(KeyAction::CopySessionId, "board.copy_id", &[Board], &["y"], "", "Copies the id of the session."),

    row(KeyAction::AllowOnce, "inbox.allow_once", &[Inbox], &["y"], "allow", "Chooses the first option that allows the call once."),
    row(KeyAction::AllowAlways, "inbox.allow_always", &[Inbox], &["a"], "always", "Chooses the first option that allows such calls always."),
    row(KeyAction::RejectOnce, "inbox.reject_once", &[Inbox], &["n"], "reject", "Chooses the first option that rejects the call once."),
    row(KeyAction::RejectAlways, "inbox.reject_always", &[Inbox], &["N"], "", "Chooses the first option that rejects such calls always."),
    row(KeyAction::NextRequest, "inbox.next", &[Inbox], &["tab", "right"], "next", "Shows the next request."),
    row(KeyAction::PreviousRequest, "inbox.previous", &[Inbox], &["shift-tab", "left"], "", "Shows the request before."),
    row(KeyAction::OpenRequestSession, "inbox.open_session", &[Inbox], &["o"], "session", "Opens the session of the request."),

    row(KeyAction::FocusComposer, "session.write", &[Session], &["i", "tab", "a"], "write", "Moves the focus to the input field."),
    row(KeyAction::ToggleItem, "session.toggle_item", &[Session], &["space", "right", "left"], "fold", "Folds or unfolds the selected item."),
    row(KeyAction::ShowDetail, "session.detail", &[Session], &["enter"], "details", "Shows the selected item in full."),
    row(KeyAction::NextItem, "session.next_item", &[Session], &["J", "shift-down", "]"], "", "Selects the next item."),
    row(KeyAction::PreviousItem, "session.previous_item", &[Session], &["K", "shift-up", "["], "", "Selects the item before."),
    row(KeyAction::ToggleAllItems, "session.toggle_all", &[Session, Composer], &["e", "alt-e"], "", "Unfolds all tool calls and thoughts, or folds them."),
    row(KeyAction::FindText, "session.find", &[Session, Composer], &["/", "ctrl-s"], "find", "Finds a text in the transcript."),
    row(KeyAction::FindNext, "session.find_next", &[Session], &["n"], "", "Shows the next match."),
    row(KeyAction::FindPrevious, "session.find_previous", &[Session], &["N"], "", "Shows the match before."),
    row(KeyAction::CopyItem, "session.copy_item", &[Session, Detail], &["y"], "copy", "Copies the text of the selected item."),
    row(KeyAction::CopyLastMessage, "session.copy_message", &[Session, Composer], &["Y", "alt-c"], "", "Copies the last message of the agent."),
    row(KeyAction::CopyCode, "session.copy_code", &[Session, Composer, Detail], &["C", "alt-k"], "", "Copies the last code block of the selected item, or of the last message."),
    row(KeyAction::ForkFromItem, "session.fork", &[Session], &["f"], "fork", "Copies the session up to the selected item into a new session."),
    row(KeyAction::RenameSession, "session.rename", &[Session, Composer, Board], &["r", "alt-r"], "", "Renames the session."),
    row(KeyAction::FocusQueue, "session.queue", &[Session, Composer], &["w", "alt-q"], "queue", "Moves the focus to the queued prompts."),
    row(KeyAction::NextMode, "session.next_mode", &[Composer], &["shift-tab"], "", "Changes to the next mode of the agent."),
    row(KeyAction::PickMode, "session.mode", &[Session, Composer], &["m", "alt-m"], "mode", "Changes the mode of the agent."),
    row(KeyAction::PickModel, "session.model", &[Session, Composer], &["o", "alt-o"], "model", "Changes the model."),
    row(KeyAction::PickReasoning, "session.reasoning", &[Session, Composer], &["t", "alt-t"], "", "Changes the reasoning effort."),
    row(KeyAction::ShowClients, "session.clients", &[Session, Composer], &["u", "alt-u"], "", "Lists the attached clients."),
    row(KeyAction::PrintTranscript, "session.print", &[Session, Composer], &["p", "alt-p"], "", "Prints the transcript into the scrollback of the terminal."),

    row(KeyAction::WithdrawPrompt, "queue.withdraw", &[Queue], &["d", "delete"], "withdraw", "Withdraws the selected prompt."),
    row(KeyAction::EditPrompt, "queue.edit", &[Queue], &["e"], "edit", "Withdraws the selected prompt and puts its text into the input field."),
    row(KeyAction::MovePromptUp, "queue.move_up", &[Queue], &["K", "shift-up"], "move up", "Moves the selected prompt up."),
    row(KeyAction::MovePromptDown, "queue.move_down", &[Queue], &["J", "shift-down"], "move down", "Moves the selected prompt down."),
    row(KeyAction::RunHeldPrompt, "queue.run", &[Queue], &["r"], "run", "Runs a prompt that a restart of the daemon left in the queue."),

    row(KeyAction::Accept, "list.accept", &[Picker, LineInput, Queue], &["enter"], "accept", "Chooses the selected entry, or confirms the text."),
    row(KeyAction::MoveDown, "move.down", LISTS, &["down", "j", "ctrl-n"], "", "Moves down by one line or entry."),
    row(KeyAction::MoveUp, "move.up", LISTS, &["up", "k", "ctrl-p"], "", "Moves up by one line or entry."),
    row(KeyAction::MovePageDown, "move.page_down", LISTS, &["pagedown", "ctrl-f"], "", "Moves down by a page."),
    row(KeyAction::MovePageUp, "move.page_up", LISTS, &["pageup", "ctrl-b"], "", "Moves up by a page."),
    row(KeyAction::MoveFirst, "move.first", LISTS, &["home", "g", "ctrl-home"], "", "Moves to the beginning."),
    row(KeyAction::MoveLast, "move.last", LISTS, &["end", "G", "ctrl-end"], "", "Moves to the end."),

    row(KeyAction::GoBack, "app.back", &[Board, BoardFilter, Session, Queue, Detail, Picker, LineInput, Inbox, Help], &["esc", "q"], "back", "Closes what is open, or returns to the page before; on the board, it ends the program."),
    row(KeyAction::ShowInbox, "app.inbox", &[Board, BoardFilter, Session, Composer, Queue, Detail], &["!", "f2", "alt-i"], "inbox", "Shows the open requests of the agents."),
    row(KeyAction::ShowHelp, "app.help", PAGES, &["?", "f1"], "help", "Shows all keys."),
    row(KeyAction::Redraw, "app.redraw", PAGES, &["ctrl-l"], "", "Draws the screen again."),
    row(KeyAction::Suspend, "app.suspend", PAGES, &["ctrl-z"], "", "Suspends the program, as in a shell."),
    row(KeyAction::Quit, "app.quit", PAGES, &["ctrl-q"], "quit", "Ends the program; sessions keep running."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn documentation_lists_every_action_with_its_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tui.md");
        let text = fs::read_to_string(path).unwrap();
        let section = text.split("## Keys").nth(1).unwrap().split("\n## ").next().unwrap();
        let listed: Vec<&str> = section.lines().filter(|it| it.starts_with("| `")).collect();
        let row = |it: &ActionRow| {
            let keys: Vec<_> = it.default_keys.iter().map(|it| format!("`{it}`")).collect();
            format!("| `{}` | {} | {} |", it.name, keys.join(", "), it.meaning)
        };
        assert_eq!(listed, ACTIONS.iter().map(row).collect::<Vec<_>>());
    }
}
