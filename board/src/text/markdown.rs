//! Markdown as HTML that is safe to show: no raw HTML, no pictures, links to the web and to mail only. An address of
//! the web that stands in a text as it is becomes a link, too.
//!
//! - Headings begin at the fourth level, because those above belong to the page.
//! - Text that is nested deeper than [`DEPTH`] loses its marks, and only so many bytes of links are links. So a short
//!   text makes no long page.
//! - A text without marks, which most are, is not parsed at all.

use std::collections::VecDeque;

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
    TextMergeStream, html,
};

use super::links::{Links, is_safe, opened};

/// How deep lists and quotations are nested.
const DEPTH: usize = 8;

/// The HTML of a text.
pub(crate) fn to_html(text: &str) -> String {
    match is_plain(text) {
        true => paragraphs(text),
        false => parsed(text),
    }
}

fn parsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3 / 2);
    let parser = Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH);
    html::push_html(
        &mut out,
        Safe {
            parser: TextMergeStream::new(parser),
            open: Vec::new(),
            depth: 0,
            unlinked: 0,
            links: Links::default(),
            pending: VecDeque::new(),
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
    let mut links = Links::default();
    for line in text.split('\n') {
        let line = line.trim_start_matches(' ');
        match (line.is_empty(), is_open) {
            (true, true) => out.push_str("</p>\n"),
            (true, false) => {}
            (false, true) => out.push('\n'),
            (false, false) => out.push_str("<p>"),
        }
        is_open = !line.is_empty();
        put_line(&mut out, line, &mut links);
    }
    if is_open {
        out.push_str("</p>\n");
    }
    out
}

/// A line without marks.
fn put_line(out: &mut String, line: &str, links: &mut Links) {
    // Up to where it was written, and up to where it was looked at.
    let (mut done, mut seen) = (0, 0);
    let is_special = |byte: u8| matches!(byte, b'>' | b'&' | b':');
    while let Some(at) = line.as_bytes()[seen..]
        .iter()
        .position(|it| is_special(*it))
    {
        let at = seen + at;
        seen = at + 1;
        let escape = match line.as_bytes()[at] {
            b'>' => "&gt;",
            b'&' => "&amp;",
            _ => {
                if let Some(address) = links.bare(line, at) {
                    out.push_str(&line[done..address.start]);
                    let address_text = &line[address.clone()];
                    out.push_str(&opened(address_text));
                    out.push_str(&address_text.replace('&', "&amp;"));
                    out.push_str("</a>");
                    (done, seen) = (address.end, address.end);
                }
                continue;
            }
        };
        out.push_str(&line[done..at]);
        out.push_str(escape);
        done = seen;
    }
    out.push_str(&line[done..]);
}

/// The events of a text. Only safe ones pass.
struct Safe<'a> {
    parser: TextMergeStream<'a, Parser<'a>>,
    /// Whether the start of each open tag passed.
    open: Vec<bool>,
    depth: usize,
    /// How many links, pictures and blocks of code are open: no address becomes a link in them.
    unlinked: usize,
    links: Links,
    /// What a text with addresses was taken apart into.
    pending: VecDeque<Event<'a>>,
}

impl<'a> Iterator for Safe<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let event = match self.parser.next()? {
                Event::Start(tag) => {
                    self.unlinked += usize::from(is_unlinked(&tag.to_end()));
                    let event = self.start(tag);
                    self.open.push(event.is_some());
                    event
                }
                Event::End(end) => {
                    self.unlinked -= usize::from(is_unlinked(&end));
                    let passed = self.open.pop() == Some(true);
                    self.depth -= usize::from(passed && is_nesting_end(end));
                    passed.then(|| ended(end))
                }
                Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
                Event::Text(text) if self.unlinked == 0 && text.contains("://") => {
                    self.link(&text);
                    None
                }
                event => Some(event),
            };
            if event.is_some() {
                return event;
            }
        }
    }
}

impl<'a> Safe<'a> {
    /// Takes a text apart into addresses of the web, as links, and what stands between them.
    fn link(&mut self, text: &str) {
        let told = |text: &str| Event::Text(text.to_owned().into());
        let mut done = 0;
        for (colon, _) in text.match_indices("://") {
            // What is inside an address is looked at once.
            if colon < done {
                continue;
            }
            if let Some(address) = self.links.bare(text, colon) {
                let url = &text[address.clone()];
                self.pending.extend([
                    told(&text[done..address.start]),
                    Event::InlineHtml(opened(url).into()),
                    told(url),
                    Event::InlineHtml("</a>".into()),
                ]);
                done = address.end;
            }
        }
        self.pending.push_back(told(&text[done..]));
    }

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
                let is_allowed = self.links.take(&url) && is_safe(&url);
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

fn is_unlinked(tag: &TagEnd) -> bool {
    matches!(tag, TagEnd::Link | TagEnd::Image | TagEnd::CodeBlock)
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
mod tests;
