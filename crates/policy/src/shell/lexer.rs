//! Splits a command line into the words of its simple commands, or returns why it cannot.
//!
//! Only the syntax that all shells share is accepted, because a misread word could allow a command
//! by mistake. The tests compare the result with a real bash.

use super::{ShellWord, WordKind};
use std::{iter::Peekable, str::Chars};

/// Files that a redirection may name, because they store nothing.
const HARMLESS_TARGETS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr"];

/// A line with more words is refused.
pub(super) const WORDS_MAX: usize = 16 * 1024;

/// The simple commands of a line, in order, joined by `&&`, `||`, `;`, `|`, `&` or a newline.
pub(super) fn split_commands(text: &str) -> Result<Vec<Vec<ShellWord>>, &'static str> {
    let mut lexer = ShellLexer {
        chars: text.chars().peekable(),
        word: None,
        is_quoted: false,
        words: Vec::new(),
        commands: Vec::new(),
        word_count: 0,
        needs_command: false,
        must_end_command: false,
    };
    lexer.read_all()?;
    lexer.end_word()?;
    lexer.end_command(CommandEnd::NewLine)?;
    if lexer.needs_command {
        return Err("it ends after an operator");
    }
    Ok(lexer.commands)
}

struct ShellLexer<'a> {
    chars: Peekable<Chars<'a>>,
    word: Option<ShellWord>,
    /// Whether the word has a quote or an escape.
    is_quoted: bool,
    words: Vec<ShellWord>,
    commands: Vec<Vec<ShellWord>>,
    /// The number of words of all commands.
    word_count: usize,
    /// The second command of `&&`, `||` or `|` has not followed yet.
    needs_command: bool,
    /// `&>` was read. A shell that does not support it ends the command there.
    must_end_command: bool,
}

/// What ends a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandEnd {
    /// A newline or the end of the line: the command may be empty.
    NewLine,
    Operator,
}

/// Whether a dollar sign is inside double quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InsideQuotes {
    No,
    Double,
}

impl ShellLexer<'_> {
    fn read_all(&mut self) -> Result<(), &'static str> {
        let mut last = ' ';
        while let Some(next) = self.chars.next() {
            let previous = std::mem::replace(&mut last, next);
            match next {
                ' ' | '\t' => self.end_word()?,
                '\n' => {
                    self.end_word()?;
                    self.end_command(CommandEnd::NewLine)?;
                }
                ';' | '&' | '|' => self.read_operator(next)?,
                '<' | '>' => self.read_redirection(next)?,
                '\'' => self.read_single_quotes()?,
                '"' => self.read_double_quotes()?,
                '\\' => match self.chars.next() {
                    Some('\n') if "&|;<>".contains(previous) => {
                        return Err("a line is continued in the middle of an operator");
                    }
                    Some('\n') => {}
                    Some('\0') => return Err("it has a control character"),
                    Some(it) => {
                        self.is_quoted = true;
                        self.push(it);
                    }
                    None => return Err("it ends with a backslash"),
                },
                '$' => self.read_dollar(InsideQuotes::No)?,
                '#' if self.word.is_none() => self.read_comment()?,
                '`' => return Err("it has backticks"),
                '(' | ')' => return Err("it has parentheses"),
                '\0' | '\r' => return Err("it has a control character"),
                '*' | '?' | '[' => self.push_as(next, WordKind::Glob),
                '{' => self.push_as(next, WordKind::Open),
                _ => self.push(next),
            }
        }
        Ok(())
    }

    fn push(&mut self, it: char) {
        self.word.get_or_insert_default().text.push(it);
    }

    fn push_as(&mut self, it: char, kind: WordKind) {
        self.push(it);
        self.mark(kind);
    }

    fn mark(&mut self, kind: WordKind) {
        let word = self.word.get_or_insert_default();
        word.kind = word.kind.max(kind);
    }

    fn end_word(&mut self) -> Result<(), &'static str> {
        let Some(mut word) = self.word.take() else { return Ok(()) };
        if self.must_end_command {
            return Err("words follow a redirection that not every shell supports");
        }
        self.word_count += 1;
        if self.word_count > WORDS_MAX {
            return Err("it has too many words");
        }
        // The test command, and the placeholder of `find` and `xargs`: a shell expands neither.
        if matches!(word.text.as_str(), "[" | "{}") {
            word.kind = WordKind::Fixed;
        }
        self.is_quoted = false;
        self.words.push(word);
        Ok(())
    }

    fn end_command(&mut self, end: CommandEnd) -> Result<(), &'static str> {
        self.must_end_command = false;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
            self.needs_command = false;
        } else if end == CommandEnd::Operator {
            return Err("an operator has nothing on its left");
        }
        Ok(())
    }

    fn read_operator(&mut self, first: char) -> Result<(), &'static str> {
        let second = self.chars.peek().copied();
        if first == '&' && second == Some('>') {
            self.end_word()?;
            self.chars.next();
            self.read_redirection('>')?;
            self.must_end_command = true;
            return Ok(());
        }
        self.end_word()?;
        self.end_command(CommandEnd::Operator)?;
        match (first, second) {
            (';', Some(';' | '&')) => return Err("it has a `case` separator"),
            ('&', Some('&')) | ('|', Some('|' | '&')) => {
                self.chars.next();
                self.needs_command = true;
            }
            ('|', _) => self.needs_command = true,
            _ => {}
        }
        Ok(())
    }

    /// Skips redirections such as `2>&1` and `> /dev/null`; refuses redirections to other files.
    fn read_redirection(&mut self, first: char) -> Result<(), &'static str> {
        let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        match &self.word {
            Some(word) if is_number(&word.text) && !self.is_quoted => self.word = None,
            _ => self.end_word()?,
        }
        match (first, self.chars.peek()) {
            ('<', Some('<')) => return Err("it has a here-document"),
            (_, Some('(')) => return Err("it has a process substitution"),
            ('<', Some('>')) => return Err("it redirects to or from a file"),
            ('>', Some('>' | '|')) => {
                self.chars.next();
            }
            _ => {}
        }
        let duplicates_descriptor = self.chars.next_if_eq(&'&').is_some();
        while self.chars.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
        let mut target = String::new();
        while let Some(it) = self.chars.next_if(|it| !" \t\n;&|<>()".contains(*it)) {
            target.push(it);
        }
        let is_harmless = if duplicates_descriptor {
            is_number(&target) || target == "-"
        } else {
            HARMLESS_TARGETS.contains(&target.as_str())
        };
        if is_harmless { Ok(()) } else { Err("it redirects to or from a file") }
    }

    fn read_single_quotes(&mut self) -> Result<(), &'static str> {
        self.mark(WordKind::Fixed);
        self.is_quoted = true;
        loop {
            match self.chars.next() {
                Some('\'') => return Ok(()),
                Some('\0') => return Err("it has a control character"),
                Some(it) => self.push(it),
                None => return Err("a quote is not closed"),
            }
        }
    }

    fn read_double_quotes(&mut self) -> Result<(), &'static str> {
        self.mark(WordKind::Fixed);
        self.is_quoted = true;
        loop {
            match self.chars.next() {
                Some('"') => return Ok(()),
                Some('`') => return Err("it has backticks"),
                Some('$') => self.read_dollar(InsideQuotes::Double)?,
                Some('\0') => return Err("it has a control character"),
                Some('\\') => match self.chars.next() {
                    Some('\n') => {}
                    Some(it @ ('$' | '`' | '"' | '\\')) => self.push(it),
                    Some('\0') => return Err("it has a control character"),
                    Some(it) => {
                        self.push('\\');
                        self.push(it);
                    }
                    None => return Err("a quote is not closed"),
                },
                Some(it) => self.push(it),
                None => return Err("a quote is not closed"),
            }
        }
    }

    /// Reads a variable, which makes the word open. Refuses substitutions and arithmetic.
    fn read_dollar(&mut self, quotes: InsideQuotes) -> Result<(), &'static str> {
        self.push('$');
        let is_name_char = |it: &char| it.is_ascii_alphanumeric() || *it == '_';
        match self.chars.peek().copied() {
            Some('(') => Err("it has a command substitution"),
            Some('[') => Err("it has an arithmetic expansion"),
            Some('\\') => Err("a line is continued in the middle of a word"),
            Some('\'' | '"') if quotes == InsideQuotes::No => Err("it has a quote with escapes"),
            Some('{') => {
                self.chars.next();
                self.mark(WordKind::Open);
                let mut has_name = false;
                while let Some(it) = self.chars.next_if(is_name_char) {
                    self.push(it);
                    has_name = true;
                }
                let is_closed = self.chars.next() == Some('}');
                if has_name && is_closed { Ok(()) } else { Err("it has a parameter expansion") }
            }
            Some(it) if is_name_char(&it) => {
                self.mark(WordKind::Open);
                while let Some(it) = self.chars.next_if(is_name_char) {
                    self.push(it);
                }
                Ok(())
            }
            Some(it @ ('@' | '*' | '#' | '?' | '$' | '!' | '-')) => {
                self.chars.next();
                self.push_as(it, WordKind::Open);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Skips a comment. An interactive shell may not support comments, so operators are refused.
    fn read_comment(&mut self) -> Result<(), &'static str> {
        while let Some(it) = self.chars.next_if(|it| *it != '\n') {
            if ";&|<>()`$\0\r".contains(it) {
                return Err("it has a comment with operators");
            }
        }
        Ok(())
    }
}
