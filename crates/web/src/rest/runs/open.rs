//! Getting a session ready for a prompt: opened, or found, and set as its user wants.

use super::{
    drive::{Goal, Order},
    key::KeyedRequest,
};
use crate::rest::{
    Api,
    error::ApiError,
    hub::{Conn, Trouble},
};
use jackfield_protocol::acp::Method;
use jackfield_views::options::{Refused, Setting, choose};
use serde_json::{Value, json};

/// What is set before the prompt; `default` and nothing leave it to the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choices {
    pub(crate) model: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) mode: Option<String>,
}

impl Choices {
    fn all(&self) -> impl Iterator<Item = (Setting, &'static str, &str)> {
        let settings = [
            (Setting::Model, "model", &self.model),
            (Setting::Reasoning, "reasoning", &self.reasoning),
            (Setting::Mode, "mode", &self.mode),
        ];
        settings.into_iter().filter_map(|(setting, word, it)| Some((setting, word, it.as_deref()?)))
    }
}

/// A session that can be prompted.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) conn: Conn,
    pub(super) session: String,
    /// Its agent can look at pictures.
    pub(super) sees: bool,
}

/// Opens or finds the session. If it was opened and cannot be used, it is removed again.
pub(super) async fn ready(api: &Api, order: &Order) -> Result<Ready, ApiError> {
    let Order { goal, choices, .. } = order;
    let mut conn = api.hub.dial().await?;
    let (session, setup, sees) = match goal {
        Goal::New { agent, cwd, unenforced } => {
            let launch = json!({ "agent": agent, "cwd": cwd, "unenforced": unenforced });
            conn.call(Method::ControlConnect.name(), &launch).await?;
            let told = conn.hello().await?;
            let sees = told.pointer("/agentCapabilities/promptCapabilities/image");
            let sees = sees == Some(&Value::Bool(true));
            api.sight().insert(agent.clone(), sees);
            let mut params = json!({ "cwd": cwd, "mcpServers": [] });
            let ours = |it: &KeyedRequest| it.add_to(&mut params["_meta"]["jackfield"]);
            order.request.iter().for_each(ours);
            let setup = conn.call(Method::SessionNew.name(), &params).await?;
            (setup["sessionId"].as_str().unwrap_or_default().to_owned(), setup, sees)
        }
        Goal::Old { session, agent, cwd } => {
            conn.hello().await?;
            let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
            let some = choices.all().next().is_some();
            let setup = if some {
                conn.call(Method::SessionResume.name(), &params).await?
            } else {
                Value::Null
            };
            let sees = api.sight().get(agent).copied().unwrap_or(false);
            (session.clone(), setup, sees)
        }
    };
    let set = set(&mut conn, &session, &setup, choices).await;
    if let (Err(_), Goal::New { .. }) = (&set, goal) {
        // Nobody has said anything in it; if it cannot be removed, it is only listed.
        let _left = conn.call(Method::SessionDelete.name(), &json!({ "sessionId": session })).await;
    }
    set?;
    Ok(Ready { conn, session, sees })
}

async fn set(
    conn: &mut Conn,
    session: &str,
    setup: &Value,
    choices: &Choices,
) -> Result<(), ApiError> {
    for (setting, word, wanted) in choices.all() {
        let change = choose(setup, setting, session, wanted);
        let Some(change) = change.map_err(|it| refused(word, wanted, it))? else { continue };
        match conn.call(change.method.name(), &change.params).await {
            Ok(_) => {}
            Err(Trouble::Refused(error)) => {
                let why = error["message"].as_str().unwrap_or("it gives no reason");
                let message = format!("the agent does not take {word} `{wanted}`: {why}");
                return Err(ApiError::invalid(message));
            }
            Err(trouble) => return Err(trouble.into()),
        }
    }
    Ok(())
}

fn refused(word: &str, wanted: &str, why: Refused) -> ApiError {
    ApiError::invalid(match why {
        Refused::NoChoice => format!("the agent lets nobody choose a {word}: leave it out"),
        Refused::NotOffered { offered } => {
            let offered: Vec<String> = offered.iter().map(|it| format!("`{it}`")).collect();
            format!("the agent has no {word} `{wanted}`: it offers {}", offered.join(", "))
        }
        Refused::NoModelId => format!("`{wanted}` is no id of a model"),
    })
}
