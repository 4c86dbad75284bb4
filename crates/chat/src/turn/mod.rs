//! One prompt, from its first word to its stop: the model is asked, what it wants done is done and
//! told to it, and it is asked again, until it wants nothing more.
//!
//! A turn is cancelled by dropping it. It waits nowhere between keeping what was said and knowing it,
//! so that whatever was kept is a conversation that can go on.

mod calls;
mod compact;
mod repeat;

use crate::{
    history::{Entry, Voice, request},
    model::{Answer, Ask, Delta, Finish, Listed, Model, Tokens, Trouble},
    options::{Choices, Mode},
    session::{Session, title_of},
    settings::Settings,
    store::StoreError,
    system::system,
    tool,
};
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, MessageId, Notice, NoticeSeverity, SessionInfoUpdate,
    SessionUpdate, StopReason, ToolCall, Usage, UsageUpdate,
};
use repeat::{Circle, Repeats};
use std::collections::BTreeSet;

/// So many requests in one turn are not work any more.
const STEPS_MAX: usize = 200;
/// With fewer tokens than this, what we say and two files fill the window.
const WINDOW_MIN: u64 = 8192;
/// How often a model may say nothing, or write a call as text that nobody can read, in one turn.
const SLIPS_MAX: usize = 2;

/// A turn of a session, with all that it needs.
pub(crate) struct Turn<'a> {
    pub(crate) session: &'a Session,
    pub(crate) talk: &'a mut Vec<Entry>,
    pub(crate) model: &'a Model,
    pub(crate) settings: &'a Settings,
    pub(crate) choices: Choices,
    /// What the server says of the chosen model.
    pub(crate) about: Option<Listed>,
    pub(crate) hears: Hears,
    /// What the turn cost so far.
    pub(crate) tokens: &'a mut Tokens,
}

/// What the client can show besides words.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hears {
    pub(crate) notices: bool,
    pub(crate) compaction: bool,
}

impl Turn<'_> {
    /// Runs the turn. What goes wrong with the model is told as its answer; what is wrong with the
    /// store is an error.
    pub(crate) async fn run(
        &mut self,
        content: Vec<ContentBlock>,
    ) -> Result<StopReason, StoreError> {
        self.entitle(&content)?;
        self.session.append(self.talk, vec![Entry::Prompt { content }])?;
        for notice in self.session.servers.settled().await {
            self.notice(&notice);
        }
        if self.talk.len() == 1
            && self.has_tools()
            && let Some(window) = self.window().filter(|it| *it < WINDOW_MIN)
        {
            self.notice(&format!(
                "The model sees {window} tokens at once, which is too few for an agent: give it \
                 {WINDOW_MIN} or more, or let it only talk with OPENAI_TOOLS=0."
            ));
        }
        match self.converse().await? {
            Ok(stop) => Ok(stop),
            Err(trouble) => self.fail(trouble.to_string()),
        }
    }

    /// Asks and does what it is told, round by round.
    async fn converse(&mut self) -> Result<Result<StopReason, Trouble>, StoreError> {
        let (mut repeats, mut slips, mut was_full) = (Repeats::default(), 0, false);
        for _ in 0..STEPS_MAX {
            if self.is_full()
                && let Err(trouble) = self.compact().await?
            {
                return Ok(Err(trouble));
            }
            let (answer, announced) = match self.ask().await {
                Ok(it) => it,
                Err(trouble) if compact::is_too_long(&trouble) && !was_full => {
                    was_full = true;
                    match self.compact().await? {
                        Ok(()) => continue,
                        Err(_) => return Ok(Err(trouble)),
                    }
                }
                Err(trouble) => return Ok(Err(trouble)),
            };
            self.count(&answer);
            let Answer { text, thought, calls, finish, tokens, garbled, .. } = answer;
            if calls.is_empty()
                && (text.trim().is_empty() || garbled.is_some())
                && finish == Finish::Stop
            {
                slips += 1;
                if SLIPS_MAX < slips {
                    return self.fail(slip_told(garbled.as_deref())).map(Ok);
                }
                self.hint_at_slip(&text, thought, garbled)?;
                continue;
            }
            let answer = Entry::Answer { text, thought, calls: calls.clone(), tokens };
            self.session.append(self.talk, vec![answer])?;
            if calls.is_empty() {
                return Ok(Ok(stop_of(finish)));
            }
            let Some(done) = self.call(calls, &announced).await? else {
                return Ok(Ok(StopReason::Cancelled));
            };
            let round = done
                .iter()
                .map(|(call, text)| (call.name.as_str(), call.arguments.as_str(), text.as_str()));
            match repeats.on_round(round) {
                Circle::None => {}
                Circle::Told => {
                    let text = "You made the same call again and it had the same result. Do \
                                something else, or say what is in your way."
                        .to_owned();
                    self.session.append(self.talk, vec![Entry::Hint { text }])?;
                }
                Circle::Stopped => {
                    let why = "The model made the same call again and again, so it was stopped. Say \
                               how it should go on.";
                    return self.fail(why.to_owned()).map(Ok);
                }
            }
        }
        Ok(Ok(StopReason::MaxTurnRequests))
    }

    /// One request. The client hears the answer while it comes; which calls it heard of is returned.
    async fn ask(&self) -> Result<(Answer, BTreeSet<String>), Trouble> {
        let had_tools = self.has_tools();
        let session = self.session;
        let message = message_id(self.talk.len());
        let mut announced = BTreeSet::new();
        let request = self.request(self.talk);
        let answer = self.model.ask(&request, |delta| {
            let chunk = |text: &str| ContentChunk::new(text.into()).message_id(message.clone());
            match delta {
                Delta::Text(text) => session.tell(SessionUpdate::AgentMessageChunk(chunk(text))),
                Delta::Thought(text) => session.tell(SessionUpdate::AgentThoughtChunk(chunk(text))),
                Delta::Call { id, name, .. } => {
                    if !name.is_empty() && announced.insert(id.to_owned()) {
                        let id = shown_id(self.talk.len(), id);
                        let call = ToolCall::new(id, name.to_owned()).name(name.to_owned());
                        session.tell(SessionUpdate::ToolCall(call));
                    }
                }
            }
        });
        let answer = answer.await?;
        if had_tools && !self.has_tools() {
            let model = &self.choices.model;
            self.notice(&format!(
                "The server takes no tools for `{model}`: it talks and does nothing."
            ));
        }
        Ok((answer, announced))
    }

    fn request(&self, talk: &[Entry]) -> Ask {
        let site = &self.session.site;
        let acts = self.has_tools().then_some(self.choices.mode);
        let system = system(self.settings, &site.dirs, acts);
        let voice = Voice { system: &system, takes_images: self.takes_images() };
        let mut tools = Vec::new();
        if self.has_tools() {
            tools = tool::offered(site, self.choices.mode != Mode::ReadOnly);
            tools.extend(self.session.servers.offered());
        }
        Ask {
            model: self.choices.model.clone(),
            messages: request(talk, voice),
            tools,
            effort: self.choices.effort.clone(),
        }
    }

    /// Some models only talk, because the user or their server says so.
    fn has_tools(&self) -> bool {
        self.settings.tools && !self.model.refuses_tools(&self.choices.model)
    }

    /// By what the server says, or else by the names of models that are known to.
    fn takes_images(&self) -> bool {
        const KNOWN: [&str; 14] = [
            "gpt-4o",
            "gpt-4.1",
            "gpt-5",
            "chatgpt-4o",
            "o3",
            "o4-",
            "claude",
            "gemini",
            "gemma3",
            "gemma-3",
            "llava",
            "pixtral",
            "vision",
            "-vl",
        ];
        let name = self.choices.model.to_ascii_lowercase();
        let told = self.about.as_ref().and_then(|it| it.takes_images);
        told.unwrap_or_else(|| KNOWN.iter().any(|it| name.contains(it)))
    }

    /// Adds up what it cost, and tells how full the window is.
    fn count(&mut self, answer: &Answer) {
        let Some(tokens) = answer.tokens else { return };
        self.tokens.input += tokens.input;
        self.tokens.output += tokens.output;
        self.tokens.thought += tokens.thought;
        self.tokens.cached += tokens.cached;
        if let Some(size) = self.window() {
            let used = tokens.input + tokens.output;
            self.session.tell(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size)));
        }
    }

    /// A model that said nothing, or garbled a call, is told so.
    fn hint_at_slip(
        &mut self,
        text: &str,
        thought: String,
        garbled: Option<String>,
    ) -> Result<(), StoreError> {
        let mut new = Vec::new();
        let hint = match garbled {
            Some(garbled) => {
                let text = format!("{text}{garbled}");
                let calls = Vec::new();
                new.push(Entry::Answer { text, thought, calls, tokens: None });
                "Your last answer looks like a call that was written as text and cannot be read. Make \
                 it through the interface for calls, with arguments that are a JSON object."
            }
            None => "You answered nothing. Answer, or make a call.",
        };
        new.push(Entry::Hint { text: hint.to_owned() });
        self.session.append(self.talk, new)
    }

    /// The first words are the title.
    fn entitle(&mut self, content: &[ContentBlock]) -> Result<(), StoreError> {
        if self.session.has_title() {
            return Ok(());
        }
        let words = content.iter().find_map(|it| match it {
            ContentBlock::Text(text) => title_of(&text.text),
            _ => None,
        });
        if let Some(title) = words {
            self.session.change(|record| record.title = Some(title.clone()))?;
            let update = SessionInfoUpdate::new().title(title);
            self.session.tell(SessionUpdate::SessionInfoUpdate(update));
        }
        Ok(())
    }

    /// There is no answer: the user is told why.
    fn fail(&mut self, message: String) -> Result<StopReason, StoreError> {
        tracing::warn!("{message}");
        self.session
            .tell(SessionUpdate::AgentMessageChunk(ContentChunk::new(message.as_str().into())));
        self.session.append(self.talk, vec![Entry::Failed { message }])?;
        Ok(StopReason::EndTurn)
    }

    /// What people should know and the model need not.
    fn notice(&self, text: &str) {
        tracing::warn!("{text}");
        if self.hears.notices {
            let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
            let rest = Some(rest.to_owned()).filter(|it| !it.is_empty());
            let notice = Notice::new(NoticeSeverity::Warning, title).description(rest);
            self.session.tell(SessionUpdate::Notice(notice));
        } else {
            let chunk = ContentChunk::new(format!("{text}\n\n").as_str().into());
            self.session.tell(SessionUpdate::AgentThoughtChunk(chunk));
        }
    }
}

/// The id of a message for the client, by its place: the same live and when it is loaded.
pub(crate) fn message_id(place: usize) -> MessageId {
    MessageId::new(format!("m-{place}"))
}

/// A call's id for the client. Models number their calls anew in every answer, or not at all, and a
/// client needs ids that are unique in a session: so the place of the answer stands before it.
pub(crate) fn shown_id(answer: usize, call: &str) -> String {
    format!("{answer}-{call}")
}

fn slip_told(garbled: Option<&str>) -> String {
    match garbled {
        Some(_) => {
            "The model writes its calls as text that cannot be read, so nothing was done. It may \
                    not be able to use tools: `jackfield models probe` tells, and \
                    OPENAI_TOOLS=0 lets it talk without."
                .to_owned()
        }
        None => {
            "The model answered nothing. Its window may be too small for the prompt: `jackfield \
                 models probe` tells."
                .to_owned()
        }
    }
}

fn stop_of(finish: Finish) -> StopReason {
    match finish {
        Finish::Stop => StopReason::EndTurn,
        Finish::Length => StopReason::MaxTokens,
        Finish::Refusal => StopReason::Refusal,
    }
}

/// What a turn cost, as the protocol tells it.
pub(crate) fn usage_of(tokens: Tokens) -> Option<Usage> {
    let total = tokens.input + tokens.output;
    if total == 0 {
        return None;
    }
    let some = |it: u64| Some(it).filter(|it| 0 < *it);
    let usage = Usage::new(total, tokens.input, tokens.output);
    Some(usage.thought_tokens(some(tokens.thought)).cached_read_tokens(some(tokens.cached)))
}
