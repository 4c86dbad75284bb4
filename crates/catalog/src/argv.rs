//! Composes the command line of one turn.

use crate::{
    AgentSpec, DEFAULT_OPTION, LaunchVariant, ModelEntry, PermissionMode, PromptDelivery,
    models::is_model_id, placeholder,
};

/// Linux limits one argument to 128 KiB; this leaves room for text around the prompt.
const PROMPT_BYTES_MAX: usize = 120_000;

/// The longest session id that is passed to a program.
const SESSION_BYTES_MAX: usize = 200;

/// The values that a command line is composed from.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaunchOptions<'a> {
    /// The program's own session id; absent on the first turn.
    pub session: Option<&'a str>,
    pub model: Option<&'a str>,
    pub reasoning: Option<&'a str>,
    /// The id of a permission mode; absent for the first one.
    pub mode: Option<&'a str>,
    pub prompt: &'a str,
    /// The file that holds the prompt, for programs that read it from a file.
    pub file: Option<&'a str>,
    pub cwd: &'a str,
    /// Directories beside `cwd` that the program may use.
    pub add_dirs: &'a [String],
    /// For each of the variant's optional flags: whether the program supports it.
    pub flags: &'a [bool],
}

/// Why a command line cannot be composed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    #[error(
        "the prompt has {bytes} bytes; this program's limit on the command line is {max}: \
         shorten it, or write the text to a file and mention its path"
    )]
    PromptTooLong { bytes: usize, max: usize },
    #[error(
        "the prompt begins with `-`, which this program would parse as an option: \
         begin it with a word"
    )]
    PromptLikeOption,
    #[error("{subject} contains a NUL byte, which a command line cannot contain: remove it")]
    NulByte { subject: &'static str },
    #[error("this program reads its prompt from a file, but no file was given")]
    FileMissing,
    #[error("this program cannot resume a session: start a new one")]
    ResumeUnsupported,
    #[error(
        "`{id}` is not a session id: it is empty, too long, begins with `-` or contains a \
         control character"
    )]
    SessionMalformed { id: String },
    #[error(
        "`{id}` is not a model id: start with a letter or digit, use letters, digits, \
         spaces and `._/:@+-[]`, at most 200 bytes"
    )]
    ModelMalformed { id: String },
    #[error("`{agent}` has no model `{id}`: choose one of {known}")]
    ModelUnknown { agent: String, id: String, known: String },
    #[error("unknown reasoning effort `{id}`: choose one of {known}")]
    ReasoningUnknown { id: String, known: String },
    #[error("unknown mode `{id}`: choose one of {known}")]
    ModeUnknown { id: String, known: String },
}

impl LaunchVariant {
    /// The arguments of a turn, without the program itself.
    pub fn compose_argv(&self, options: &LaunchOptions<'_>) -> Result<Vec<String>, LaunchError> {
        let model = options.model.filter(|it| *it != DEFAULT_OPTION);
        let reasoning = options.reasoning.filter(|it| *it != DEFAULT_OPTION);
        self.check_options(options, model, reasoning)?;
        let base_args = self.select_base_args(options)?;
        let mode_args = self.select_mode(options)?.map_or(&[][..], |it| it.args.as_slice());
        let flags = self.flags.iter().zip(options.flags).filter(|(_, supported)| **supported);
        let added_args = mode_args
            .iter()
            .chain(flags.flat_map(|(flag, _)| &flag.args))
            .chain(self.model.iter().filter(|_| model.is_some()))
            .chain(self.reasoning.iter().filter(|_| reasoning.is_some()));
        let (before, after) = base_args.split_at(self.insertion_index(base_args));
        let value = |name: &str| match name {
            "session" => options.session.unwrap_or_default(),
            "model" => model.unwrap_or_default(),
            "reasoning" => reasoning.unwrap_or_default(),
            "prompt" => options.prompt,
            "file" => options.file.unwrap_or_default(),
            "cwd" => options.cwd,
            other => unreachable!("`check_args` refuses the placeholder `{{{other}}}`"),
        };
        let expand = |argument: &String| placeholder::expand_argument(argument, value);
        let added = before.iter().chain(added_args).map(expand);
        let added = added.chain(self.directory_args(options.add_dirs));
        Ok(added.chain(after.iter().map(expand)).collect())
    }

    /// The arguments for extra directories.
    fn directory_args(&self, dirs: &[String]) -> Vec<String> {
        let expand = |dir: &str, list: &str| {
            let value = |name: &str| if name == "dirs" { list } else { dir };
            self.add_dir
                .iter()
                .map(|it| placeholder::expand_argument(it, value))
                .collect::<Vec<_>>()
        };
        if dirs.is_empty() {
            return Vec::new();
        }
        let is_list = self.add_dir.iter().any(|it| it.contains("{dirs}"));
        if is_list {
            return expand("", &serde_json::json!(dirs).to_string());
        }
        dirs.iter().flat_map(|dir| expand(dir, "")).collect()
    }

    /// The arguments of a first or of a later turn. A native ACP program receives the session id in
    /// a message instead.
    fn select_base_args(&self, options: &LaunchOptions<'_>) -> Result<&[String], LaunchError> {
        match (&self.resume, options.session) {
            (Some(resume), Some(_)) => Ok(resume),
            (None, Some(_)) if !self.is_native_acp() => Err(LaunchError::ResumeUnsupported),
            _ => Ok(&self.args),
        }
    }

    fn select_mode(
        &self,
        options: &LaunchOptions<'_>,
    ) -> Result<Option<&PermissionMode>, LaunchError> {
        let Some(id) = options.mode else { return Ok(self.modes.first()) };
        let mode = self.modes.iter().find(|it| it.id == id);
        mode.map(Some).ok_or_else(|| {
            let known = quote_ids(self.modes.iter().map(|it| it.id.as_str()));
            LaunchError::ModeUnknown { id: id.to_owned(), known }
        })
    }

    /// Where the added arguments are inserted: before `--`, because nothing after it is an option;
    /// before the last argument if `before_session` is set; otherwise at the end.
    fn insertion_index(&self, base_args: &[String]) -> usize {
        let end =
            if self.before_session { base_args.len().saturating_sub(1) } else { base_args.len() };
        base_args.iter().position(|it| it == "--").unwrap_or(end).min(end)
    }

    fn check_options(
        &self,
        options: &LaunchOptions<'_>,
        model: Option<&str>,
        reasoning: Option<&str>,
    ) -> Result<(), LaunchError> {
        if let Some(id) = options.session
            && !is_session_id(id)
        {
            return Err(LaunchError::SessionMalformed { id: id.to_owned() });
        }
        if let Some(id) = model
            && !is_model_id(id)
        {
            return Err(LaunchError::ModelMalformed { id: id.to_owned() });
        }
        if let Some(id) = reasoning
            && !is_plain_word(id)
        {
            let known = "the options that the agent's file lists".to_owned();
            return Err(LaunchError::ReasoningUnknown { id: id.to_owned(), known });
        }
        if options.cwd.contains('\0') {
            return Err(LaunchError::NulByte { subject: "the working directory" });
        }
        if options.add_dirs.iter().any(|it| it.contains('\0')) {
            return Err(LaunchError::NulByte { subject: "an extra directory" });
        }
        match self.prompt {
            PromptDelivery::Stdin => Ok(()),
            PromptDelivery::Argv => self.check_prompt(options),
            PromptDelivery::File => match options.file {
                None => Err(LaunchError::FileMissing),
                Some(file) if file.contains('\0') => {
                    Err(LaunchError::NulByte { subject: "the path of the prompt file" })
                }
                Some(_) => Ok(()),
            },
        }
    }

    fn check_prompt(&self, options: &LaunchOptions<'_>) -> Result<(), LaunchError> {
        let max = self.prompt_bytes_max.unwrap_or(PROMPT_BYTES_MAX);
        if options.prompt.contains('\0') {
            return Err(LaunchError::NulByte { subject: "the prompt" });
        }
        if options.prompt.len() > max {
            return Err(LaunchError::PromptTooLong { bytes: options.prompt.len(), max });
        }
        let base_args = self.select_base_args(options)?;
        let index = base_args.iter().position(|it| it == "{prompt}");
        // After `--`, or joined to its option as in `--message={prompt}`, it is never an option.
        let is_exposed = index.is_some_and(|it| !base_args[..it].iter().any(|it| it == "--"));
        if is_exposed && options.prompt.starts_with('-') {
            return Err(LaunchError::PromptLikeOption);
        }
        Ok(())
    }
}

/// Checks that a model may be requested: its id is well formed, and it is listed or the agent
/// accepts custom models.
pub fn check_model(spec: &AgentSpec, known: &[ModelEntry], id: &str) -> Result<(), LaunchError> {
    let listed = || known.iter().map(|it| it.id.as_str()).chain(fallback_ids(spec));
    // A listed id is checked too, because it becomes an argument.
    if id != DEFAULT_OPTION && !is_model_id(id) {
        return Err(LaunchError::ModelMalformed { id: id.to_owned() });
    }
    if id == DEFAULT_OPTION || spec.models.custom || listed().any(|it| it == id) {
        return Ok(());
    }
    let known = quote_ids([DEFAULT_OPTION].into_iter().chain(listed()));
    Err(LaunchError::ModelUnknown { agent: spec.id.clone(), id: id.to_owned(), known })
}

/// Checks that a reasoning effort may be requested: it is `default` or one of the agent's.
pub fn check_reasoning(spec: &AgentSpec, id: &str) -> Result<(), LaunchError> {
    if id == DEFAULT_OPTION || spec.reasoning.iter().any(|it| it == id) {
        return Ok(());
    }
    let known =
        quote_ids([DEFAULT_OPTION].into_iter().chain(spec.reasoning.iter().map(String::as_str)));
    Err(LaunchError::ReasoningUnknown { id: id.to_owned(), known })
}

fn fallback_ids(spec: &AgentSpec) -> impl Iterator<Item = &str> {
    spec.models.fallback.iter().map(String::as_str)
}

fn quote_ids<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<String> = ids.map(|it| format!("`{it}`")).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

fn is_session_id(id: &str) -> bool {
    let is_bounded = !id.is_empty() && id.len() <= SESSION_BYTES_MAX;
    is_bounded && !id.starts_with('-') && !id.contains(char::is_control)
}

/// Whether a text is a word of letters, digits, `-` and `_` that cannot be parsed as an option.
pub(crate) fn is_plain_word(id: &str) -> bool {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    !id.is_empty() && id.len() <= 40 && !id.starts_with('-') && id.bytes().all(is_allowed)
}
