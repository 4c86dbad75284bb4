//! Rows, requests and a whole interface that the tests share.

use crate::{
    app::AppState,
    demo_settings::demo_settings,
    hub::{
        AgentEntry, AgentOverview, ConnectionState, HubUpdate, LogPage, LogRange, OpenRequest,
        RequestOption, SessionRow, SessionState,
    },
    keymap::KeyBindings,
    page::{AppEffect, AppInput, ViewOptions},
    transcript::test_log::TestLog,
    view::draw,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jackfield_events::Time;
use jackfield_protocol::parse_rfc3339;
use jackfield_views::UsageCost;
use ratatui::{Terminal, backend::TestBackend, layout::Position};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The time in the tests.
pub(crate) const NOW: &str = "2026-11-18T06:30:00.000Z";

/// An idle session without a title.
pub(crate) fn session_row(id: &str) -> SessionRow {
    SessionRow {
        session_id: id.to_owned(),
        agent: "claude".to_owned(),
        cwd: "/user/me/src/parser".to_owned(),
        state: SessionState::Idle,
        opened_at: "2026-11-18T06:00:00.000Z".to_owned(),
        updated_at: "2026-11-18T06:00:00.000Z".to_owned(),
        ..SessionRow::default()
    }
}

/// Installed agents.
pub(crate) fn demo_agents(names: &[&str]) -> AgentOverview {
    let remark = |name: &str| match name {
        "claude" => "2.1.325 (Claude Code), logged in",
        "chat" => "Jackfield's own agent; needs OPENAI_BASE_URL",
        _ => "/usr/local/bin/codex\u{1b}[2J",
    };
    let entry = |it: &&str| AgentEntry { name: (*it).to_owned(), remark: remark(it).to_owned() };
    AgentOverview { installed: names.iter().map(entry).collect(), suggested: Vec::new() }
}

/// Sessions in several projects and in all states.
pub(crate) fn demo_rows() -> Vec<SessionRow> {
    let row = |id: &str, agent: &str, cwd: &str, title: &str, state, updated: &str| SessionRow {
        agent: agent.to_owned(),
        cwd: cwd.to_owned(),
        title: Some(title.to_owned()),
        state,
        updated_at: updated.to_owned(),
        ..session_row(id)
    };
    let cost = |amount| Some(UsageCost { amount, currency: "USD".to_owned() });
    let (parser, shop) = ("/user/me/src/parser", "/user/me/work/shop");
    vec![
        SessionRow {
            asks: 1,
            doing: Some("waits for an answer to ask 1 for 2 min".to_owned()),
            cost: cost(0.4213),
            ..row("s-7f3a", "codex", parser, "Fix the lexer for nested comments", SessionState::Asks, "2026-11-18T06:28:00.000Z")
        },
        SessionRow {
            doing: Some("no output for 12 s; shell command `cargo test -p parser` running 1 min 4 s; process alive".to_owned()),
            cost: cost(1.5),
            queued: 2,
            ..row("s-91c2", "claude", parser, "Write property tests", SessionState::Working, "2026-11-18T06:29:58.000Z")
        },
        row("s-b204", "claude", parser, "Explain the grammar of expressions and where precedence is decided", SessionState::Idle, "2026-11-18T05:10:00.000Z"),
        SessionRow {
            name: Some("release notes".to_owned()),
            ..row("s-b2aa", "gemini", parser, "Summarize the changes since 0.4", SessionState::Asleep, "2026-11-15T08:00:00.000Z")
        },
        SessionRow {
            cost: cost(12.3),
            ..row("s-c001", "opencode", shop, "検索ページを速くする 🚀", SessionState::Working, "2026-11-18T06:29:30.000Z")
        },
        row("s-c002", "claude", shop, "Checkout\u{1b}[2J fails\nwith two coupons", SessionState::Idle, "2026-11-18T06:12:00.000Z"),
        row("s-c003", "claude", shop, "Old import", SessionState::Closed, "2026-11-02T06:12:00.000Z"),
        row("s-d001", "goose", "/srv/deployments/customers/northwind/infrastructure/terraform", "Plan the move to the new cluster", SessionState::Idle, "2026-11-18T03:00:00.000Z"),
    ]
}

fn form_schema() -> Value {
    json!({
        "type": "object",
        "required": ["branch"],
        "properties": {
            "branch": { "type": "string", "title": "Branch", "description": "The name of the new branch" },
            "reviewers": { "type": "integer", "title": "Reviewers", "minimum": 1 },
            "draft": { "type": "boolean", "title": "Draft" },
            "merge": { "type": "string", "title": "Merge by", "oneOf": [
                { "const": "squash", "title": "Squash" }, { "const": "rebase", "title": "Rebase" },
            ] },
            "labels": { "type": "array", "title": "Labels", "items": { "enum": ["bug", "docs", "test"] } },
        },
    })
}

/// A command, a change of a file, a form, and a page to open.
pub(crate) fn demo_requests() -> Vec<OpenRequest> {
    let option = |option_id: &str, name: &str, kind: &str| RequestOption {
        option_id: option_id.to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
    };
    let request = |session: &str, agent: &str, minute: u32| OpenRequest {
        session_id: session.to_owned(),
        number: 1,
        agent: agent.to_owned(),
        since: format!("2026-11-18T06:{minute:02}:00.000Z"),
        method: "session/request_permission".to_owned(),
        ..OpenRequest::default()
    };
    let form = || "elicitation/create".to_owned();
    vec![
        OpenRequest {
            what: Some("Run the tests of the parser".to_owned()),
            kind: Some("execute".to_owned()),
            tool_call_id: Some("call-1".to_owned()),
            call: Some(json!({
                "kind": "execute",
                "commands": ["cargo test -p parser --all-features -- --nocapture nested_comments && git push origin main"],
                "cwd": "/user/me/src/parser",
                "why": "no rule matches `git push origin main`",
                "always": "allows exactly this line: `cargo test -p parser`, in this session",
            })),
            options: vec![
                option("once", "Allow once", "allow_once"),
                option("always", "Always allow", "allow_always"),
                option("no", "Reject", "reject_once"),
            ],
            ..request("s-7f3a", "codex", 28)
        },
        OpenRequest {
            what: Some("Edit search.ts".to_owned()),
            kind: Some("edit".to_owned()),
            tool_call_id: Some("call-2".to_owned()),
            call: Some(json!({
                "kind": "edit", "paths": ["/user/me/work/shop/src/search.ts"], "cwd": "/user/me/work/shop",
                "why": "the rule `ask-edits` asks for every change",
            })),
            options: vec![
                option("yes", "Yes", "allow_once"),
                option("no", "Reject", "reject_once"),
            ],
            ..request("s-c001", "opencode", 29)
        },
        OpenRequest {
            method: form(),
            what: Some("How should the pull request be opened?".to_owned()),
            requested_schema: Some(form_schema()),
            ..request("s-91c2", "claude", 29)
        },
        OpenRequest {
            method: form(),
            what: Some("Log in to the registry of packages.".to_owned()),
            url: Some("https://login.example.org/device?code=ABCD-1234".to_owned()),
            ..request("s-d001", "goose", 29)
        },
    ]
}

/// The end of the log of the session whose agent wants to change a file.
pub(crate) fn diff_page() -> LogPage {
    let old = "export function search(query: string) {\n  let limit = 20;\n  return run(query, limit);\n}\n";
    let new = old.replace("20", "50");
    let path = "/user/me/work/shop/src/search.ts";
    let diff = json!([{ "type": "diff", "path": path, "oldText": old, "newText": new }]);
    let mut log = TestLog::default();
    log.opened()
        .prompt("Show more results")
        .call("call-2", json!({ "title": "Edit search.ts", "content": diff }));
    log.ask(&json!({ "toolCallId": "call-2" }));
    let end = log.events.len() as u64;
    let session = "s-c001".to_owned();
    LogPage { session, range: LogRange::End, events: log.events, bounds: Some((1, end)), end }
}

/// The same in a fleet.
pub(crate) fn fleet_rows() -> Vec<SessionRow> {
    let hosts = ["build-1", "build-2", "gpu-west-europe-3"];
    let rows = demo_rows().into_iter().zip(hosts.into_iter().cycle());
    rows.map(|(row, host)| SessionRow { host: Some(host.to_owned()), ..row }).collect()
}

pub(crate) fn key(code: KeyCode) -> AppInput {
    AppInput::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

pub(crate) fn control_key(letter: char) -> AppInput {
    AppInput::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL))
}

/// An interface with a clock that the test moves.
pub(crate) struct TestApp {
    pub(crate) state: AppState,
    pub(crate) now: Time,
}

impl TestApp {
    /// Connected, without the lists of the hub.
    pub(crate) fn new(width: u16, height: u16) -> TestApp {
        let options = ViewOptions {
            home: Some("/user/me".to_owned()),
            cwd: "/user/me/src/parser".to_owned(),
            ..ViewOptions::default()
        };
        let now = Time(parse_rfc3339(NOW).unwrap());
        let state = AppState::new(options, KeyBindings::default(), (width, height), now);
        let mut app = TestApp { state, now };
        app.send(AppInput::Resize { width, height });
        app.hub(HubUpdate::Connection(ConnectionState::Connected));
        app
    }

    /// With these lists.
    pub(crate) fn with_lists(
        (width, height): (u16, u16),
        sessions: Vec<SessionRow>,
        requests: Vec<OpenRequest>,
    ) -> TestApp {
        let mut app = TestApp::new(width, height);
        app.hub(HubUpdate::Lists { sessions, requests });
        app
    }

    pub(crate) fn send(&mut self, input: AppInput) -> Vec<AppEffect> {
        self.state.update(self.now, input)
    }

    pub(crate) fn hub(&mut self, update: HubUpdate) -> Vec<AppEffect> {
        self.send(AppInput::Hub(update))
    }

    /// New or different rows.
    pub(crate) fn change_rows(&mut self, sessions: Vec<SessionRow>) -> Vec<AppEffect> {
        self.hub(HubUpdate::Changes {
            sessions,
            requests: Vec::new(),
            removed: Vec::new(),
            answered: Vec::new(),
        })
    }

    /// New or different requests.
    pub(crate) fn add_requests(&mut self, requests: Vec<OpenRequest>) -> Vec<AppEffect> {
        self.hub(HubUpdate::Changes {
            sessions: Vec::new(),
            requests,
            removed: Vec::new(),
            answered: Vec::new(),
        })
    }

    /// Waits until keys answer the request that is shown.
    pub(crate) fn be_quiet(&mut self) {
        self.send(AppInput::Drawn);
        self.pass_ms(500);
    }

    /// Presses the keys of a text one after the other.
    pub(crate) fn type_text(&mut self, text: &str) -> Vec<AppEffect> {
        text.chars().flat_map(|it| self.send(key(KeyCode::Char(it)))).collect()
    }

    pub(crate) fn press(&mut self, code: KeyCode) -> Vec<AppEffect> {
        self.send(key(code))
    }

    /// Moves the clock, and sends a tick.
    pub(crate) fn pass_ms(&mut self, ms: u64) -> Vec<AppEffect> {
        self.now = self.now.plus(ms);
        self.send(AppInput::Tick)
    }

    /// Draws a frame as `terminal` does, and returns its text without spaces at the ends of lines.
    pub(crate) fn draw(&mut self) -> String {
        let (width, height) = self.state.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&self.state, frame)).unwrap();
        self.state.update(self.now, AppInput::Drawn);
        let cursor = terminal.get_cursor_position().unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(usize::from(width.max(1)));
        let mut text = String::new();
        for cells in lines {
            let mut skipped = 0;
            let mut line = String::new();
            for cell in cells {
                if skipped == 0 {
                    line.push_str(cell.symbol());
                    skipped = crate::text::cell_width(cell.symbol()).max(1);
                }
                skipped -= 1;
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if cursor != Position::ORIGIN {
            let _ = writeln!(text, "cursor: column {}, line {}", cursor.x, cursor.y);
        }
        text
    }
}

/// Makes a test for each state and each size: the drawn frame equals its snapshot.
macro_rules! frame_tests {
    ($($name:ident: $build:expr,)*) => {
        $(
            mod $name {
                #[allow(unused_imports, reason = "not all states need all imports")]
                use super::*;

                $crate::test_data::frame_tests!(@size $name, at_40x12, 40, 12, $build);
                $crate::test_data::frame_tests!(@size $name, at_60x15, 60, 15, $build);
                $crate::test_data::frame_tests!(@size $name, at_80x24, 80, 24, $build);
                $crate::test_data::frame_tests!(@size $name, at_120x40, 120, 40, $build);
                $crate::test_data::frame_tests!(@size $name, at_200x60, 200, 60, $build);
            }
        )*
    };
    (@size $name:ident, $test:ident, $width:literal, $height:literal, $build:expr) => {
        #[test]
        fn $test() {
            let build: fn((u16, u16)) -> $crate::test_data::TestApp = $build;
            let name = concat!(stringify!($name), "_", $width, "x", $height);
            $crate::test_data::check_frame(name, build(($width, $height)));
        }
    };
}
pub(crate) use frame_tests;

/// Compares a frame with its snapshot in `view/snapshots`.
pub(crate) fn check_frame(name: &str, mut app: TestApp) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/src/view/snapshots"));
    settings.bind(|| insta::assert_snapshot!(name, app.draw()));
}

/// The only session of the hub, opened, with its log, its settings and its queue.
pub(crate) fn open_session(size: (u16, u16), row: SessionRow, log: &TestLog) -> TestApp {
    open_session_with_keys(size, row, log, KeyBindings::default())
}

/// The same with other keys.
pub(crate) fn open_session_with_keys(
    size: (u16, u16),
    row: SessionRow,
    log: &TestLog,
    keymap: KeyBindings,
) -> TestApp {
    let session = row.session_id.clone();
    let mut app = TestApp::with_lists(size, vec![row], Vec::new());
    app.state.keymap = keymap;
    app.press(KeyCode::Enter);
    let end = log.events.len() as u64;
    app.hub(HubUpdate::LogPage(LogPage {
        session: session.clone(),
        range: LogRange::End,
        events: log.events.clone(),
        bounds: (end > 0).then_some((1, end)),
        end,
    }));
    let settings = Box::new(demo_settings());
    app.hub(HubUpdate::Settings { session: session.clone(), settings });
    app.hub(HubUpdate::Queue { session, prompts: Vec::new() });
    app
}
