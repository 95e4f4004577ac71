//! Markdown as HTML that is safe to show: no raw HTML, no pictures, links to the web and to mail only.
//!
//! - Headings begin at the fourth level, because those above belong to the page.
//! - Text that is nested deeper than [`DEPTH`] loses its marks, and addresses beyond [`ADDRESSES`] bytes lose their
//!   links. So a short text makes no long page.
//! - A text without marks, which most are, is not parsed at all.

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html,
};

/// How deep lists and quotations are nested.
const DEPTH: usize = 8;
/// How many bytes all addresses of a text may have.
const ADDRESSES: usize = 20_000;

/// The HTML of a text.
pub(crate) fn to_html(text: &str) -> String {
    if is_plain(text) {
        return paragraphs(text);
    }
    let mut out = String::with_capacity(text.len() * 3 / 2);
    let parser = Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH);
    html::push_html(
        &mut out,
        Safe {
            parser,
            open: Vec::new(),
            depth: 0,
            addresses: 0,
        },
    );
    out
}

/// Whether the text has no character that Markdown may take for a mark.
fn is_plain(text: &str) -> bool {
    // Control characters: some are space to Markdown.
    let is_mark = |byte: u8| {
        matches!(byte, b'\\' | b'`' | b'*' | b'_' | b'[' | b']' | b'<' | b'~')
            || byte < b' ' && byte != b'\n'
    };
    let begins_an_entity = |rest: &str| {
        let next = rest.as_bytes().first();
        next.is_some_and(|next| *next == b'#' || next.is_ascii_alphanumeric())
    };
    let begins_a_block = |line: &str| {
        let first = line.trim_start().bytes().next();
        let is_mark = matches!(
            first,
            Some(b'#' | b'>' | b'+' | b'-' | b'=' | b'|' | b'0'..=b'9')
        );
        is_mark || line.starts_with("    ") || line.ends_with(' ')
    };
    !text.bytes().any(is_mark)
        && !text.split('&').skip(1).any(begins_an_entity)
        && !text.split('\n').any(begins_a_block)
}

fn paragraphs(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut is_open = false;
    for line in text.split('\n') {
        let line = line.trim_start_matches(' ');
        match (line.is_empty(), is_open) {
            (true, true) => out.push_str("</p>\n"),
            (true, false) => {}
            (false, true) => out.push('\n'),
            (false, false) => out.push_str("<p>"),
        }
        is_open = !line.is_empty();
        let mut rest = line;
        while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'>' | b'&')) {
            out.push_str(&rest[..at]);
            out.push_str(match rest.as_bytes()[at] {
                b'>' => "&gt;",
                _ => "&amp;",
            });
            rest = &rest[at + 1..];
        }
        out.push_str(rest);
    }
    if is_open {
        out.push_str("</p>\n");
    }
    out
}

/// The events of a text. Only safe ones pass.
struct Safe<'a> {
    parser: Parser<'a>,
    /// Whether the start of each open tag passed.
    open: Vec<bool>,
    depth: usize,
    addresses: usize,
}

impl<'a> Iterator for Safe<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            let event = match self.parser.next()? {
                Event::Start(tag) => {
                    let event = self.start(tag);
                    self.open.push(event.is_some());
                    event
                }
                Event::End(end) => {
                    let passed = self.open.pop() == Some(true);
                    self.depth -= usize::from(passed && is_nesting_end(end));
                    passed.then(|| ended(end))
                }
                Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
                event => Some(event),
            };
            if event.is_some() {
                return event;
            }
        }
    }
}

impl<'a> Safe<'a> {
    fn start(&mut self, tag: Tag<'a>) -> Option<Event<'a>> {
        match tag {
            Tag::Heading { level, .. } => {
                let (id, classes, attrs) = (None, Vec::new(), Vec::new());
                let level = lowered(level);
                Some(Event::Start(Tag::Heading {
                    level,
                    id,
                    classes,
                    attrs,
                }))
            }
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => {
                let url = match link_type {
                    LinkType::Email => CowStr::from(format!("mailto:{dest_url}")),
                    _ => dest_url,
                };
                self.addresses += url.len();
                let is_allowed = is_safe(&url) && self.addresses <= ADDRESSES;
                is_allowed.then(|| Event::InlineHtml(opened(&url).into()))
            }
            Tag::Image { .. } | Tag::HtmlBlock => None,
            // A language would become a class name that anybody can choose.
            Tag::CodeBlock(_) => Some(Event::Start(Tag::CodeBlock(CodeBlockKind::Indented))),
            tag if is_nesting(&tag) => {
                let has_room = self.depth < DEPTH;
                self.depth += usize::from(has_room);
                has_room.then_some(Event::Start(tag))
            }
            tag => Some(Event::Start(tag)),
        }
    }
}

/// The start of a link. One that leads away says that nobody vouches for it.
fn opened(url: &str) -> String {
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

fn is_nesting(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::BlockQuote(_)
            | Tag::List(_)
            | Tag::Item
            | Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
    )
}

fn is_nesting_end(end: TagEnd) -> bool {
    matches!(
        end,
        TagEnd::BlockQuote(_)
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
    )
}

fn ended<'a>(end: TagEnd) -> Event<'a> {
    match end {
        TagEnd::Heading(level) => Event::End(TagEnd::Heading(lowered(level))),
        TagEnd::Link => Event::InlineHtml("</a>".into()),
        end => Event::End(end),
    }
}

fn lowered(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H4,
        HeadingLevel::H2 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// Whether a link leads to the web, to mail, or to another place of the board.
fn is_safe(url: &str) -> bool {
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

/// The beginning of a text, of at most `most` bytes, at the end of a line or a word; `None` if the text is not longer.
pub(crate) fn beginning(text: &str, most: usize) -> Option<&str> {
    if text.len() <= most {
        return None;
    }
    let end = (0..=most)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let cut = &text[..end];
    let at = cut
        .rfind("\n\n")
        .filter(|at| *at > most / 2)
        .or_else(|| cut.rfind(char::is_whitespace));
    Some(cut[..at.filter(|at| *at > 0).unwrap_or(end)].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        let mut out = String::new();
        html::push_html(&mut out, Parser::new(text));
        out
    }

    #[test]
    fn a_plain_text_is_as_if_it_were_parsed() {
        for text in [
            "",
            "a",
            "one\ntwo\n\nthree",
            "\n\na  b\n\n\n\nc\n",
            " a \"b\" > c; d-e = f",
            "ä, b.\n  c",
            "tea & cake; a&\nb && c&ä &",
        ] {
            assert!(is_plain(text), "{text}");
            assert_eq!(to_html(text), parsed(text), "{text}");
        }
        for text in [
            "# a",
            "- a",
            "1. a",
            "a  \nb",
            "    a",
            "*a*",
            "a\n===",
            "<b>",
            "&amp;",
            "a &#38; b",
            "\ta",
            "\u{b}",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }

    #[test]
    fn nothing_of_anybodys_choice_gets_through() {
        for (text, html) in [
            (
                "<script>alert(1)</script>",
                "&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            (
                "a <b onclick=x>c</b>",
                "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n",
            ),
            ("[a](javascript:alert)", "<p>a</p>\n"),
            ("[a](JAVASCRIPT:alert)", "<p>a</p>\n"),
            ("[a](data:text/html,x)", "<p>a</p>\n"),
            ("[a](//example.com)", "<p>a</p>\n"),
            ("[a](/\\example.com)", "<p>a</p>\n"),
            ("[a](/&Tab;/example.com)", "<p>a</p>\n"),
            ("[a](/b/tea)", "<p><a href=\"/b/tea\">a</a></p>\n"),
            ("<javascript:alert>", "<p>javascript:alert</p>\n"),
            ("![picture](https://example.com/a.png)", "<p>picture</p>\n"),
            (
                "[a](https://example.com/\"onclick=x)",
                "<p><a href=\"https://example.com/%22onclick=x\" rel=\"nofollow ugc noopener\">a</a></p>\n",
            ),
            ("# Title", "<h4>Title</h4>\n"),
            (
                "```x\" onclick=\"y\ncode\n```",
                "<pre><code>code\n</code></pre>\n",
            ),
            ("~~a~~ **b**", "<p><del>a</del> <strong>b</strong></p>\n"),
            (
                "<ada@example.com>",
                "<p><a href=\"mailto:ada@example.com\" rel=\"nofollow ugc noopener\">ada@example.com</a></p>\n",
            ),
        ] {
            assert_eq!(to_html(text), html, "{text}");
        }
    }

    #[test]
    fn a_short_text_makes_no_long_page() {
        let references = format!(
            "[a]: https://example.com/{}\n\n{}",
            "x".repeat(2_000),
            "[a] ".repeat(2_000)
        );
        for text in [
            ">".repeat(10_000),
            "* ".repeat(5_000),
            "*_".repeat(5_000),
            references,
        ] {
            assert!(to_html(&text).len() < 60_000, "{}", to_html(&text).len());
        }
    }

    #[test]
    fn a_long_text_is_cut_between_words() {
        assert_eq!(beginning("short", 5), None);
        assert_eq!(beginning("one two three", 9), Some("one two"));
        assert_eq!(beginning("ääääää", 5), Some("ää"));
        assert_eq!(beginning("one two\n\nthree four", 14), Some("one two"));
    }
}
