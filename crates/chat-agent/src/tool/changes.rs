//! Changes to files. They are shown before they are made, and made only if the files are still as
//! shown.

use super::{
    PreparedCall, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments, files::ResolvedPath, truncate::truncate_middle,
};
use agent_client_protocol::v1::schema::{Diff, ToolCallContent, ToolCallLocation};
use similar::TextDiff;
use std::time::Duration;

/// The model wrote the new text itself, so it needs only a part of the diff to check the result.
const DIFF_CHARS_MAX: usize = 4_000;
/// For a huge file, a coarse diff in time is better than a fine one that takes long.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);

/// The old and the new text of one file. `None` means that the file does not exist.
#[derive(Debug, Clone)]
pub(super) struct PlannedChange {
    pub(super) file: ResolvedPath,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

/// Changes that are made together or not at all.
#[derive(Debug)]
pub(crate) struct ChangeSet(pub(super) Vec<PlannedChange>);

impl ChangeSet {
    pub(super) fn into_prepared_call(
        self,
        args: &ToolArguments,
    ) -> Result<PreparedCall<ToolWork>, String> {
        let changes: Vec<PlannedChange> =
            self.0.into_iter().filter(|it| it.old != it.new).collect();
        let [first, rest @ ..] = changes.as_slice() else {
            return Err("This would change nothing: the file is like that already.".to_owned());
        };
        let title = match rest {
            [] => first.file.display.clone(),
            rest => format!("{} and {} more", first.file.display, rest.len()),
        };
        Ok(PreparedCall {
            input: args.to_input(),
            title,
            kind: args.tool().kind,
            locations: changes.iter().map(PlannedChange::to_location).collect(),
            content: changes.iter().map(PlannedChange::to_diff).collect(),
            permission: RequiredPermission::Edit,
            work: ToolWork::Change(ChangeSet(changes)),
        })
    }

    pub(super) async fn run(self, context: &SessionContext) -> ToolOutcome {
        // In a separate task, so that a cancel does not leave half of the changes.
        let context = context.clone();
        let applied = tokio::spawn(async move { self.apply_changes(&context).await });
        let result = applied.await.expect("the task is never aborted and does not panic");
        ToolOutcome::from_result(result)
    }

    async fn apply_changes(&self, context: &SessionContext) -> Result<ToolOutcome, String> {
        for change in &self.0 {
            change.check_unmodified(context).await?;
        }
        for (number, change) in self.0.iter().enumerate() {
            if let Err(error) = change.write_text(context, change.new.as_deref()).await {
                return Err(self.roll_back(number, context, error).await);
            }
        }
        let lines: Vec<String> = self.0.iter().map(PlannedChange::describe_result).collect();
        let text =
            truncate_middle(&lines.join("\n"), DIFF_CHARS_MAX, "read the file to see it all");
        let content = self.0.iter().map(PlannedChange::to_diff).collect();
        Ok(ToolOutcome { text, content, ..ToolOutcome::default() })
    }

    /// Reverts the first `count` changes, the last one first, after a write has failed with
    /// `error`.
    async fn roll_back(&self, count: usize, context: &SessionContext, error: String) -> String {
        let mut failed = Vec::new();
        for change in self.0[..count].iter().rev() {
            if change.write_text(context, change.old.as_deref()).await.is_err() {
                failed.push(format!("`{}`", change.file.display));
            }
        }
        match (count, failed.as_slice()) {
            (0, _) => error,
            (_, []) => format!("{error} Nothing was changed: the other files are as before."),
            (_, failed) => {
                format!("{error} These files could not be reverted: {}.", failed.join(", "))
            }
        }
    }
}

impl PlannedChange {
    async fn check_unmodified(&self, context: &SessionContext) -> Result<(), String> {
        if self.file.read_if_exists(context).await? == self.old {
            return Ok(());
        }
        let display = &self.file.display;
        Err(format!(
            "`{display}` has changed since this was prepared, so nothing was written. Read it again."
        ))
    }

    async fn write_text(&self, context: &SessionContext, text: Option<&str>) -> Result<(), String> {
        match text {
            Some(text) => self.file.write(context, text).await,
            None => self.file.remove(context).await,
        }
    }

    fn to_diff(&self) -> ToolCallContent {
        let new = self.new.clone().unwrap_or_default();
        ToolCallContent::Diff(Diff::new(self.file.path.clone(), new).old_text(self.old.clone()))
    }

    /// Returns the location of the first line that differs.
    fn to_location(&self) -> ToolCallLocation {
        let (old, new) = (self.old.as_deref().unwrap_or(""), self.new.as_deref().unwrap_or(""));
        let equal = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
        self.file.to_location(u32::try_from(equal + 1).ok())
    }

    fn describe_result(&self) -> String {
        let display = &self.file.display;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => format!("Changed `{display}`:\n{}", unified_diff(old, new)),
            (None, Some(new)) => format!("Created `{display}`: {} lines.", new.lines().count()),
            (_, None) => format!("Removed `{display}`."),
        }
    }
}

/// Returns a unified diff without the names of the files.
fn unified_diff(old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(old, new);
    diff.unified_diff().context_radius(3).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{
        IoCapabilities,
        test_session::{TestSession, with_test_session},
    };
    use std::fs;

    async fn change(
        session: &TestSession,
        name: &str,
        old: Option<&str>,
        new: Option<&str>,
    ) -> PlannedChange {
        let file = ResolvedPath::resolve(name, &session.context).await.unwrap();
        PlannedChange { file, old: old.map(str::to_owned), new: new.map(str::to_owned) }
    }

    #[tokio::test]
    async fn nothing_is_written_if_one_file_changed_since() {
        with_test_session(IoCapabilities::default(), async |session| {
            fs::write(session.at("a"), "a").unwrap();
            fs::write(session.at("b"), "changed elsewhere").unwrap();
            let first = change(&session, "a", Some("a"), Some("A")).await;
            let second = change(&session, "b", Some("b"), Some("B")).await;
            let outcome = ChangeSet(vec![first, second]).run(&session.context).await;
            assert!(outcome.is_error && outcome.text.contains("`b` has changed since"));
            assert_eq!(fs::read_to_string(session.at("a")).unwrap(), "a");
            let new_file = change(&session, "b", None, Some("B")).await;
            assert!(
                ChangeSet(vec![new_file])
                    .run(&session.context)
                    .await
                    .text
                    .contains("changed since")
            );
        })
        .await;
    }

    #[tokio::test]
    async fn failed_write_rolls_back_the_others() {
        with_test_session(IoCapabilities::default(), async |session| {
            fs::write(session.at("a"), "a").unwrap();
            fs::write(session.at("gone"), "gone").unwrap();
            fs::write(session.at("locked"), "b").unwrap();
            let changes = ChangeSet(vec![
                change(&session, "a", Some("a"), Some("A")).await,
                change(&session, "new", None, Some("N")).await,
                change(&session, "gone", Some("gone"), None).await,
                change(&session, "locked/below", None, Some("B")).await,
            ]);
            let outcome = changes.run(&session.context).await;
            assert!(outcome.text.contains("Nothing was changed"), "{}", outcome.text);
            assert_eq!(fs::read_to_string(session.at("a")).unwrap(), "a");
            assert_eq!(fs::read_to_string(session.at("gone")).unwrap(), "gone");
            assert!(!session.at("new").exists());
        })
        .await;
    }
}
