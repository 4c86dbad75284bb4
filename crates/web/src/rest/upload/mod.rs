//! `POST /api/upload`: stores files that later runs name. `multipart` reads a form, `store` chooses names and
//! directories.

mod multipart;
mod store;

use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody, ErrorCode},
    extract::QueryParams,
};
use axum::{
    Json,
    body::{Body, Bytes, to_bytes},
    extract::State,
    http::{HeaderMap, header},
};
use multipart::{FormPart, find_boundary, parse_parts};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{UploadDir, UploadedFile};
use utoipa::{IntoParams, ToSchema};

/// The size of a request: one message of the same size is accepted everywhere.
const UPLOAD_BYTES_MAX: usize = crate::http::limits::ACP_BODY_BYTES_MAX;
/// The number of files in a request.
const FILES_MAX: usize = 16;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadQuery {
    /// Store the files in this project, where its agents find them.
    #[param(pattern = "^[A-Za-z0-9._-]{1,128}$")]
    project_id: Option<String>,
    /// The name of the file, if the body is the file itself.
    name: Option<String>,
}

/// A form with files. The names of the file fields do not matter.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes the form in the API document")]
pub(crate) struct UploadForm {
    /// Like the query parameter.
    #[schema(rename = "projectId")]
    project_id: Option<String>,
    #[schema(value_type = Vec<String>, format = Binary)]
    files: Vec<Vec<u8>>,
}

/// The stored files, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadedFiles {
    files: Vec<UploadedFile>,
}

/// Store files for later runs
///
/// The body is a form (`multipart/form-data`) with up to 16 files, or one file as it is. `path` of the response is for
/// `imagePaths` or `attachments` of a run; if the file is in a project, for runs of that project.
#[utoipa::path(
    post, path = "/api/upload", tag = "runs", params(UploadQuery),
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "the stored files", body = UploadedFiles),
        (status = 400, description = "the form, the project or the query is invalid", body = ErrorBody),
        (status = 413, description = "the body is larger than 16 MiB", body = ErrorBody),
    ),
)]
pub(crate) async fn upload_files(
    State(state): State<Arc<RestState>>,
    QueryParams(query): QueryParams<UploadQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<UploadedFiles>, ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let boundary = content_type.and_then(find_boundary);
    let body = to_bytes(body, UPLOAD_BYTES_MAX).await.map_err(|_| {
        let why =
            format!("the upload is incomplete or exceeds the limit of {UPLOAD_BYTES_MAX} bytes");
        ApiError::new(ErrorCode::PayloadTooLarge, why)
    })?;
    let dirs = state.dirs.clone();
    // Files are written on a blocking thread.
    let stored = tokio::task::spawn_blocking(move || {
        let upload = UploadRequest::parse(query, boundary.as_deref(), body)?;
        let dir = UploadDir::create(&dirs, upload.project.as_deref())?;
        let files = upload.files.iter().map(|(name, content)| dir.store(name, content));
        files.collect::<Result<Vec<_>, _>>()
    });
    let files = stored.await.expect("storing files does not panic")?;
    Ok(Json(UploadedFiles { files }))
}

/// The files of a request, with their names.
#[derive(Debug)]
struct UploadRequest {
    project: Option<String>,
    files: Vec<(String, Bytes)>,
}

impl UploadRequest {
    fn parse(
        query: UploadQuery,
        boundary: Option<&str>,
        body: Bytes,
    ) -> Result<UploadRequest, ApiError> {
        let UploadQuery { project_id: mut project, name } = query;
        let Some(boundary) = boundary else {
            let Some(name) = name.filter(|it| !it.is_empty() && !body.is_empty()) else {
                let why =
                    "send a form (`multipart/form-data`), or a file whose name is in `?name=`";
                return Err(ApiError::bad_request(why));
            };
            return Ok(UploadRequest { project, files: vec![(name, body)] });
        };
        let mut files = Vec::new();
        for FormPart { field, file_name, data } in parse_parts(&body, boundary)? {
            match file_name {
                Some(name) => files.push((name, body.slice(data))),
                None if field == "projectId" => {
                    let text = String::from_utf8_lossy(&body[data]).trim().to_owned();
                    project = project.or(Some(text).filter(|it| !it.is_empty()));
                }
                None => {}
            }
        }
        if files.is_empty() || FILES_MAX < files.len() {
            let why =
                format!("a form has 1 to {FILES_MAX} files, and this one has {}", files.len());
            return Err(ApiError::bad_request(why));
        }
        Ok(UploadRequest { project, files })
    }
}
