//! What the caller wants of the session beside the prompt: a model, a mode, more directories, images.

use super::{Run, goal::Goal, image, start::Starting};
use crate::{
    env,
    hub::{Conn, Until, Wait, directory},
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use jackfield_views::options::{self, Refused, Setting};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Wishes {
    /// The model: one that the agent offers, by id or name, or another id that it knows
    #[arg(short, long, env = env::MODEL, hide_env_values = true)]
    model: Option<String>,

    /// How freely the agent acts: a mode that it offers, by id or name
    #[arg(long, env = env::MODE, hide_env_values = true)]
    mode: Option<String>,

    /// How hard to think: a level that the agent offers
    #[arg(long, env = env::REASONING, hide_env_values = true, value_name = "LEVEL")]
    reasoning: Option<String>,

    /// A directory beside the working one that the agent may use; may be repeated
    #[arg(long, env = env::ADD_DIR, hide_env_values = true, value_name = "DIR")]
    add_dir: Vec<PathBuf>,

    /// An image for the prompt: PNG, JPEG, GIF or WebP; may be repeated
    #[arg(long, env = env::IMAGE, hide_env_values = true, value_name = "FILE")]
    image: Vec<PathBuf>,
}

impl Wishes {
    /// Images as content blocks.
    pub(super) fn images(&self) -> Result<Vec<Value>, Failure> {
        image::blocks(&self.image)
    }

    /// More directories under names that do not depend on where we are.
    pub(super) fn directories(&self) -> Result<Vec<PathBuf>, Failure> {
        self.add_dir.iter().map(|it| directory(it, "--add-dir")).collect()
    }

    /// Refuses what the agent has said it cannot do.
    pub(super) fn check(&self, agent: &str, told: &Value) -> Result<(), Failure> {
        let can = &told["agentCapabilities"];
        if !self.image.is_empty() && can["promptCapabilities"]["image"] != true {
            let message = format!("{agent} takes no images");
            return Err(Failure::usage(
                message,
                "name the file in the prompt instead of `--image`",
            ));
        }
        if !self.add_dir.is_empty() && can["sessionCapabilities"]["additionalDirectories"].is_null()
        {
            let message = format!("{agent} works in one directory only");
            let hint = "leave out `--add-dir`, or choose a `--cwd` that has them all";
            return Err(Failure::usage(message, hint));
        }
        Ok(())
    }

    fn settings(&self) -> impl Iterator<Item = Wish<'_>> {
        // The levels of thought may depend on the model.
        let all = [
            (Setting::Model, "model", "--model", &self.model),
            (Setting::Mode, "mode", "--mode", &self.mode),
            (Setting::Reasoning, "level of reasoning", "--reasoning", &self.reasoning),
        ];
        all.into_iter().filter_map(|(setting, word, flag, wanted)| {
            Some(Wish { setting, word, flag, wanted: wanted.as_deref()? })
        })
    }

    pub(super) fn wants_images(&self) -> bool {
        !self.image.is_empty()
    }

    pub(super) fn wants_directories(&self) -> bool {
        !self.add_dir.is_empty()
    }

    pub(super) fn wants_settings(&self) -> bool {
        self.settings().next().is_some()
    }
}

impl Run {
    /// Sets what the caller wants set before anything is said.
    pub(super) fn set(
        &self,
        conn: &mut Conn,
        goal: &mut Goal,
        starting: &Starting,
    ) -> Result<(), Failure> {
        for wish in self.wishes.settings() {
            let Wish { setting, wanted, .. } = wish;
            let change = options::choose(&goal.setup, setting, &goal.session, wanted)
                .map_err(|refused| wish.refused(goal, refused))?;
            let Some(change) = change else { continue };
            let what = format!("{} to set its {}", goal.agent, wish.word);
            let wait = Wait { what: &what, until: starting.until() };
            let answer = conn
                .call(change.method.name(), &change.params, wait)
                .map_err(|failure| wish.failed(goal, failure))?;
            if answer["configOptions"].is_array() {
                goal.setup["configOptions"] = answer["configOptions"].clone();
            }
        }
        Ok(())
    }

    /// What a session that exists lets its user choose.
    pub(super) fn look_up_setup(&self, conn: &mut Conn, goal: &mut Goal) -> Result<(), Failure> {
        if self.wishes.wants_settings() {
            let wait = Wait { what: "what the session offers", until: Until::Hub };
            let params = json!({ "sessionId": goal.session, "cwd": goal.cwd, "mcpServers": [] });
            goal.setup = conn.call(Method::SessionResume.name(), &params, wait)?;
        }
        Ok(())
    }
}

/// One setting.
#[derive(Clone, Copy)]
struct Wish<'a> {
    setting: Setting,
    /// For people.
    word: &'static str,
    flag: &'static str,
    wanted: &'a str,
}

impl Wish<'_> {
    /// There is nothing to ask the agent for.
    fn refused(self, goal: &Goal, refused: Refused) -> Failure {
        let Wish { word, flag, wanted, .. } = self;
        match refused {
            Refused::NoModelId => {
                let message = format!("no model can be called `{wanted}`");
                Failure::usage(message, "`jackfield models AGENT` lists what an agent has")
            }
            Refused::NoChoice => {
                let message = format!("{} offers no choice of {word}", goal.agent);
                Failure::NotSet { message, causes: Vec::new(), flag, offered: Vec::new() }
            }
            Refused::NotOffered { offered } => {
                let message = format!("{} has no {word} `{wanted}`", goal.agent);
                Failure::NotSet { message, causes: Vec::new(), flag, offered }
            }
        }
    }

    /// The agent itself refused; anything else that went wrong speaks for itself.
    fn failed(self, goal: &Goal, failure: Failure) -> Failure {
        let Wish { setting, word, flag, wanted } = self;
        match failure {
            Failure::Answer(answer) if answer.name().is_empty() => {
                let message = format!("{} does not take the {word} `{wanted}`", goal.agent);
                let offer = options::offer(&goal.setup, setting);
                let offered = offer.map(|it| it.values()).unwrap_or_default();
                Failure::NotSet { message, causes: answer.as_causes(), flag, offered }
            }
            other => other,
        }
    }
}
