//! Pictures that a client names: files of a few kinds, read whole.

use super::paths::{Dirs, confined, few};
use crate::rest::{
    compose::Image,
    error::{ApiError, Code},
};
use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use std::{fs::File, io::Read as _, path::Path};

/// All pictures of a prompt: with a third more for base64 they still fit into one message.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Pictures in the uploads directory or below the working directory.
pub(super) fn images(cwd: &Path, dirs: &Dirs, paths: &[String]) -> Result<Vec<Image>, ApiError> {
    few(paths)?;
    let mut left = BYTES_MAX;
    let read = |path: &String| {
        let (file, _) = confined(cwd, &[&dirs.uploads, cwd], path)?;
        let seen = match kind(&file) {
            Some(mime) => Some((mime, BASE64.encode(&bytes(&file, path, &mut left)?))),
            None => None,
        };
        Ok(Image { path: file.display().to_string(), seen })
    };
    paths.iter().map(read).collect()
}

fn bytes(file: &Path, named: &str, left: &mut u64) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    let opened = File::open(file).and_then(|it| it.take(*left + 1).read_to_end(&mut bytes));
    let shown = named.escape_debug();
    opened.map_err(|error| ApiError::invalid(format!("cannot read `{shown}`: {error}")))?;
    *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
        let why = format!("the pictures have more than {BYTES_MAX} bytes together");
        ApiError::new(Code::PayloadTooLarge, why)
    })?;
    Ok(bytes)
}

/// What agents know how to look at.
fn kind(file: &Path) -> Option<&'static str> {
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
    fn a_picture_is_an_upload_or_of_the_working_directory_and_not_too_big() {
        let dir = tempfile::tempdir().unwrap();
        let (cwd, uploads) = (dir.path().join("work"), dir.path().join("uploads"));
        fs::create_dir_all(&cwd).unwrap();
        fs::create_dir_all(&uploads).unwrap();
        let dirs = Dirs { uploads: uploads.clone(), ..Dirs::default() };
        fs::write(uploads.join("a.PNG"), "abc").unwrap();
        fs::write(cwd.join("b.svg"), "<svg/>").unwrap();
        fs::write(dir.path().join("c.png"), "").unwrap();
        let named = |path: &Path| images(&cwd, &dirs, &[path.display().to_string()]);
        let seen = named(&uploads.join("a.PNG")).unwrap();
        assert_eq!(seen[0].seen, Some(("image/png", "YWJj".into())));
        assert_eq!(named(Path::new("b.svg")).unwrap()[0].seen, None);
        assert!(named(&dir.path().join("c.png")).unwrap_err().message.contains("outside of"));
        let big = fs::File::create(cwd.join("big.png")).unwrap();
        big.set_len(BYTES_MAX + 1).unwrap();
        assert_eq!(named(Path::new("big.png")).unwrap_err().code, Code::PayloadTooLarge);
    }
}
