//! What the findings mean for an agent, and what to do about them.

use super::{Calls, Probed, window::Server};
use serde::Serialize;

/// A prompt of an agent, its tools and two files do not fit into less.
const WINDOW_MIN: u64 = 8192;
/// With this a task of some length fits.
const WINDOW_GOOD: u64 = 32_768;
/// Slower, and a person waits for minutes.
const RATE_MIN: f64 = 5.0;

/// Whether it will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fitness {
    Good,
    /// It works, with something to know.
    Usable,
    Unfit,
}

/// Something that is not as an agent needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flaw {
    pub what: String,
    /// The exact command or setting.
    pub fix: String,
}

impl Probed {
    /// One line: what it is good for, and why.
    pub fn verdict(&self) -> String {
        let model = &self.model;
        let flaws: Vec<&str> = self.flaws.iter().map(|it| it.what.as_str()).collect();
        match self.fitness {
            Fitness::Good => format!("{model} will do as an agent"),
            Fitness::Usable => format!("{model} will do as an agent, but {}", flaws.join("; ")),
            Fitness::Unfit => format!("{model} will not do as an agent: {}", flaws.join("; ")),
        }
    }
}

/// Fills in the flaws and the fitness that follows from them.
pub(super) fn judge(probed: &mut Probed, server: Server) {
    judge_window(probed, server);
    judge_calls(probed, server);
    if !probed.streams {
        let fix = "turn off buffering in the proxy before the server".to_owned();
        add(probed, Fitness::Usable, "its answers come in one piece".to_owned(), fix);
    }
    if let Some(rate) = probed.tokens_per_second.filter(|it| *it < RATE_MIN) {
        let fix = "use a smaller model or a graphics card".to_owned();
        add(probed, Fitness::Usable, format!("it makes only {rate:.1} tokens a second"), fix);
    }
}

fn judge_window(probed: &mut Probed, server: Server) {
    let Some(tokens) = probed.window else {
        let fix = "OPENAI_CONTEXT_WINDOW=TOKENS jackfield agent".to_owned();
        add(
            probed,
            Fitness::Usable,
            "nobody tells how many tokens it sees at once".to_owned(),
            fix,
        );
        return;
    };
    if WINDOW_GOOD <= tokens {
        return;
    }
    let model = &probed.model;
    let fix = match server {
        Server::Ollama => format!("OLLAMA_CONTEXT_LENGTH={WINDOW_GOOD} ollama serve"),
        Server::LlamaCpp => format!("llama-server --ctx-size {WINDOW_GOOD} …"),
        Server::Vllm => format!("vllm serve {model} --max-model-len {WINDOW_GOOD}"),
        Server::Other => format!("give the model a window of {WINDOW_GOOD} tokens, or use another"),
    };
    let fitness = if tokens < WINDOW_MIN { Fitness::Unfit } else { Fitness::Usable };
    add(probed, fitness, format!("it sees only {tokens} tokens at once"), fix);
}

fn judge_calls(probed: &mut Probed, server: Server) {
    let (fitness, what) = match probed.calls {
        Calls::Native => return,
        Calls::Text => (Fitness::Usable, "it writes its calls into the text, where we read them"),
        Calls::Garbled => (Fitness::Unfit, "it writes calls into the text that cannot be read"),
        Calls::Refused => (Fitness::Unfit, "the server will not have tools"),
        Calls::None => (Fitness::Unfit, "it did not call the tool it was offered"),
    };
    let model = &probed.model;
    let fix = match server {
        Server::Vllm if probed.calls != Calls::None => {
            format!("vllm serve {model} --enable-auto-tool-choice --tool-call-parser hermes")
        }
        Server::LlamaCpp if probed.calls != Calls::None => "llama-server --jinja …".to_owned(),
        Server::Ollama => {
            "ollama pull qwen3, or another model of https://ollama.com/search?c=tools".to_owned()
        }
        _ => "use a model that was trained to call tools; without them: OPENAI_TOOLS=0".to_owned(),
    };
    add(probed, fitness, what.to_owned(), fix);
}

fn add(probed: &mut Probed, fitness: Fitness, what: String, fix: String) {
    probed.flaws.push(Flaw { what, fix });
    probed.fitness = probed.fitness.max(fitness);
}
