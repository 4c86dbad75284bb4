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
        let (width, height) = self.size;
        let Some(SessionOverlay::Detail(page)) = &mut self.overlay else { return };
        // The first line has the title.
        page.set_height(height.saturating_sub(1));
        let lines = match page.content() {
            DetailContent::Item => {
                let Some(item) = self.pane.selected_item() else { return };
                if !page.needs_lines(item.key, item.revision, width) {
                    return;
                }
                self.pane.selected_lines(width)
            }
            DetailContent::Clients => self.client_lines(cx.now, cx.theme),
        };
        if let Some(SessionOverlay::Detail(page)) = &mut self.overlay {
            page.set_lines(lines);
        }
    }

    fn client_lines(&self, now: Time, theme: &ViewTheme) -> Vec<Line<'static>> {
        let attached = self.row.clients;
        let clients = if attached == 1 { "client is" } else { "clients are" };
        let mut lines = vec![Line::from(format!("{attached} {clients} attached now."))];
        let names = self.row.client_names.iter();
        lines
            .extend(names.map(|it| Line::styled(format!("  {}", sanitize_line(it)), theme.strong)));
        lines.push(Line::default());
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
