//! Editing with the keys of vi: the commands of normal mode.

use super::{EditorReply, TextEditor};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::ops::Range;

/// The mode of vi, and what was typed of a command.
#[derive(Debug)]
pub(crate) struct ViState {
    pub(super) is_inserting: bool,
    /// The count before a command; 0 if none was typed.
    count: usize,
    /// `d`, `c` or `y` with its count.
    operator: Option<(char, usize)>,
    /// `g` or `r`, which need another key.
    prefix: Option<char>,
    register: ViRegister,
}

/// What `p` inserts.
#[derive(Debug, Default)]
struct ViRegister {
    text: String,
    has_lines: bool,
}

/// How far an operator reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MotionKind {
    Exclusive,
    Inclusive,
    Lines,
}

const COUNT_MAX: usize = 9_999;

impl Default for ViState {
    fn default() -> ViState {
        let register = ViRegister::default();
        ViState { is_inserting: true, count: 0, operator: None, prefix: None, register }
    }
}

impl ViState {
    /// Whether a command was typed in part.
    pub(super) fn is_pending(&self) -> bool {
        self.count > 0 || self.operator.is_some() || self.prefix.is_some()
    }

    fn reset(&mut self) {
        (self.count, self.operator, self.prefix) = (0, None, None);
    }
}

impl TextEditor {
    pub(super) fn on_vi_key(&mut self, key: &KeyEvent) -> EditorReply {
        let goal = self.goal_column();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(vi) = &mut self.vi else { return EditorReply::Ignored };
        match key.code {
            KeyCode::Char('r') if is_control => {
                vi.reset();
                self.start_command();
                self.redo();
                return self.finish_command(EditorReply::Changed);
            }
            KeyCode::Esc => {
                let was_pending = vi.is_pending();
                vi.reset();
                return if was_pending { EditorReply::Moved } else { EditorReply::Ignored };
            }
            _ if is_control || key.modifiers.contains(KeyModifiers::ALT) => {
                return EditorReply::Ignored;
            }
            _ => {}
        }
        let char = match key.code {
            KeyCode::Char(char) => char,
            KeyCode::Left | KeyCode::Backspace => 'h',
            KeyCode::Right => 'l',
            KeyCode::Up => 'k',
            KeyCode::Down => 'j',
            KeyCode::Home => '0',
            KeyCode::End => '$',
            KeyCode::Delete => 'x',
            _ => return EditorReply::Ignored,
        };
        self.on_command_char(char, goal)
    }

    /// Leaves insert mode.
    pub(super) fn end_insertion(&mut self) -> EditorReply {
        if let Some(vi) = &mut self.vi {
            vi.is_inserting = false;
            vi.reset();
        }
        let at = self.buffer.cursor();
        if at > self.line().start {
            self.move_to(self.buffer.previous_boundary(at));
        }
        EditorReply::Moved
    }

    fn on_command_char(&mut self, char: char, goal: Option<usize>) -> EditorReply {
        let Some(vi) = &mut self.vi else { return EditorReply::Ignored };
        let digit = char.to_digit(10).and_then(|it| usize::try_from(it).ok());
        if let Some(digit) = digit.filter(|it| vi.prefix.is_none() && (*it > 0 || vi.count > 0)) {
            vi.count = (vi.count * 10 + digit).min(COUNT_MAX);
            return EditorReply::Moved;
        }
        let prefix = vi.prefix.take();
        if prefix.is_none() && matches!(char, 'g' | 'r') {
            vi.prefix = Some(char);
            return EditorReply::Moved;
        }
        let count = std::mem::take(&mut vi.count);
        if prefix == Some('r') {
            vi.reset();
            return self.replace_cluster(char);
        }
        if let Some((operator, outer)) = vi.operator.take() {
            let count = outer.max(1) * count.max(1);
            return self.apply_operator(operator, (prefix, char), count.min(COUNT_MAX));
        }
        if prefix.is_none() && matches!(char, 'd' | 'c' | 'y') {
            vi.operator = Some((char, count));
            return EditorReply::Moved;
        }
        if prefix.is_none() && matches!(char, 'j' | 'k') {
            return self.move_rows(char == 'j', count.max(1), goal);
        }
        if let Some((target, _)) = self.find_target(prefix, char, count) {
            self.start_command();
            self.move_to(target);
            return self.finish_command(EditorReply::Moved);
        }
        self.run_command(char, count.max(1))
    }

    fn move_rows(&mut self, is_down: bool, count: usize, goal: Option<usize>) -> EditorReply {
        self.start_command();
        let mut reply = EditorReply::Moved;
        let mut goal = goal;
        for step in 0..count {
            let moved = self.move_row(is_down, goal);
            if moved != EditorReply::Moved {
                if step == 0 {
                    reply = moved;
                }
                break;
            }
            goal = self.goal_column();
        }
        self.finish_command(reply)
    }

    /// Where a motion ends.
    fn find_target(
        &self,
        prefix: Option<char>,
        char: char,
        count: usize,
    ) -> Option<(usize, MotionKind)> {
        let buffer = &self.buffer;
        let at = buffer.cursor();
        let line = self.line();
        let repeat = |step: &dyn Fn(usize) -> usize| (0..count.max(1)).fold(at, |it, _| step(it));
        let target = match (prefix, char) {
            (Some('g'), 'g') => (self.line_start(count.max(1) - 1), MotionKind::Lines),
            (None, 'h') => {
                let target = repeat(&|it| buffer.previous_boundary(it));
                (target.max(line.start), MotionKind::Exclusive)
            }
            (None, 'l' | ' ') => {
                let target = repeat(&|it| buffer.next_boundary(it));
                (target.min(line.end), MotionKind::Exclusive)
            }
            (None, 'w') => (repeat(&|it| buffer.vi_next_word(it)), MotionKind::Exclusive),
            (None, 'b') => (repeat(&|it| buffer.vi_previous_word(it)), MotionKind::Exclusive),
            (None, 'e') => (repeat(&|it| buffer.vi_word_end(it)), MotionKind::Inclusive),
            (None, '0') => (line.start, MotionKind::Exclusive),
            (None, '^') => (buffer.first_word_of_line(at), MotionKind::Exclusive),
            (None, '$') => (line.end, MotionKind::Exclusive),
            (None, 'G') if count == 0 => {
                (buffer.line_range(buffer.text().len()).start, MotionKind::Lines)
            }
            (None, 'G') => (self.line_start(count - 1), MotionKind::Lines),
            _ => return None,
        };
        Some(target)
    }

    /// The start of a line, counted from 0; of the last line if there are fewer.
    fn line_start(&self, number: usize) -> usize {
        let text = self.buffer.text();
        let starts = text.match_indices('\n').map(|(index, _)| index + 1);
        std::iter::once(0).chain(starts).take(number + 1).last().unwrap_or(0)
    }

    fn apply_operator(
        &mut self,
        operator: char,
        (prefix, char): (Option<char>, char),
        count: usize,
    ) -> EditorReply {
        let at = self.buffer.cursor();
        if prefix.is_none() && char == operator {
            let last = self.lines_down(count - 1);
            return self.operate_on_lines(operator, at, last);
        }
        if prefix.is_none() && char == 'j' {
            let last = self.lines_down(count);
            return self.operate_on_lines(operator, at, last);
        }
        if prefix.is_none() && char == 'k' {
            let first =
                (0..count).fold(at, |it, _| self.buffer.line_range(it).start.saturating_sub(1));
            return self.operate_on_lines(operator, first, at);
        }
        let is_on_word = !self.buffer.cluster_at(at).chars().all(char::is_whitespace);
        if operator == 'c' && prefix.is_none() && char == 'w' && is_on_word {
            let before = (1..count).fold(at, |it, _| self.buffer.vi_next_word(it));
            return self.operate_on_range(operator, at..self.buffer.vi_run_end(before));
        }
        // Only `G` tells a missing count from 1.
        let count = if char == 'G' && count == 1 { 0 } else { count };
        let Some((target, kind)) = self.find_target(prefix, char, count) else {
            return EditorReply::Moved;
        };
        let (first, last) = (at.min(target), at.max(target));
        match kind {
            MotionKind::Lines => self.operate_on_lines(operator, first, last),
            MotionKind::Inclusive => {
                self.operate_on_range(operator, first..self.buffer.next_boundary(last))
            }
            MotionKind::Exclusive if char == 'w' => {
                // A word at the end of a line is deleted without the line break.
                let line_end = self.line().end;
                let last = if line_end > first { last.min(line_end) } else { last };
                self.operate_on_range(operator, first..last)
            }
            MotionKind::Exclusive => self.operate_on_range(operator, first..last),
        }
    }

    /// An offset in the line that is `count` lines below the cursor.
    fn lines_down(&self, count: usize) -> usize {
        let end = self.buffer.text().len();
        (0..count).fold(self.buffer.cursor(), |it, _| (self.buffer.line_range(it).end + 1).min(end))
    }

    fn operate_on_range(&mut self, operator: char, range: Range<usize>) -> EditorReply {
        self.start_command();
        self.keep_text(range.clone(), false);
        if operator == 'y' {
            self.move_to(range.start);
            return self.finish_command(EditorReply::Moved);
        }
        if operator == 'c' {
            self.start_insertion();
        }
        self.edit(range.clone(), "");
        self.move_to(range.start);
        self.finish_command(EditorReply::Changed)
    }

    fn operate_on_lines(&mut self, operator: char, first: usize, last: usize) -> EditorReply {
        self.start_command();
        let lines = self.buffer.line_range(first).start..self.buffer.line_range(last).end;
        self.keep_text(lines.clone(), true);
        match operator {
            'y' => {
                self.move_to(lines.start);
                return self.finish_command(EditorReply::Moved);
            }
            'c' => {
                self.start_insertion();
                self.edit(lines.clone(), "");
            }
            _ if lines.end < self.buffer.text().len() => self.edit(lines.start..lines.end + 1, ""),
            _ => self.edit(lines.start.saturating_sub(1)..lines.end, ""),
        }
        let start = self.buffer.line_range(lines.start.min(self.buffer.text().len())).start;
        self.move_to(start);
        self.finish_command(EditorReply::Changed)
    }

    fn run_command(&mut self, char: char, count: usize) -> EditorReply {
        self.start_command();
        let at = self.buffer.cursor();
        let line = self.line();
        match char {
            'i' => self.start_insertion(),
            'a' => {
                self.start_insertion();
                self.move_to(self.buffer.next_boundary(at).min(line.end));
            }
            'I' => {
                self.start_insertion();
                self.move_to(self.buffer.first_word_of_line(at));
            }
            'A' => {
                self.start_insertion();
                self.move_to(line.end);
            }
            'o' => {
                self.start_insertion();
                self.edit(line.end..line.end, "\n");
            }
            'O' => {
                self.start_insertion();
                self.edit(line.start..line.start, "\n");
                self.move_to(line.start);
            }
            'x' | 's' => {
                let end = (0..count).fold(at, |it, _| self.buffer.next_boundary(it)).min(line.end);
                return self.operate_on_range(if char == 's' { 'c' } else { 'd' }, at..end.max(at));
            }
            'X' => {
                let start = (0..count).fold(at, |it, _| self.buffer.previous_boundary(it));
                return self.operate_on_range('d', start.max(line.start)..at);
            }
            'D' => return self.operate_on_range('d', at..line.end),
            'C' => return self.operate_on_range('c', at..line.end),
            'S' => return self.operate_on_lines('c', at, at),
            'p' | 'P' => self.put_register(char == 'p', count),
            'u' => {
                for _ in 0..count {
                    self.undo();
                }
            }
            _ => return EditorReply::Ignored,
        }
        self.finish_command(EditorReply::Changed)
    }

    fn put_register(&mut self, is_after: bool, count: usize) {
        let Some(register) = self.vi.as_ref().map(|it| &it.register) else { return };
        // A count that would make a huge text is a typing error.
        let text = register.text.repeat(count.min(100));
        if register.has_lines {
            let lines = std::iter::repeat_n(register.text.as_str(), count.min(100));
            let text = lines.collect::<Vec<_>>().join("\n");
            let line = self.line();
            let (at, inserted, cursor) = if is_after {
                (line.end, format!("\n{text}"), line.end + 1)
            } else {
                (line.start, format!("{text}\n"), line.start)
            };
            self.edit(at..at, &inserted);
            self.move_to(cursor);
        } else if !text.is_empty() {
            let at = self.buffer.cursor();
            let after = self.buffer.next_boundary(at).min(self.line().end.max(at));
            let at = if is_after { after } else { at };
            self.edit(at..at, &text);
            self.move_to(self.buffer.previous_boundary(self.buffer.cursor()));
        }
    }

    fn replace_cluster(&mut self, char: char) -> EditorReply {
        self.start_command();
        let at = self.buffer.cursor();
        if at < self.line().end {
            let end = self.buffer.next_boundary(at);
            self.edit(at..end, char.encode_utf8(&mut [0; 4]));
            self.move_to(at);
        }
        self.finish_command(EditorReply::Changed)
    }

    fn keep_text(&mut self, range: Range<usize>, has_lines: bool) {
        let text = self.buffer.text()[range].to_owned();
        if let Some(vi) = &mut self.vi {
            vi.register = ViRegister { text, has_lines };
        }
    }

    fn start_insertion(&mut self) {
        if let Some(vi) = &mut self.vi {
            vi.is_inserting = true;
        }
    }

    /// In normal mode the cursor is on a character, not after the line.
    fn finish_command(&mut self, reply: EditorReply) -> EditorReply {
        let line = self.line();
        let at = self.buffer.cursor();
        let is_inserting = self.vi.as_ref().is_some_and(|it| it.is_inserting);
        if !is_inserting && at == line.end && at > line.start {
            self.move_to(self.buffer.previous_boundary(at));
        }
        reply
    }
}
