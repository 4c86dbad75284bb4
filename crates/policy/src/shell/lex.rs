//! A command line as the words of its simple commands, or the reason why it cannot be read.
//!
//! Only what every shell reads alike is read here: a word that is read wrongly lets something
//! through. The tests compare it with a real bash.

use super::{Word, WordKind};
use std::{iter::Peekable, str::Chars};

/// Files that a redirection may name without being a change: nothing is read from or kept in them.
const SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr"];

/// A line with more words is not read.
pub(super) const WORDS_MAX: usize = 16 * 1024;

/// The simple commands of a line, in order, joined by `&&`, `||`, `;`, `|`, `&` or a newline.
pub(super) fn split(text: &str) -> Result<Vec<Vec<Word>>, &'static str> {
    let mut lexer = Lexer {
        chars: text.chars().peekable(),
        word: None,
        is_quoted: false,
        words: Vec::new(),
        commands: Vec::new(),
        count: 0,
        unfinished: false,
        ends_here: false,
    };
    lexer.run()?;
    lexer.end_word()?;
    lexer.end_command(true)?;
    if lexer.unfinished {
        return Err("it ends in the middle");
    }
    Ok(lexer.commands)
}

struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    word: Option<Word>,
    /// The word has a quote or an escape.
    is_quoted: bool,
    words: Vec<Word>,
    commands: Vec<Vec<Word>>,
    /// How many words there are in all.
    count: usize,
    /// `&&`, `||` or `|` came, and its second command did not yet.
    unfinished: bool,
    /// `&>` came: a shell that does not know it ends the command there.
    ends_here: bool,
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), &'static str> {
        let mut last = ' ';
        while let Some(next) = self.chars.next() {
            let previous = std::mem::replace(&mut last, next);
            match next {
                ' ' | '\t' => self.end_word()?,
                '\n' => {
                    self.end_word()?;
                    self.end_command(true)?;
                }
                ';' | '&' | '|' => self.operator(next)?,
                '<' | '>' => self.redirection(next)?,
                '\'' => self.single_quotes()?,
                '"' => self.double_quotes()?,
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
                '$' => self.dollar(false)?,
                '#' if self.word.is_none() => self.comment()?,
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
        if self.ends_here {
            return Err("words follow a redirection that not every shell knows");
        }
        self.count += 1;
        if self.count > WORDS_MAX {
            return Err("it has too many words");
        }
        // The test command, and the place that `find` and `xargs` fill: nothing expands them.
        if matches!(word.text.as_str(), "[" | "{}") {
            word.kind = WordKind::Fixed;
        }
        self.is_quoted = false;
        self.words.push(word);
        Ok(())
    }

    fn end_command(&mut self, newline: bool) -> Result<(), &'static str> {
        self.ends_here = false;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
            self.unfinished = false;
        } else if !newline {
            return Err("an operator has nothing on its left");
        }
        Ok(())
    }

    fn operator(&mut self, first: char) -> Result<(), &'static str> {
        let second = self.chars.peek().copied();
        if first == '&' && second == Some('>') {
            self.end_word()?;
            self.chars.next();
            self.redirection('>')?;
            self.ends_here = true;
            return Ok(());
        }
        self.end_word()?;
        self.end_command(false)?;
        match (first, second) {
            (';', Some(';' | '&')) => return Err("it has a `case`"),
            ('&', Some('&')) | ('|', Some('|' | '&')) => {
                self.chars.next();
                self.unfinished = true;
            }
            ('|', _) => self.unfinished = true,
            _ => {}
        }
        Ok(())
    }

    /// `2>&1`, `> /dev/null` and the like are left out of the words; any other file is a reason.
    fn redirection(&mut self, first: char) -> Result<(), &'static str> {
        let number =
            |it: &Word| !it.text.is_empty() && it.text.bytes().all(|it| it.is_ascii_digit());
        match &self.word {
            Some(word) if number(word) && !self.is_quoted => self.word = None,
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
        let copies = self.chars.next_if_eq(&'&').is_some();
        while self.chars.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
        let mut target = String::new();
        while let Some(it) = self.chars.next_if(|it| !" \t\n;&|<>()".contains(*it)) {
            target.push(it);
        }
        let number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        let known = if copies {
            number(&target) || target == "-"
        } else {
            SINKS.contains(&target.as_str())
        };
        if known { Ok(()) } else { Err("it redirects to or from a file") }
    }

    fn single_quotes(&mut self) -> Result<(), &'static str> {
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

    fn double_quotes(&mut self) -> Result<(), &'static str> {
        self.mark(WordKind::Fixed);
        self.is_quoted = true;
        loop {
            match self.chars.next() {
                Some('"') => return Ok(()),
                Some('`') => return Err("it has backticks"),
                Some('$') => self.dollar(true)?,
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

    /// A variable makes the word open; anything that computes is a reason.
    fn dollar(&mut self, quoted: bool) -> Result<(), &'static str> {
        self.push('$');
        let name = |it: &char| it.is_ascii_alphanumeric() || *it == '_';
        match self.chars.peek().copied() {
            Some('(') => Err("it has a command substitution"),
            Some('[') => Err("it computes"),
            Some('\\') => Err("a line is continued in the middle of a word"),
            Some('\'' | '"') if !quoted => Err("it has a quote with escapes"),
            Some('{') => {
                self.chars.next();
                self.mark(WordKind::Open);
                let mut any = false;
                while let Some(it) = self.chars.next_if(name) {
                    self.push(it);
                    any = true;
                }
                let closed = self.chars.next() == Some('}');
                if any && closed { Ok(()) } else { Err("it changes a variable as it reads it") }
            }
            Some(it) if name(&it) => {
                self.mark(WordKind::Open);
                while let Some(it) = self.chars.next_if(name) {
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

    /// A shell at a terminal may not know comments.
    fn comment(&mut self) -> Result<(), &'static str> {
        while let Some(it) = self.chars.next_if(|it| *it != '\n') {
            if ";&|<>()`$\0\r".contains(it) {
                return Err("it has a comment with operators");
            }
        }
        Ok(())
    }
}
