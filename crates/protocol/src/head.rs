//! The beginning of a message that is too long to be kept: enough of it is read to answer it.

/// Bytes of the beginning that are kept. Routing fields are before `params` in what real programs write.
pub(crate) const HEAD_BYTES_MAX: usize = 4 << 10;

/// What the beginning of a message says about it. Members that come later are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameHead {
    /// As JSON text.
    pub id: Option<Box<str>>,
    pub method: Option<Box<str>>,
    /// `sessionId` of its params.
    pub session: Option<Box<str>>,
}

impl FrameHead {
    /// Reads as far as the text goes.
    pub fn scan(head: &[u8]) -> FrameHead {
        let mut found = FrameHead::default();
        let mut text = JsonPrefix { rest: head };
        if text.take(b'{').is_some() {
            found.read_members(&mut text);
        }
        found
    }

    /// Whether it asks for something.
    pub fn is_request(&self) -> bool {
        self.id.is_some() && self.method.is_some()
    }

    /// Whether it answers a request.
    pub fn is_response(&self) -> bool {
        self.id.is_some() && self.method.is_none()
    }

    /// `None` where the text ends.
    fn read_members(&mut self, text: &mut JsonPrefix<'_>) -> Option<()> {
        loop {
            let key: String = serde_json::from_slice(text.string()?).ok()?;
            text.take(b':')?;
            match key.as_str() {
                "id" => self.id = Some(text.scalar()?.into()),
                "method" => self.method = Some(text.decoded()?.into()),
                "params" if text.take(b'{').is_some() => return self.read_params(text),
                _ => text.skip_value()?,
            }
            text.take(b',')?;
        }
    }

    fn read_params(&mut self, text: &mut JsonPrefix<'_>) -> Option<()> {
        loop {
            let key: String = serde_json::from_slice(text.string()?).ok()?;
            text.take(b':')?;
            if key == "sessionId" {
                self.session = Some(text.decoded()?.into());
                return Some(());
            }
            text.skip_value()?;
            text.take(b',')?;
        }
    }
}

/// JSON text that may end anywhere.
struct JsonPrefix<'a> {
    rest: &'a [u8],
}

impl<'a> JsonPrefix<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// This byte, if it comes next.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    /// The next string, with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        self.rest.first().filter(|it| **it == b'"')?;
        let mut escaped = false;
        let end = self.rest[1..].iter().position(|&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        let (string, rest) = self.rest.split_at(end + 2);
        self.rest = rest;
        Some(string)
    }

    fn decoded(&mut self) -> Option<String> {
        serde_json::from_slice(self.string()?).ok()
    }

    /// The next number or string as JSON text, if something follows it.
    fn scalar(&mut self) -> Option<&'a str> {
        self.skip_space();
        if self.rest.first() == Some(&b'"') {
            return std::str::from_utf8(self.string()?).ok();
        }
        let end = self.rest.iter().position(|it| b",} \t\r\n".contains(it))?;
        let (scalar, rest) = self.rest.split_at(end);
        serde_json::from_slice::<serde_json::Number>(scalar).ok()?;
        self.rest = rest;
        std::str::from_utf8(scalar).ok()
    }

    fn skip_value(&mut self) -> Option<()> {
        self.skip_space();
        let mut depth = 0_usize;
        loop {
            match self.rest.first()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.rest = &self.rest[1..];
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.rest = &self.rest[1..];
                }
                b',' if depth == 0 => return Some(()),
                _ => {
                    self.rest = &self.rest[1..];
                    continue;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &str) -> [Option<String>; 3] {
        let head = FrameHead::scan(text.as_bytes());
        [head.id, head.method, head.session].map(|it| it.map(String::from))
    }

    fn some(parts: [&str; 3]) -> [Option<String>; 3] {
        parts.map(|it| Some(it.to_owned()).filter(|it| !it.is_empty()))
    }

    #[test]
    fn routing_fields_are_found_before_the_text_ends() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"te"#,
                ["7", "session/prompt", "s"],
            ),
            (r#"{"id": "a\"b" , "result": {"x"#, [r#""a\"b""#, "", ""]),
            (r#"{"method":"x","params":{"a":{"b":["}",1]},"sessionId":"s","#, ["", "x", "s"]),
            (r#" {"\u0069d":1,"method":"m","params":"#, ["1", "m", ""]),
            (r#"{"params":{"text":"xxxx"#, ["", "", ""]),
            (r#"{"id":12"#, ["", "", ""]),
            (r#"{"id":{},"method":"m","#, ["", "", ""]),
            (r#"[{"id":1"#, ["", "", ""]),
            ("xxxx", ["", "", ""]),
            ("", ["", "", ""]),
        ] {
            assert_eq!(scan(text), some(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in r#"[{}\[\]":,\\a1 ]{0,40}|\PC{0,40}"#) {
            let head = FrameHead::scan(text.as_bytes());
            if let Some(id) = head.id {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&id).is_ok());
            }
        }
    }
}
