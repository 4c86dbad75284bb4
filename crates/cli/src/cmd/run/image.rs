//! Image files as content blocks.

use crate::report::CommandError;
use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// The limit for all images of a prompt: a message may have 16 MiB, and base64 turns three bytes into four.
const BYTES_MAX: usize = 11 << 20;

/// Reads each file into an image block.
pub(super) fn read_image_blocks(files: &[impl AsRef<Path>]) -> Result<Vec<Value>, CommandError> {
    let mut bytes_left = BYTES_MAX;
    let mut blocks = Vec::new();
    for file in files {
        let shown = file.as_ref().display();
        let bytes = fs::read(file).map_err(|error| {
            CommandError::usage(format!("cannot read image `{shown}`: {error}"), "check `--image`")
        })?;
        let Some(mime) = detect_mime_type(&bytes) else {
            let message = format!("`{shown}` is not a supported image");
            return Err(CommandError::usage(message, "use a PNG, JPEG, GIF or WebP file"));
        };
        let Some(rest) = bytes_left.checked_sub(bytes.len()) else {
            let message =
                format!("with `{shown}` the images exceed the limit of {} MiB", BYTES_MAX >> 20);
            return Err(CommandError::usage(
                message,
                "use smaller images, or name the files in the prompt",
            ));
        };
        bytes_left = rest;
        blocks.push(json!({ "type": "image", "mimeType": mime, "data": BASE64.encode(&bytes) }));
    }
    Ok(blocks)
}

/// Detects the type by the first bytes; file names can be wrong.
fn detect_mime_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_type_is_detected_by_its_first_bytes() {
        assert_eq!(detect_mime_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(detect_mime_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(detect_mime_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(detect_mime_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(detect_mime_type(b"RIFF\0\0\0\0WAVE"), None);
        assert_eq!(detect_mime_type(b""), None);
    }
}
