//! Reads the images that a client names.

use super::paths::{WorkDirs, check_count, resolve_file};
use crate::rest::{
    error::{ApiError, ErrorCode},
    prompt::PromptImage,
};
use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use std::{fs::File, io::Read as _, path::Path};

/// The size limit for all images of a prompt: base64 adds a third, and they must fit into one message.
const IMAGES_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Reads images in the uploads directory or below the working directory.
pub(super) fn read_images(
    cwd: &Path,
    dirs: &WorkDirs,
    paths: &[String],
) -> Result<Vec<PromptImage>, ApiError> {
    check_count(paths)?;
    let mut remaining = IMAGES_BYTES_MAX;
    let read = |path: &String| {
        let (file, _) = resolve_file(cwd, &[&dirs.uploads, cwd], path)?;
        let data = match mime_type(&file) {
            Some(mime) => Some((mime, BASE64.encode(&read_bytes(&file, path, &mut remaining)?))),
            None => None,
        };
        Ok(PromptImage { path: file.display().to_string(), data })
    };
    paths.iter().map(read).collect()
}

fn read_bytes(file: &Path, name: &str, remaining: &mut u64) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    let opened = File::open(file).and_then(|it| it.take(*remaining + 1).read_to_end(&mut bytes));
    let name = name.escape_debug();
    opened.map_err(|error| ApiError::invalid(format!("failed to read `{name}`: {error}")))?;
    *remaining = remaining.checked_sub(bytes.len() as u64).ok_or_else(|| {
        let why = format!("the images exceed the limit of {IMAGES_BYTES_MAX} bytes");
        ApiError::new(ErrorCode::PayloadTooLarge, why)
    })?;
    Ok(bytes)
}

/// Why images are not sent to the agent, which gets their paths instead.
pub(super) fn describe_references(
    images: &[PromptImage],
    accepts_images: Option<bool>,
) -> Vec<String> {
    let describe = |it: &PromptImage| match (&it.data, accepts_images) {
        (None, _) => Some(format!(
            "`{}` is not a PNG, JPEG, GIF or WebP image: the agent gets its path",
            it.path
        )),
        (Some(_), Some(false)) => {
            Some(format!("the agent does not accept images: it gets the path of `{}`", it.path))
        }
        (Some(_), Some(true) | None) => None,
    };
    images.iter().filter_map(describe).collect()
}

/// The MIME type of a supported image.
fn mime_type(file: &Path) -> Option<&'static str> {
    match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn image_that_is_not_sent_has_a_warning() {
        let image = |data: Option<&'static str>| PromptImage {
            path: "/up/a".into(),
            data: data.map(|it| (it, String::new())),
        };
        let warnings = |data, accepts| describe_references(&[image(data)], accepts);
        assert!(warnings(None, Some(true))[0].contains("is not a PNG"));
        assert!(warnings(Some("image/png"), Some(false))[0].contains("does not accept images"));
        assert!(warnings(Some("image/png"), Some(true)).is_empty());
        assert!(warnings(Some("image/png"), None).is_empty());
    }

    #[test]
    fn image_must_be_in_an_allowed_directory_and_within_the_size_limit() {
        let dir = tempfile::tempdir().unwrap();
        let (cwd, uploads) = (dir.path().join("work"), dir.path().join("uploads"));
        fs::create_dir_all(&cwd).unwrap();
        fs::create_dir_all(&uploads).unwrap();
        let dirs = WorkDirs { uploads: uploads.clone(), ..WorkDirs::default() };
        fs::write(uploads.join("a.PNG"), "abc").unwrap();
        fs::write(cwd.join("b.svg"), "<svg/>").unwrap();
        fs::write(dir.path().join("c.png"), "").unwrap();
        let read = |path: &Path| read_images(&cwd, &dirs, &[path.display().to_string()]);
        let images = read(&uploads.join("a.PNG")).unwrap();
        assert_eq!(images[0].data, Some(("image/png", "YWJj".into())));
        assert_eq!(read(Path::new("b.svg")).unwrap()[0].data, None);
        assert!(read(&dir.path().join("c.png")).unwrap_err().message.contains("outside of"));
        let big = fs::File::create(cwd.join("big.png")).unwrap();
        big.set_len(IMAGES_BYTES_MAX + 1).unwrap();
        assert_eq!(read(Path::new("big.png")).unwrap_err().code, ErrorCode::PayloadTooLarge);
    }
}
