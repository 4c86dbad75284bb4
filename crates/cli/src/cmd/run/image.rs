//! Pictures for the agent: files as content blocks.

use crate::report::Failure;
use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// All of them travel in one message, which may have 16 MiB; base64 makes four bytes of three.
const BYTES_MAX: usize = 11 << 20;

/// Each file as an image block.
pub(super) fn blocks(files: &[impl AsRef<Path>]) -> Result<Vec<Value>, Failure> {
    let mut left = BYTES_MAX;
    let mut blocks = Vec::new();
    for file in files {
        let shown = file.as_ref().display();
        let bytes = fs::read(file).map_err(|error| {
            Failure::usage(format!("cannot read image `{shown}`: {error}"), "check `--image`")
        })?;
        let Some(mime) = kind(&bytes) else {
            let message = format!("`{shown}` is no image that agents know");
            return Err(Failure::usage(message, "give a PNG, JPEG, GIF or WebP file"));
        };
        let Some(rest) = left.checked_sub(bytes.len()) else {
            let message = format!("with `{shown}` the images have more than {BYTES_MAX} bytes");
            return Err(Failure::usage(message, "give smaller ones, or name them in the prompt"));
        };
        left = rest;
        blocks.push(json!({ "type": "image", "mimeType": mime, "data": BASE64.encode(&bytes) }));
    }
    Ok(blocks)
}

/// By how it begins: names lie.
fn kind(bytes: &[u8]) -> Option<&'static str> {
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
    fn an_image_is_known_by_how_it_begins() {
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(kind(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(kind(b"GIF89a"), Some("image/gif"));
        assert_eq!(kind(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(kind(b"RIFF\0\0\0\0WAVE"), None);
        assert_eq!(kind(b""), None);
    }
}
