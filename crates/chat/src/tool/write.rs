//! `write`: a whole file.

use super::{
    Job, Site, Work,
    args::Args,
    change::{Change, Changes},
    files::Target,
};

pub(super) async fn prepare(args: &Args, site: &Site) -> Result<Job<Work>, String> {
    let target = Target::find_file(&args.text("path")?, site).await?;
    let new = Some(args.text("content")?);
    let old = target.read_if_there(site).await?;
    Changes(vec![Change { target, old, new }]).into_job(args)
}

#[cfg(test)]
mod tests {
    use crate::tool::{Grant, Offers, world::in_world};
    use agent_client_protocol::v1::schema::ToolCallContent;
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn a_person_sees_the_diff_before_and_after() {
        for offers in [Offers::default(), Offers { read: true, write: true, terminal: false }] {
            in_world(offers, async |world| {
                fs::write(world.at("a"), "old\n").unwrap();
                let args = json!({ "path": "a", "content": "new\n" });
                let job = world.prepare("write", args).await.unwrap();
                let [ToolCallContent::Diff(diff)] = job.content.as_slice() else { panic!() };
                assert_eq!(diff.path, world.at("a"));
                assert_eq!(diff.old_text.as_deref(), Some("old\n"));
                assert_eq!((diff.new_text.as_str(), job.title.as_str()), ("new\n", "a"));
                assert_eq!((job.grant.clone(), job.locations.len()), (Grant::Edit, 1));
                assert_eq!(fs::read_to_string(world.at("a")).unwrap(), "old\n");
                let content = job.content.clone();
                let outcome = world.run(job).await;
                assert_eq!(outcome.content, content);
                assert!(outcome.text.contains("-old\n+new"), "{}", outcome.text);
                assert_eq!(fs::read_to_string(world.at("a")).unwrap(), "new\n");
            })
            .await;
        }
    }

    #[tokio::test]
    async fn a_new_file_is_made_with_its_directories() {
        in_world(Offers::default(), async |world| {
            let args = json!({ "path": "x/y/z.txt", "content": "a\nb\n" });
            let outcome = world.call("write", args.clone()).await;
            assert_eq!(outcome.text, "Made `x/y/z.txt`: 2 lines.");
            assert_eq!(fs::read_to_string(world.at("x/y/z.txt")).unwrap(), "a\nb\n");
            assert!(world.call("write", args).await.text.contains("would change nothing"));
            let outcome = world.call("write", json!({ "path": "x", "content": "" })).await;
            assert!(outcome.failed && outcome.text.contains("is a directory"));
        })
        .await;
    }
}
