//! The header `WWW-Authenticate`.

/// A server's demand for credentials: `Bearer realm="https://…",service="…"`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Challenge {
    /// In lower case.
    pub(super) scheme: String,
    values: Vec<(String, String)>,
}

impl Challenge {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, mut rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let mut values = Vec::new();
        while !rest.trim_start_matches([' ', ',']).is_empty() {
            let (name, after) = rest.trim_start_matches([' ', ',']).split_once('=')?;
            let (value, after) = match after.trim_start().strip_prefix('"') {
                Some(quoted) => unquote(quoted)?,
                None => {
                    let end = after.find(',').unwrap_or(after.len());
                    (after[..end].trim().to_owned(), &after[end..])
                }
            };
            values.push((name.trim().to_ascii_lowercase(), value));
            rest = after;
        }
        Some(Self { scheme: scheme.to_ascii_lowercase(), values })
    }

    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.values.iter().find(|(named, _)| named == name).map(|(_, value)| value.clone())
    }
}

/// Returns the text before the closing quote, and the rest.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_asks_for_is_read() {
        let text = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io", scope="repository:a/b:pull,push" ,error=x"#;
        let challenge = Challenge::parse(text).unwrap();
        assert_eq!(challenge.scheme, "bearer");
        assert_eq!(challenge.value("realm").as_deref(), Some("https://auth.docker.io/token"));
        assert_eq!(challenge.value("scope").as_deref(), Some("repository:a/b:pull,push"));
        assert_eq!(challenge.value("error").as_deref(), Some("x"));
        assert_eq!(Challenge::parse(r#"Basic realm="a \"b\"""#).unwrap().value("realm").as_deref(), Some(r#"a "b""#));
        assert_eq!(Challenge::parse("Negotiate").unwrap().scheme, "negotiate");
        for bad in ["Bearer realm", r#"Bearer realm="x"#, r#"Bearer realm="x\"#] {
            assert_eq!(Challenge::parse(bad), None, "{bad}");
        }
    }
}
