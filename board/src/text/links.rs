//! Links in messages: which addresses may be one, how one begins, and addresses of the web that stand in a text as they
//! are.

use std::ops::Range;

/// How many bytes all links of a text may have, each with what stands around its address.
const LINKS: usize = 20_000;
const AROUND: usize = "<a href=\"\" rel=\"nofollow ugc noopener\"></a>".len();

/// How many bytes the links so far have.
#[derive(Default)]
pub(crate) struct Links(usize);

impl Links {
    /// Whether there is room for one more.
    pub(crate) fn take(&mut self, url: &str) -> bool {
        self.0 += url.len() + AROUND;
        self.0 <= LINKS
    }

    /// The address of the web around a colon, if there is one and room for it.
    pub(crate) fn bare(&mut self, text: &str, colon: usize) -> Option<Range<usize>> {
        // Nothing is looked for then: what is found and not taken would be looked through again from the next colon on.
        if self.0 > LINKS {
            return None;
        }
        bare_address(text, colon).filter(|address| self.take(&text[address.clone()]))
    }
}

/// Where the address of the web is that has this colon behind its scheme. What ends a sentence or closes a bracket
/// around it is not a part of it.
fn bare_address(text: &str, colon: usize) -> Option<Range<usize>> {
    let rest = text[colon..].strip_prefix("://")?;
    let scheme = ["https", "http"].into_iter().find(|scheme| {
        let start = colon.checked_sub(scheme.len());
        let found = start.and_then(|start| text.get(start..colon));
        found.is_some_and(|found| found.eq_ignore_ascii_case(scheme))
    })?;
    let start = colon - scheme.len();
    // Otherwise it is a part of something longer, such as `git+https://` or another address.
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "+-.:/@%&=?#".contains(c);
    if text[..start].chars().next_back().is_some_and(is_inside) {
        return None;
    }
    if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '[') {
        return None;
    }
    let is_end =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '`');
    let mut address = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    let count = |c| address.matches(c).count();
    // How many brackets are closed that were not opened; counted once, because there may be thousands.
    let mut round = count(')').saturating_sub(count('('));
    let mut square = count(']').saturating_sub(count('['));
    while let Some(last) = address.chars().next_back() {
        match last {
            ')' if round > 0 => round -= 1,
            ']' if square > 0 => square -= 1,
            _ if "?!.,:;*_~'’”»…。、，！？：；）」』】|".contains(last) => {}
            _ => break,
        }
        address = &address[..address.len() - last.len_utf8()];
    }
    Some(start..colon + "://".len() + address.len())
}

/// The start of a link. One that leads away says that nobody vouches for it.
pub(crate) fn opened(url: &str) -> String {
    let mut link = String::from("<a href=\"");
    for c in url.chars() {
        match c {
            '&' => link.push_str("&amp;"),
            '"' => link.push_str("%22"),
            '\'' => link.push_str("%27"),
            '<' => link.push_str("%3C"),
            '>' => link.push_str("%3E"),
            c => link.push(c),
        }
    }
    let is_ours = url.starts_with(['/', '#']);
    link.push_str(if is_ours {
        "\">"
    } else {
        "\" rel=\"nofollow ugc noopener\">"
    });
    link
}

/// Whether a link leads to the web, to mail, or to another place of the board.
pub(crate) fn is_safe(url: &str) -> bool {
    let scheme = url
        .split_once(':')
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https" | "mailto") => true,
        _ => url.starts_with('#') || is_path(url),
    }
}

/// Whether it leads to a place of this server. A browser reads `\\` as `/`, and skips tabs and ends of lines, so with
/// one of them it may lead to another.
fn is_path(url: &str) -> bool {
    let has_mark = url.contains(|c: char| c == '\\' || c.is_control());
    url.starts_with('/') && !url.starts_with("//") && !has_mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_room_no_address_is_looked_for() {
        let mut links = Links::default();
        assert_eq!(links.bare("a http://a. b", 6), Some(2..10));
        assert!(!links.take(&"a".repeat(LINKS)));
        let used = links.0;
        assert_eq!(links.bare("a http://a. b", 6), None);
        assert_eq!(links.0, used);
    }
}
