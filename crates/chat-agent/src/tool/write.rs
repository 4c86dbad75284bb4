//! The tool `write`: writes a whole file.

use super::{
    PreparedCall, SessionContext, ToolWork,
    arguments::ToolArguments,
    changes::{ChangeSet, PlannedChange},
    files::ResolvedPath,
};

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let file = ResolvedPath::resolve_file(&args.required_text("path")?, context).await?;
    let new = Some(args.required_text("content")?);
    let old = file.read_if_exists(context).await?;
    ChangeSet(vec![PlannedChange { file, old, new }]).into_prepared_call(args)
}

#[cfg(test)]
mod tests {
    use crate::tool::{IoCapabilities, RequiredPermission, test_session::with_test_session};
    use agent_client_protocol::v1::schema::ToolCallContent;
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn diff_is_shown_before_and_after_the_write() {
        for client_io in [
            IoCapabilities::default(),
            IoCapabilities { reads_files: true, writes_files: true, has_terminals: false },
        ] {
            with_test_session(client_io, async |session| {
                fs::write(session.at("a"), "old\n").unwrap();
                let args = json!({ "path": "a", "content": "new\n" });
                let prepared = session.prepare("write", args).await.unwrap();
                let [ToolCallContent::Diff(diff)] = prepared.content.as_slice() else { panic!() };
                assert_eq!(diff.path, session.at("a"));
                assert_eq!(diff.old_text.as_deref(), Some("old\n"));
                assert_eq!((diff.new_text.as_str(), prepared.title.as_str()), ("new\n", "a"));
                assert_eq!(
                    (prepared.permission.clone(), prepared.locations.len()),
                    (RequiredPermission::Edit, 1)
                );
                assert_eq!(fs::read_to_string(session.at("a")).unwrap(), "old\n");
                let content = prepared.content.clone();
                let outcome = session.run(prepared).await;
                assert_eq!(outcome.content, content);
                assert!(outcome.text.contains("-old\n+new"), "{}", outcome.text);
                assert_eq!(fs::read_to_string(session.at("a")).unwrap(), "new\n");
            })
            .await;
        }
    }

    #[tokio::test]
    async fn new_file_is_created_with_its_directories() {
        with_test_session(IoCapabilities::default(), async |session| {
            let args = json!({ "path": "x/y/z.txt", "content": "a\nb\n" });
            let outcome = session.call("write", args.clone()).await;
            assert_eq!(outcome.text, "Created `x/y/z.txt`: 2 lines.");
            assert_eq!(fs::read_to_string(session.at("x/y/z.txt")).unwrap(), "a\nb\n");
            assert!(session.call("write", args).await.text.contains("would change nothing"));
            let outcome = session.call("write", json!({ "path": "x", "content": "" })).await;
            assert!(outcome.is_error && outcome.text.contains("is a directory"));
        })
        .await;
    }
}
