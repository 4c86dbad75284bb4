//! The command line of one turn, and the reasons not to compose one.

use crate::{DEFAULT, Model, PromptBy, Spec, Variant, models::is_id, placeholder};

/// The longest prompt that Linux takes as one argument is 128 KiB; this leaves room for the rest.
const PROMPT_BYTES_MAX: usize = 120_000;

/// The longest id of a session we hand to a program.
const SESSION_BYTES_MAX: usize = 200;

/// What is chosen for a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice<'a> {
    /// The program's own id of the conversation; absent on the first turn.
    pub session: Option<&'a str>,
    pub model: Option<&'a str>,
    pub reasoning: Option<&'a str>,
    /// The id of a mode; absent for the first one.
    pub mode: Option<&'a str>,
    pub prompt: &'a str,
    /// The file that holds the prompt, for programs that want one.
    pub file: Option<&'a str>,
    pub cwd: &'a str,
    /// Which of the variant's flags the program has.
    pub flags: &'a [bool],
}

/// Why there is no command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the prompt has {bytes} bytes and this program takes at most {max} on its command line: \
         shorten it, or put the text into a file and name that"
    )]
    PromptTooLong { bytes: usize, max: usize },
    #[error(
        "the prompt begins with `-` and this program would take it for an option: \
         begin it with a word"
    )]
    PromptLikeOption,
    #[error("{what} contains a NUL byte, which no command line can carry: remove it")]
    Nul { what: &'static str },
    #[error("this program reads its prompt from a file, and none was given")]
    FileMissing,
    #[error("this program cannot continue a conversation: begin a new session")]
    NoResume,
    #[error(
        "`{id}` is not an id of a session: it is empty, too long, begins with `-` or has \
         characters that no id has"
    )]
    SessionMalformed { id: String },
    #[error(
        "`{id}` is not an id of a model: begin with a letter or digit, use letters, digits, \
         spaces and `._/:@+-[]`, at most 200 bytes"
    )]
    ModelMalformed { id: String },
    #[error("`{agent}` has no model `{id}`: choose one of {known}")]
    ModelUnknown { agent: String, id: String, known: String },
    #[error("`{id}` is not a reasoning effort here: choose one of {known}")]
    ReasoningUnknown { id: String, known: String },
    #[error("there is no mode `{id}` here: choose one of {known}")]
    ModeUnknown { id: String, known: String },
}

impl Variant {
    /// The arguments of a turn, without the program itself.
    pub fn argv(&self, choice: &Choice<'_>) -> Result<Vec<String>, Refusal> {
        let model = choice.model.filter(|it| *it != DEFAULT);
        let reasoning = choice.reasoning.filter(|it| *it != DEFAULT);
        self.check(choice, model, reasoning)?;
        let base = self.base(choice)?;
        let added = self.added(choice, model.is_some(), reasoning.is_some())?;
        let (before, after) = base.split_at(self.seam(base));
        let value = |name: &str| match name {
            "session" => choice.session.unwrap_or_default(),
            "model" => model.unwrap_or_default(),
            "reasoning" => reasoning.unwrap_or_default(),
            "prompt" => choice.prompt,
            "file" => choice.file.unwrap_or_default(),
            "cwd" => choice.cwd,
            other => unreachable!("`{{{other}}}` passed the checks of a spec"),
        };
        let all = before.iter().chain(added).chain(after);
        Ok(all.map(|argument| placeholder::expand(argument, value)).collect())
    }

    /// The arguments to begin with. A program that speaks ACP is told of sessions there.
    fn base(&self, choice: &Choice<'_>) -> Result<&[String], Refusal> {
        match (&self.resume, choice.session) {
            (Some(resume), Some(_)) => Ok(resume),
            (None, Some(_)) if !self.speaks_acp() => Err(Refusal::NoResume),
            _ => Ok(&self.args),
        }
    }

    /// What the choice adds: the mode, the flags the program has, the model, the effort.
    fn added(
        &self,
        choice: &Choice<'_>,
        model: bool,
        reasoning: bool,
    ) -> Result<impl Iterator<Item = &String>, Refusal> {
        let mode = match choice.mode {
            None => self.modes.first(),
            Some(id) => Some(self.modes.iter().find(|it| it.id == id).ok_or_else(|| {
                let known = list(self.modes.iter().map(|it| it.id.as_str()));
                Refusal::ModeUnknown { id: id.to_owned(), known }
            })?),
        };
        let flags = self.flags.iter().zip(choice.flags).filter(|(_, has)| **has);
        Ok(mode
            .into_iter()
            .flat_map(|it| &it.args)
            .chain(flags.flat_map(|(flag, _)| &flag.args))
            .chain(self.model.iter().filter(move |_| model))
            .chain(self.reasoning.iter().filter(move |_| reasoning)))
    }

    /// Where the additions go: before `--`, since nothing after it is an option; before the last
    /// argument if the file asks for it; else at the end.
    fn seam(&self, base: &[String]) -> usize {
        let end = if self.before_session { base.len().saturating_sub(1) } else { base.len() };
        base.iter().position(|it| it == "--").unwrap_or(end).min(end)
    }

    fn check(
        &self,
        choice: &Choice<'_>,
        model: Option<&str>,
        reasoning: Option<&str>,
    ) -> Result<(), Refusal> {
        if let Some(id) = choice.session
            && !is_session(id)
        {
            return Err(Refusal::SessionMalformed { id: id.to_owned() });
        }
        if let Some(id) = model
            && !is_id(id)
        {
            return Err(Refusal::ModelMalformed { id: id.to_owned() });
        }
        if let Some(id) = reasoning
            && !is_word(id)
        {
            let known = "those that the agent's file lists".to_owned();
            return Err(Refusal::ReasoningUnknown { id: id.to_owned(), known });
        }
        if choice.cwd.contains('\0') {
            return Err(Refusal::Nul { what: "the working directory" });
        }
        match self.prompt {
            PromptBy::Stdin => Ok(()),
            PromptBy::Argv => self.check_prompt(choice),
            PromptBy::File => match choice.file {
                None => Err(Refusal::FileMissing),
                Some(file) if file.contains('\0') => {
                    Err(Refusal::Nul { what: "the prompt's file" })
                }
                Some(_) => Ok(()),
            },
        }
    }

    fn check_prompt(&self, choice: &Choice<'_>) -> Result<(), Refusal> {
        let max = self.prompt_bytes_max.unwrap_or(PROMPT_BYTES_MAX);
        if choice.prompt.contains('\0') {
            return Err(Refusal::Nul { what: "the prompt" });
        }
        if choice.prompt.len() > max {
            return Err(Refusal::PromptTooLong { bytes: choice.prompt.len(), max });
        }
        let base = self.base(choice)?;
        let at = base.iter().position(|it| it == "{prompt}");
        // After `--`, or glued to its option, it cannot be mistaken.
        let exposed = at.is_some_and(|at| !base[..at].iter().any(|it| it == "--"));
        if exposed && choice.prompt.starts_with('-') {
            return Err(Refusal::PromptLikeOption);
        }
        Ok(())
    }
}

/// Whether a model may be asked for: it is well formed, and in a list or the agent takes others too.
pub fn check_model(spec: &Spec, known: &[Model], id: &str) -> Result<(), Refusal> {
    let listed = || known.iter().map(|it| it.id.as_str()).chain(fallback(spec));
    // What a listing calls an id is still checked: it becomes an argument.
    if id != DEFAULT && !is_id(id) {
        return Err(Refusal::ModelMalformed { id: id.to_owned() });
    }
    if id == DEFAULT || spec.models.custom || listed().any(|it| it == id) {
        return Ok(());
    }
    let known = list([DEFAULT].into_iter().chain(listed()));
    Err(Refusal::ModelUnknown { agent: spec.id.clone(), id: id.to_owned(), known })
}

/// Whether a reasoning effort may be asked for: it is `default` or one of the agent's.
pub fn check_reasoning(spec: &Spec, id: &str) -> Result<(), Refusal> {
    if id == DEFAULT || spec.reasoning.iter().any(|it| it == id) {
        return Ok(());
    }
    let known = list([DEFAULT].into_iter().chain(spec.reasoning.iter().map(String::as_str)));
    Err(Refusal::ReasoningUnknown { id: id.to_owned(), known })
}

fn fallback(spec: &Spec) -> impl Iterator<Item = &str> {
    spec.models.fallback.iter().map(String::as_str)
}

fn list<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<String> = ids.map(|it| format!("`{it}`")).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

fn is_session(id: &str) -> bool {
    let plain = |it: char| !it.is_control();
    !id.is_empty() && id.len() <= SESSION_BYTES_MAX && !id.starts_with('-') && id.chars().all(plain)
}

/// A word of letters, digits, `-` and `_` that is no option.
pub(crate) fn is_word(id: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    !id.is_empty() && id.len() <= 40 && !id.starts_with('-') && id.bytes().all(plain)
}
