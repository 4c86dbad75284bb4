//! The tool `list`: lists one directory.

use super::{
    PreparedCall, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    files::ResolvedPath,
    walk::{CancelFlag, run_search, walk_entries},
};

/// A longer list is of no use to a model.
const ENTRIES_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct DirectoryListing {
    dir: ResolvedPath,
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let path = args.optional_text("path")?.filter(|it| !it.is_empty());
    let dir = ResolvedPath::resolve_existing(path.as_deref().unwrap_or("."), context).await?;
    if !dir.is_dir {
        return Err(format!("`{}` is a file. Use `read` to see what is in it.", dir.display));
    }
    Ok(PreparedCall {
        input: args.to_input(),
        title: dir.display.clone(),
        kind: args.tool().kind,
        locations: vec![dir.to_location(None)],
        content: Vec::new(),
        permission: RequiredPermission::None,
        work: ToolWork::List(DirectoryListing { dir }),
    })
}

impl DirectoryListing {
    pub(super) async fn run(self) -> ToolOutcome {
        ToolOutcome::success(run_search(move |cancel| self.list_names(cancel)).await)
    }

    fn list_names(&self, cancel: &CancelFlag) -> String {
        let entries = walk_entries(&self.dir.real, Some(1)).filter(|it| 0 < it.depth());
        let mut names: Vec<String> = entries
            .take_while(|_| !cancel.is_set())
            .take(ENTRIES_MAX + 1)
            .map(|it| {
                let slash = if it.file_type().is_some_and(|it| it.is_dir()) { "/" } else { "" };
                format!("{}{slash}", it.file_name().to_string_lossy())
            })
            .collect();
        if names.is_empty() {
            return format!("`{}` is empty, except for files that git ignores.", self.dir.display);
        }
        if ENTRIES_MAX < names.len() {
            names.truncate(ENTRIES_MAX);
            names.push(format!("[… there are more than {ENTRIES_MAX}: use `glob` to find some …]"));
        }
        names.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::{IoCapabilities, test_session::with_test_session};
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn one_level_is_listed_without_ignored_files() {
        with_test_session(IoCapabilities::default(), async |session| {
            for dir in [".git", ".github", "src/deep", "target"] {
                fs::create_dir_all(session.at(dir)).unwrap();
            }
            fs::write(session.at(".gitignore"), "target\n").unwrap();
            fs::write(session.at("src/deep/x"), "").unwrap();
            let all = session.call("list", json!({})).await;
            assert_eq!(all.text, ".github/\n.gitignore\nsrc/");
            assert_eq!(session.call("list", json!({ "path": "src" })).await.text, "deep/");
            let file = session.call("list", json!({ "path": ".gitignore" })).await;
            assert!(file.is_error && file.text.contains("Use `read`"));
            let missing = session.call("list", json!({ "path": "no" })).await;
            assert!(missing.is_error && missing.text.contains("There is no `no`"));
        })
        .await;
    }
}
