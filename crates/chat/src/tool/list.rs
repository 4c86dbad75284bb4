//! `list`: one directory.

use super::{
    Grant, Job, Outcome, Site, Work,
    args::Args,
    files::Target,
    walk::{self, Flag},
};

/// Nobody lists more to read it.
const ENTRIES_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct List {
    target: Target,
}

pub(super) async fn prepare(args: &Args, site: &Site) -> Result<Job<Work>, String> {
    let path = args.optional_text("path")?.filter(|it| !it.is_empty());
    let target = Target::find_existing(path.as_deref().unwrap_or("."), site).await?;
    if !target.is_dir {
        return Err(format!("`{}` is a file. Use `read` to see what is in it.", target.shown));
    }
    Ok(Job {
        input: args.input(),
        title: target.shown.clone(),
        kind: args.tool().kind,
        locations: vec![target.location(None)],
        content: Vec::new(),
        grant: Grant::Free,
        work: Work::List(List { target }),
    })
}

impl List {
    pub(super) async fn run(self) -> Outcome {
        Outcome::told(walk::search(move |flag| self.names(flag)).await)
    }

    fn names(&self, flag: &Flag) -> String {
        let entries = walk::entries(&self.target.real, Some(1)).filter(|it| 0 < it.depth());
        let mut names: Vec<String> = entries
            .take_while(|_| !flag.is_up())
            .take(ENTRIES_MAX + 1)
            .map(|it| {
                let slash = if it.file_type().is_some_and(|it| it.is_dir()) { "/" } else { "" };
                format!("{}{slash}", it.file_name().to_string_lossy())
            })
            .collect();
        if names.is_empty() {
            return format!("`{}` is empty, apart from what git ignores.", self.target.shown);
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
    use crate::tool::{Offers, world::in_world};
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn one_level_is_listed_without_what_git_ignores() {
        in_world(Offers::default(), async |world| {
            for dir in [".git", ".github", "src/deep", "target"] {
                fs::create_dir_all(world.at(dir)).unwrap();
            }
            fs::write(world.at(".gitignore"), "target\n").unwrap();
            fs::write(world.at("src/deep/x"), "").unwrap();
            let all = world.call("list", json!({})).await;
            assert_eq!(all.text, ".github/\n.gitignore\nsrc/");
            assert_eq!(world.call("list", json!({ "path": "src" })).await.text, "deep/");
            let file = world.call("list", json!({ "path": ".gitignore" })).await;
            assert!(file.failed && file.text.contains("Use `read`"));
            let missing = world.call("list", json!({ "path": "no" })).await;
            assert!(missing.failed && missing.text.contains("There is no `no`"));
        })
        .await;
    }
}
