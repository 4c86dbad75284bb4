//! The lines of the page above a session.

use super::{DetailContent, SessionOverlay, SessionView};
use crate::{
    page::UpdateContext,
    text::{ViewTheme, format_age, sanitize_line},
};
use jackfield_events::Time;
use ratatui::text::{Line, Span};

impl SessionView {
    /// Renders the open page for its size.
    pub(super) fn lay_out_detail(&mut self, cx: &UpdateContext<'_>) {
        let Some(SessionOverlay::Detail(page)) = &self.overlay else { return };
        let (width, height) = self.size;
        let lines = match page.content() {
            DetailContent::Item => self.pane.selected_lines(width),
            DetailContent::Clients => self.client_lines(cx.now, cx.theme),
        };
        if let Some(SessionOverlay::Detail(page)) = &mut self.overlay {
            // The first line has the title.
            page.set_lines(lines, height.saturating_sub(1));
        }
    }

    fn client_lines(&self, now: Time, theme: &ViewTheme) -> Vec<Line<'static>> {
        let attached = self.row.clients;
        let clients = if attached == 1 { "client is" } else { "clients are" };
        let mut lines =
            vec![Line::from(format!("{attached} {clients} attached now.")), Line::default()];
        let rows = self.clients.rows();
        if rows.is_empty() {
            lines.push(Line::styled("The loaded transcript has no prompts.", theme.dim));
            return lines;
        }
        lines.push(Line::styled("In the loaded transcript:", theme.dim));
        for row in rows {
            let count = |count: u64, one: &str| match count {
                1 => format!("1 {one}"),
                count => format!("{count} {one}s"),
            };
            let acts =
                format!("{}, {}", count(row.prompts, "prompt"), count(row.answers, "answer"));
            let age = format_age(now.0.saturating_sub(row.last_at.0));
            lines.push(Line::from(vec![
                Span::styled(format!("  {}", sanitize_line(&row.name)), theme.strong),
                Span::styled(format!("  {acts}, last {age}"), theme.dim),
            ]));
        }
        lines
    }
}
