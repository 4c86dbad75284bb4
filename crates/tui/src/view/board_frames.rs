//! Snapshots of the board in several sizes.

use crate::{
    hub::{AgentEntry, AgentOverview, ConnectionState, HubUpdate, SessionRow, SessionState},
    test_data::{TestApp, demo_agents, demo_rows, fleet_rows, frame_tests, session_row},
};
use crossterm::event::KeyCode;

fn board(size: (u16, u16)) -> TestApp {
    TestApp::with_lists(size, demo_rows(), Vec::new())
}

fn press_all(mut app: TestApp, keys: &[KeyCode]) -> TestApp {
    for key in keys {
        app.press(*key);
    }
    app
}

fn many_rows() -> Vec<SessionRow> {
    let states = [SessionState::Idle, SessionState::Working, SessionState::Asleep];
    let row = |index: usize| SessionRow {
        title: Some(format!("Task number {index}")),
        cwd: format!("/user/me/src/project-{}", index / 25),
        state: states[index % 3],
        opened_at: format!("2026-11-17T{:02}:{:02}:00.000Z", index / 60 % 24, index % 60),
        updated_at: format!("2026-11-18T{:02}:{:02}:00.000Z", index / 60 % 6, index % 60),
        ..session_row(&format!("s-{index:05}"))
    };
    (0..500).map(row).collect()
}

frame_tests! {
    board_before_lists: |size| TestApp::new(size.0, size.1),
    board_without_sessions: |size| TestApp::with_lists(size, Vec::new(), Vec::new()),
    board_with_agents_only: |size| {
        let mut app = TestApp::with_lists(size, Vec::new(), Vec::new());
        app.hub(HubUpdate::Agents(demo_agents(&["claude", "codex", "chat"])));
        app
    },
    board_without_agents: |size| {
        let mut app = TestApp::with_lists(size, Vec::new(), Vec::new());
        let entry = |name: &str| AgentEntry {
            name: name.to_owned(),
            remark: format!("jackfield agents install {name}"),
        };
        let suggested = ["claude", "codex", "opencode"].map(entry).to_vec();
        app.hub(HubUpdate::Agents(AgentOverview { suggested, ..demo_agents(&["chat"]) }));
        app
    },
    board_with_closed_sessions_only: |size| {
        let closed = |it: &str| SessionRow { state: SessionState::Closed, ..session_row(it) };
        TestApp::with_lists(size, vec![closed("s-1"), closed("s-2")], Vec::new())
    },
    board_with_projects: board,
    board_in_a_fleet: |size| TestApp::with_lists(size, fleet_rows(), Vec::new()),
    board_with_closed_sessions: |size| press_all(board(size), &[KeyCode::Char('h'), KeyCode::End]),
    board_with_collapsed_project: |size| {
        press_all(board(size), &[KeyCode::Down, KeyCode::Char(' ')])
    },
    board_filtered: |size| {
        let mut app = board(size);
        app.type_text("/lex");
        app
    },
    board_filter_without_match: |size| {
        let mut app = board(size);
        app.type_text("/zzzz");
        app
    },
    board_new_session: |size| {
        let mut app = board(size);
        app.type_text("N");
        app.hub(HubUpdate::Agents(demo_agents(&["claude", "codex", "gemini", "opencode"])));
        press_all(app, &[KeyCode::Down, KeyCode::Down])
    },
    board_rename: |size| press_all(board(size), &[KeyCode::Down, KeyCode::Char('r')]),
    board_confirm_close: |size| press_all(board(size), &[KeyCode::Char('c')]),
    board_deleted_session: |size| press_all(board(size), &[KeyCode::Down, KeyCode::Char('d')]),
    board_connection_lost: |size| {
        let mut app = board(size);
        let why = "the daemon closed the connection while it was stopping".to_owned();
        app.hub(HubUpdate::Connection(ConnectionState::Lost(why)));
        app
    },
    board_with_500_sessions: |size| {
        let mut app = TestApp::with_lists(size, many_rows(), Vec::new());
        app.press(KeyCode::PageDown);
        app
    },
    help_of_the_board: |size| press_all(board(size), &[KeyCode::Char('?')]),
}
