//! Changes to files: shown before they are made, and made only to what was shown.

use super::{Grant, Job, Outcome, Site, Work, args::Args, cut::cut, files::Target};
use agent_client_protocol::v1::schema::{Diff, ToolCallContent, ToolCallLocation};
use similar::TextDiff;
use std::time::Duration;

/// The model knows what it wrote; it needs to see what became of it, not all of it again.
const DIFF_CHARS_MAX: usize = 4_000;
/// A coarse diff of a huge file soon is better than a fine one late.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);

/// What one file is and what it will be; nothing where there is no file.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) target: Target,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

/// All of them or none.
#[derive(Debug)]
pub(crate) struct Changes(pub(super) Vec<Change>);

impl Changes {
    pub(super) fn into_job(self, args: &Args) -> Result<Job<Work>, String> {
        let changes: Vec<Change> = self.0.into_iter().filter(|it| it.old != it.new).collect();
        let [first, rest @ ..] = changes.as_slice() else {
            return Err("This would change nothing: the file is like that already.".to_owned());
        };
        let title = match rest {
            [] => first.target.shown.clone(),
            rest => format!("{} and {} more", first.target.shown, rest.len()),
        };
        Ok(Job {
            input: args.input(),
            title,
            kind: args.tool().kind,
            locations: changes.iter().map(Change::location).collect(),
            content: changes.iter().map(Change::to_content).collect(),
            grant: Grant::Edit,
            work: Work::Change(Changes(changes)),
        })
    }

    pub(super) async fn run(self, site: &Site) -> Outcome {
        // In a task of its own: half of a change is worse than one that a cancel came too late for.
        let site = site.clone();
        let made = tokio::spawn(async move { self.make(&site).await });
        Outcome::or_failed(made.await.expect("nobody aborts it, and it does not panic"))
    }

    async fn make(&self, site: &Site) -> Result<Outcome, String> {
        for change in &self.0 {
            change.check_unchanged(site).await?;
        }
        for (number, change) in self.0.iter().enumerate() {
            if let Err(why) = change.put(site, change.new.as_deref()).await {
                return Err(self.undo(number, site, why).await);
            }
        }
        let told: Vec<String> = self.0.iter().map(Change::tell).collect();
        let text = cut(&told.join("\n"), DIFF_CHARS_MAX, "read the file to see it all");
        let content = self.0.iter().map(Change::to_content).collect();
        Ok(Outcome { text, content, ..Outcome::default() })
    }

    /// Puts back what was changed before something failed, the last first.
    async fn undo(&self, made: usize, site: &Site, why: String) -> String {
        let mut left = Vec::new();
        for change in self.0[..made].iter().rev() {
            if change.put(site, change.old.as_deref()).await.is_err() {
                left.push(format!("`{}`", change.target.shown));
            }
        }
        match (made, left.as_slice()) {
            (0, _) => why,
            (_, []) => format!("{why} Nothing was changed: the other files are as before."),
            (_, left) => {
                format!("{why} These files are changed all the same: {}.", left.join(", "))
            }
        }
    }
}

impl Change {
    async fn check_unchanged(&self, site: &Site) -> Result<(), String> {
        if self.target.read_if_there(site).await? == self.old {
            return Ok(());
        }
        let shown = &self.target.shown;
        Err(format!(
            "`{shown}` has changed since this was prepared, so nothing was written. Read it again."
        ))
    }

    async fn put(&self, site: &Site, text: Option<&str>) -> Result<(), String> {
        match text {
            Some(text) => self.target.write(site, text).await,
            None => self.target.remove(site).await,
        }
    }

    fn to_content(&self) -> ToolCallContent {
        let new = self.new.clone().unwrap_or_default();
        ToolCallContent::Diff(Diff::new(self.target.path.clone(), new).old_text(self.old.clone()))
    }

    fn location(&self) -> ToolCallLocation {
        let (old, new) = (self.old.as_deref().unwrap_or(""), self.new.as_deref().unwrap_or(""));
        let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
        self.target.location(u32::try_from(same + 1).ok())
    }

    fn tell(&self) -> String {
        let shown = &self.target.shown;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => format!("Changed `{shown}`:\n{}", unified(old, new)),
            (None, Some(new)) => format!("Made `{shown}`: {} lines.", new.lines().count()),
            (_, None) => format!("Removed `{shown}`."),
        }
    }
}

/// A unified diff without the names of the files.
pub(super) fn unified(old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(old, new);
    diff.unified_diff().context_radius(3).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{
        Offers,
        world::{World, in_world},
    };
    use std::fs;

    async fn change(world: &World, name: &str, old: Option<&str>, new: Option<&str>) -> Change {
        let target = Target::find(name, &world.site).await.unwrap();
        Change { target, old: old.map(str::to_owned), new: new.map(str::to_owned) }
    }

    #[tokio::test]
    async fn a_file_that_changed_since_is_left_alone_and_so_are_the_others() {
        in_world(Offers::default(), async |world| {
            fs::write(world.at("a"), "a").unwrap();
            fs::write(world.at("b"), "somebody else's").unwrap();
            let first = change(&world, "a", Some("a"), Some("A")).await;
            let second = change(&world, "b", Some("b"), Some("B")).await;
            let outcome = Changes(vec![first, second]).run(&world.site).await;
            assert!(outcome.failed && outcome.text.contains("`b` has changed since"));
            assert_eq!(fs::read_to_string(world.at("a")).unwrap(), "a");
            let made = change(&world, "b", None, Some("B")).await;
            assert!(Changes(vec![made]).run(&world.site).await.text.contains("changed since"));
        })
        .await;
    }

    #[tokio::test]
    async fn when_one_cannot_be_written_the_others_are_put_back() {
        in_world(Offers::default(), async |world| {
            fs::write(world.at("a"), "a").unwrap();
            fs::write(world.at("gone"), "gone").unwrap();
            fs::write(world.at("locked"), "b").unwrap();
            let changes = Changes(vec![
                change(&world, "a", Some("a"), Some("A")).await,
                change(&world, "new", None, Some("N")).await,
                change(&world, "gone", Some("gone"), None).await,
                change(&world, "locked/below", None, Some("B")).await,
            ]);
            let outcome = changes.run(&world.site).await;
            assert!(outcome.text.contains("Nothing was changed"), "{}", outcome.text);
            assert_eq!(fs::read_to_string(world.at("a")).unwrap(), "a");
            assert_eq!(fs::read_to_string(world.at("gone")).unwrap(), "gone");
            assert!(!world.at("new").exists());
        })
        .await;
    }
}
