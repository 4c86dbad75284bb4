//! Everything that a key can do, and where.

/// What has the focus. It decides which actions a key can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyContext {
    Board,
    /// The filter of the board: characters are text.
    BoardFilter,
    /// The transcript of a session.
    Session,
    /// The input field of a session: characters are text.
    Composer,
    /// The list of queued prompts.
    Queue,
    /// One item of the transcript on a page of its own.
    Detail,
    /// A list to choose from, with a filter: characters are text.
    Picker,
    /// The line in which a text to find, or a name, is typed: characters are text.
    LineInput,
    Inbox,
    Help,
}

impl KeyContext {
    pub(crate) const ALL: &'static [KeyContext] = &[
        KeyContext::Board,
        KeyContext::BoardFilter,
        KeyContext::Session,
        KeyContext::Composer,
        KeyContext::Queue,
        KeyContext::Detail,
        KeyContext::Picker,
        KeyContext::LineInput,
        KeyContext::Inbox,
        KeyContext::Help,
    ];

    /// Whether characters without Ctrl or Alt are text, and never actions.
    pub(crate) fn takes_text(self) -> bool {
        matches!(
            self,
            KeyContext::BoardFilter
                | KeyContext::Composer
                | KeyContext::Picker
                | KeyContext::LineInput
        )
    }

    /// The name of the context in messages and in the help.
    pub(crate) fn label(self) -> &'static str {
        match self {
            KeyContext::Board => "board",
            KeyContext::BoardFilter => "filter of the board",
            KeyContext::Session => "transcript",
            KeyContext::Composer => "input field",
            KeyContext::Queue => "queue",
            KeyContext::Detail => "details of an item",
            KeyContext::Picker => "list of choices",
            KeyContext::LineInput => "input line",
            KeyContext::Inbox => "inbox",
            KeyContext::Help => "help",
        }
    }
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyAction {
    Quit,
    ShowHelp,
    ShowInbox,
    Suspend,
    Redraw,
    /// Returns to the page before, or closes what is open on the page.
    GoBack,

    MoveDown,
    MoveUp,
    MovePageDown,
    MovePageUp,
    MoveFirst,
    MoveLast,
    /// Chooses the selected entry, or confirms the typed text.
    Accept,

    OpenSession,
    NewSession,
    /// Asks for the agent of the new session.
    NewSessionWithAgent,
    FilterBoard,
    ForkSession,
    CloseSession,
    DeleteSession,
    UndoDelete,
    RenameSession,
    ToggleGroup,
    ToggleClosed,
    CopySessionId,

    FocusComposer,
    FocusTranscript,
    FocusQueue,
    CancelTurn,
    NextItem,
    PreviousItem,
    ToggleItem,
    ToggleAllItems,
    ShowDetail,
    CopyItem,
    CopyLastMessage,
    CopyCode,
    ForkFromItem,
    FindText,
    FindNext,
    FindPrevious,
    PrintTranscript,
    ShowClients,
    PickMode,
    NextMode,
    PickModel,
    PickReasoning,

    SendPrompt,
    SteerPrompt,
    InsertNewline,
    EditExternally,
    HistoryPrevious,
    HistoryNext,
    /// Takes the selected completion, or moves the focus if there is none.
    Complete,

    MovePromptUp,
    MovePromptDown,
    WithdrawPrompt,
    RunHeldPrompt,
    EditPrompt,

    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    NextRequest,
    PreviousRequest,
    OpenRequestSession,
}
