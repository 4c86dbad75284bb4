//! Splits a `multipart/form-data` body (RFC 7578) that was read completely.

use crate::rest::error::ApiError;
use std::ops::Range;

/// The number of parts in a body. A form has a few fields and files.
const PARTS_MAX: usize = 64;
/// The headers of one part.
const HEADER_BYTES_MAX: usize = 8 * 1024;

/// One part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormPart {
    pub(super) field: String,
    /// Set if the part is a file.
    pub(super) file_name: Option<String>,
    /// Its place in the body.
    pub(super) data: Range<usize>,
}

/// The boundary in a `Content-Type` header; `None` if the body is not a form.
pub(super) fn find_boundary(content_type: &str) -> Option<String> {
    let (mime, params) = content_type.split_once(';')?;
    let is_form = mime.trim().eq_ignore_ascii_case("multipart/form-data");
    is_form.then(|| find_param(params, "boundary")).flatten().filter(|it| !it.is_empty())
}

/// The parts of a body with this boundary.
pub(super) fn parse_parts(body: &[u8], boundary: &str) -> Result<Vec<FormPart>, ApiError> {
    let invalid = |why: &str| ApiError::bad_request(format!("invalid multipart body: {why}"));
    let first = format!("--{boundary}");
    let delimiter = format!("\r\n{first}");
    let mut at = match find(body, first.as_bytes(), 0) {
        Some(at) => at + first.len(),
        None => return Err(invalid("the boundary of `Content-Type` does not occur")),
    };
    let mut parts = Vec::new();
    while !body[at..].starts_with(b"--") {
        if PARTS_MAX <= parts.len() {
            return Err(invalid(&format!("it has more than {PARTS_MAX} parts")));
        }
        let headers = find(body, b"\r\n", at).ok_or_else(|| invalid("a part is cut off"))? + 2;
        let end = find(body, b"\r\n\r\n", headers.saturating_sub(2))
            .filter(|it| it - headers.min(*it) <= HEADER_BYTES_MAX)
            .ok_or_else(|| invalid("the headers of a part do not end"))?;
        let data = end + 4;
        let next = find(body, delimiter.as_bytes(), end + 2)
            .ok_or_else(|| invalid("a part does not end with the boundary"))?;
        let headers = String::from_utf8_lossy(&body[headers.min(end)..end]);
        let (field, file_name) = parse_disposition(&headers)
            .ok_or_else(|| invalid("a part has no `Content-Disposition` with a name"))?;
        parts.push(FormPart { field, file_name, data: data.min(next)..next });
        at = next + delimiter.len();
    }
    Ok(parts)
}

/// The field and the file name in the headers of a part.
fn parse_disposition(headers: &str) -> Option<(String, Option<String>)> {
    let mut lines = headers.split("\r\n").filter_map(|it| it.split_once(':'));
    let (_, value) = lines.find(|it| it.0.trim().eq_ignore_ascii_case("content-disposition"))?;
    let (kind, params) = value.split_once(';')?;
    let is_form = kind.trim().eq_ignore_ascii_case("form-data");
    let field = is_form.then(|| find_param(params, "name")).flatten()?;
    Some((field, find_param(params, "filename")))
}

/// The value of a parameter: a token, or a quoted string in which a backslash escapes a quote.
fn find_param(params: &str, wanted: &str) -> Option<String> {
    let mut rest = params;
    loop {
        let (name, value) = rest.split_once('=')?;
        let is_wanted = name.trim_matches([' ', ';', '\t']).eq_ignore_ascii_case(wanted);
        let (value, after) = if let Some(quoted) = value.trim_start().strip_prefix('"') {
            split_quoted(quoted)?
        } else {
            let (value, after) = value.split_once(';').unwrap_or((value, ""));
            (value.trim().to_owned(), after)
        };
        if is_wanted {
            return Some(value);
        }
        rest = after;
    }
}

/// The text up to the closing quote, and what follows. A backslash before another character is kept: browsers send
/// Windows paths unescaped.
fn split_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' if chars.peek().is_some_and(|it| it.1 == '"') => {
                chars.next();
                value.push('"');
            }
            char => value.push(char),
        }
    }
    None
}

fn find(body: &[u8], part: &[u8], from: usize) -> Option<usize> {
    let rest = body.get(from..)?;
    rest.windows(part.len()).position(|it| it == part).map(|it| from + it)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(body: &str) -> Result<Vec<(String, Option<String>, String)>, String> {
        let parts = parse_parts(body.as_bytes(), "XX").map_err(|it| it.message)?;
        let shown = |it: FormPart| (it.field, it.file_name, body[it.data].to_owned());
        Ok(parts.into_iter().map(shown).collect())
    }

    #[test]
    fn fields_and_files_are_split() {
        let body = "--XX\r\nContent-Disposition: form-data; name=\"projectId\"\r\n\r\np1\r\n\
            --XX\r\ncontent-disposition: form-data; name=images; filename=\"a \\\"b\\\".png\"\r\n\
            Content-Type: image/png\r\n\r\none\r\n--X\r\ntwo\r\n--XX--\r\n";
        let file =
            ("images".to_owned(), Some("a \"b\".png".to_owned()), "one\r\n--X\r\ntwo".into());
        assert_eq!(parts(body).unwrap(), [("projectId".into(), None, "p1".into()), file]);
        assert_eq!(parts("--XX--").unwrap(), []);
        let empty = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n--XX--";
        assert_eq!(parts(empty).unwrap(), [("a".into(), None, String::new())]);
    }

    #[test]
    fn invalid_bodies_are_rejected() {
        for (body, why) in [
            ("", "does not occur"),
            ("--XX", "cut off"),
            ("--XX\r\nContent-Disposition: form-data; name=a", "do not end"),
            ("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\nx", "does not end with"),
            ("--XX\r\nContent-Type: a\r\n\r\nx\r\n--XX--", "no `Content-Disposition`"),
        ] {
            let message = parts(body).unwrap_err();
            assert!(message.contains(why), "{body:?}: {message}");
        }
    }

    #[test]
    fn boundary_is_read_from_the_header() {
        let found = |it: &str| find_boundary(it);
        assert_eq!(found("multipart/form-data; boundary=XX").as_deref(), Some("XX"));
        assert_eq!(found("Multipart/Form-Data; a=b; boundary=\"X X\"").as_deref(), Some("X X"));
        assert_eq!(found("multipart/form-data"), None);
        assert_eq!(found("application/json; boundary=XX"), None);
    }
}
