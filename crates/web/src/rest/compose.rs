//! A prompt put together: what the app wants to be followed, where the agent works, which files
//! there are, what is attached, and then what its user said.

use serde_json::{Value, json};

/// Everything a prompt is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) system: Option<String>,
    /// Told to the agent if its app says where it works.
    pub(crate) place: Option<Place>,
    /// Paths below the working directory.
    pub(crate) attachments: Vec<String>,
    pub(crate) message: String,
    pub(crate) images: Vec<Image>,
}

/// The working directory and what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) cwd: String,
    /// Paths below it.
    pub(crate) files: Vec<String>,
    /// There are others.
    pub(crate) more: bool,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) path: String,
    /// Its kind and its bytes in base64; nothing if it is of no kind that agents know.
    pub(crate) seen: Option<(&'static str, String)>,
}

impl Prompt {
    /// The blocks of a prompt for an agent that can look at pictures, or not: then it is told where
    /// they are.
    pub(crate) fn blocks(&self, sees: bool) -> Vec<Value> {
        let (shown, named): (Vec<&Image>, Vec<&Image>) =
            self.images.iter().partition(|it| sees && it.seen.is_some());
        let mut text = self.text();
        if !named.is_empty() {
            let paths: Vec<String> = named.iter().map(|it| format!("@{}", it.path)).collect();
            text.extend(["\n\n", &paths.join(" ")]);
        }
        let image = |it: &Image| {
            let (mime, data) = it.seen.as_ref()?;
            Some(json!({ "type": "image", "mimeType": mime, "data": data }))
        };
        let images = shown.into_iter().filter_map(image);
        [json!({ "type": "text", "text": text })].into_iter().chain(images).collect()
    }

    fn text(&self) -> String {
        let mut before = Vec::new();
        if let Some(system) = &self.system {
            before.push(format!("# What to follow\n\n{}", system.trim_end()));
        }
        if let Some(place) = &self.place {
            before.push(place.text());
        }
        if !self.attachments.is_empty() {
            before.push(format!("# Attached files\n\n{}", list(&self.attachments)));
        }
        if before.is_empty() {
            return self.message.clone();
        }
        format!("{}\n\n---\n\n# What is asked\n\n{}", before.join("\n\n"), self.message)
    }
}

impl Place {
    fn text(&self) -> String {
        let mut text = format!(
            "# Where you work\n\nYour working directory is `{}`. Write files there, by paths relative to it.",
            self.cwd
        );
        if self.files.is_empty() {
            text += " It is empty.";
        } else {
            text.extend([" It has these files:\n\n", &list(&self.files)]);
            if self.more {
                text += "\n- and more";
            }
        }
        text
    }
}

fn list(paths: &[String]) -> String {
    let lines: Vec<String> = paths.iter().map(|it| format!("- {it}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(seen: bool) -> Image {
        let seen = seen.then(|| ("image/png", "AAAA".to_owned()));
        Image { path: "/up/a.png".into(), seen }
    }

    fn text(blocks: &[Value]) -> &str {
        blocks[0]["text"].as_str().unwrap()
    }

    #[test]
    fn a_message_alone_stays_as_it_is() {
        let prompt = Prompt { message: "fix it".into(), ..Prompt::default() };
        assert_eq!(prompt.blocks(true), [json!({ "type": "text", "text": "fix it" })]);
    }

    #[test]
    fn everything_has_its_place_and_what_is_asked_comes_last() {
        let place = Place { cwd: "/srv/p".into(), files: vec!["a.rs".into()], more: true };
        let prompt = Prompt {
            system: Some("Be brief.\n".into()),
            place: Some(place),
            attachments: vec!["notes/b.md".into()],
            message: "fix it".into(),
            images: vec![image(true)],
        };
        insta::assert_snapshot!(text(&prompt.blocks(false)));
    }

    #[test]
    fn pictures_are_shown_to_who_can_look_and_named_to_the_others() {
        let images = vec![image(true), image(false)];
        let prompt = Prompt { message: "look".into(), images, ..Prompt::default() };
        let blocks = prompt.blocks(true);
        assert_eq!(text(&blocks), "look\n\n@/up/a.png");
        let shown = json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" });
        assert_eq!(blocks[1..], [shown]);
        let blocks = prompt.blocks(false);
        assert_eq!((text(&blocks), blocks.len()), ("look\n\n@/up/a.png @/up/a.png", 1));
    }
}
