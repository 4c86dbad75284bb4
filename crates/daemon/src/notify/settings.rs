//! `[notify]` of `config.toml`.

use reqwest::Url;
use serde::Deserialize;
use std::net::IpAddr;

/// Events that can be notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyEvent {
    /// An agent waits for an answer of the user.
    NeedsYou,
    /// A turn ended and was not cancelled.
    Done,
    /// A turn ended with an error, or the agent died in it.
    Failed,
}

impl NotifyEvent {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            NotifyEvent::NeedsYou => "needs_you",
            NotifyEvent::Done => "done",
            NotifyEvent::Failed => "failed",
        }
    }
}

/// `[notify]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifySettings {
    /// The program and its arguments; never a shell string.
    pub command: Option<Vec<String>>,
    /// `https://…`, or `http://…` on this machine.
    pub url: Option<String>,
    /// All events, if omitted.
    pub on: Option<Vec<NotifyEvent>>,
    /// Whether notifications in browsers have the title and the request, too.
    pub push_content: bool,
}

impl NotifySettings {
    /// Returns what is invalid.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.command.as_ref().is_some_and(Vec::is_empty) {
            return Err(
                "`command` of [notify] is empty: set it to the program and its arguments, as in \
                        `command = [\"notify-send\", \"jackfield\"]`"
                    .to_owned(),
            );
        }
        match &self.url {
            Some(url) => check_url(url),
            None => Ok(()),
        }
    }

    pub(crate) fn wants(&self, event: NotifyEvent) -> bool {
        self.on.as_ref().is_none_or(|it| it.contains(&event))
    }
}

fn check_url(text: &str) -> Result<(), String> {
    let url = Url::parse(text)
        .map_err(|error| format!("`url` of [notify] is not a valid URL: {error}"))?;
    let host = url.host_str().unwrap_or_default();
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(host) => Ok(()),
        "http" => Err(format!(
            "`url` of [notify] would send what your agents do to `{host}` unencrypted: \
             use https, or an address of this machine such as http://127.0.0.1:8080"
        )),
        other => {
            Err(format!("`url` of [notify] is `{other}:`: use https, or http on this machine"))
        }
    }
}

/// Names are not resolved, since a name may point elsewhere later.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str) -> Result<(), String> {
        NotifySettings { url: Some(url.to_owned()), ..NotifySettings::default() }.check()
    }

    #[test]
    fn plain_http_is_accepted_for_loopback_only() {
        let good = [
            "https://example.org/x",
            "http://127.0.0.1:9/x",
            "http://[::1]:9/",
            "http://localhost",
        ];
        for good in good {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["http://example.org/x", "http://192.168.1.2/", "http://localhost.example.org/"]
        {
            assert!(check(bad).unwrap_err().contains("use https"), "{bad}");
        }
        assert!(check("ftp://127.0.0.1/").unwrap_err().contains("`ftp:`"));
        assert!(check("nonsense").unwrap_err().contains("not a valid URL"));
    }

    #[test]
    fn command_is_not_empty_and_events_are_filtered() {
        assert_eq!(NotifySettings::default().check(), Ok(()), "browsers may have subscribed");
        let empty = NotifySettings { command: Some(Vec::new()), ..NotifySettings::default() };
        assert!(empty.check().unwrap_err().contains("is empty"));
        let some =
            NotifySettings { on: Some(vec![NotifyEvent::Failed]), ..NotifySettings::default() };
        assert!(some.wants(NotifyEvent::Failed) && !some.wants(NotifyEvent::Done));
        assert!(NotifySettings::default().wants(NotifyEvent::NeedsYou));
    }
}
