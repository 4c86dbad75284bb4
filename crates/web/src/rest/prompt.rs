//! Builds the prompt of a run: the system prompt, the working directory with its files, the attachments,
//! and the message.

use serde_json::{Value, json};

/// The parts of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunPrompt {
    pub(crate) system_prompt: Option<String>,
    /// Included if the client names a project or has a system prompt.
    pub(crate) directory: Option<WorkingDirectory>,
    /// Paths below the working directory.
    pub(crate) attachments: Vec<String>,
    pub(crate) message: String,
    pub(crate) images: Vec<PromptImage>,
}

/// The working directory and its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WorkingDirectory {
    pub(crate) cwd: String,
    /// Paths relative to it.
    pub(crate) files: Vec<String>,
    /// Whether more files exist.
    pub(crate) has_more: bool,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptImage {
    pub(crate) path: String,
    /// The MIME type and the base64 data; `None` if the type is not supported.
    pub(crate) data: Option<(&'static str, String)>,
}

impl RunPrompt {
    /// The content blocks. An agent that does not accept images gets their paths.
    pub(crate) fn to_blocks(&self, accepts_images: bool) -> Vec<Value> {
        let (embedded, referenced): (Vec<&PromptImage>, Vec<&PromptImage>) =
            self.images.iter().partition(|it| accepts_images && it.data.is_some());
        let mut text = self.to_text();
        if !referenced.is_empty() {
            let paths: Vec<String> = referenced.iter().map(|it| format!("@{}", it.path)).collect();
            text.extend(["\n\n", &paths.join(" ")]);
        }
        let image = |it: &PromptImage| {
            let (mime, data) = it.data.as_ref()?;
            Some(json!({ "type": "image", "mimeType": mime, "data": data }))
        };
        let images = embedded.into_iter().filter_map(image);
        [json!({ "type": "text", "text": text })].into_iter().chain(images).collect()
    }

    fn to_text(&self) -> String {
        let mut sections = Vec::new();
        if let Some(system) = &self.system_prompt {
            sections.push(format!("# What to follow\n\n{}", system.trim_end()));
        }
        if let Some(directory) = &self.directory {
            sections.push(directory.describe());
        }
        if !self.attachments.is_empty() {
            sections.push(format!("# Attached files\n\n{}", list(&self.attachments)));
        }
        if sections.is_empty() {
            return self.message.clone();
        }
        format!("{}\n\n---\n\n# What is asked\n\n{}", sections.join("\n\n"), self.message)
    }
}

impl WorkingDirectory {
    fn describe(&self) -> String {
        let mut text = format!(
            "# Where you work\n\nYour working directory is `{}`. Write files there, by paths relative to it.",
            self.cwd
        );
        if self.files.is_empty() {
            text += " It is empty.";
        } else {
            text.extend([" It has these files:\n\n", &list(&self.files)]);
            if self.has_more {
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

    fn image(has_data: bool) -> PromptImage {
        let data = has_data.then(|| ("image/png", "AAAA".to_owned()));
        PromptImage { path: "/up/a.png".into(), data }
    }

    fn text(blocks: &[Value]) -> &str {
        blocks[0]["text"].as_str().unwrap()
    }

    #[test]
    fn message_alone_stays_unchanged() {
        let prompt = RunPrompt { message: "fix it".into(), ..RunPrompt::default() };
        assert_eq!(prompt.to_blocks(true), [json!({ "type": "text", "text": "fix it" })]);
    }

    #[test]
    fn sections_are_in_order_and_the_message_comes_last() {
        let directory =
            WorkingDirectory { cwd: "/srv/p".into(), files: vec!["a.rs".into()], has_more: true };
        let prompt = RunPrompt {
            system_prompt: Some("Be brief.\n".into()),
            directory: Some(directory),
            attachments: vec!["notes/b.md".into()],
            message: "fix it".into(),
            images: vec![image(true)],
        };
        insta::assert_snapshot!(text(&prompt.to_blocks(false)));
    }

    #[test]
    fn images_are_embedded_only_for_agents_that_accept_them() {
        let images = vec![image(true), image(false)];
        let prompt = RunPrompt { message: "look".into(), images, ..RunPrompt::default() };
        let blocks = prompt.to_blocks(true);
        assert_eq!(text(&blocks), "look\n\n@/up/a.png");
        let embedded = json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" });
        assert_eq!(blocks[1..], [embedded]);
        let blocks = prompt.to_blocks(false);
        assert_eq!((text(&blocks), blocks.len()), ("look\n\n@/up/a.png @/up/a.png", 1));
    }
}
