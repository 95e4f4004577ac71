//! What people write on a board: Markdown becomes HTML with the few marks that are allowed, each of them closed; times,
//! names, addresses and hashes print as what they were read from.

#![no_main]
#![allow(dead_code, reason = "the files have more than is tried here")]

use libfuzzer_sys::fuzz_target;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};
use weald_board::Origin;
use weald_board::model::{BoardName, Hashed};

#[path = "../../board/src/text/markdown.rs"]
mod markdown;
#[path = "../../board/src/text/moment.rs"]
mod moment;

fuzz_target!(|text: &str| {
    let html = markdown::to_html(text);
    assert_closed(&html);
    if is_of_paragraphs(text) {
        assert_eq!(html, parsed(text), "a plain text is as if it were parsed");
    }
    for most in [0, 1, 7, text.len() / 2] {
        if let Some(begin) = markdown::beginning(text, most) {
            assert!(begin.len() <= most && text.starts_with(begin));
        }
    }
    if let Some(time) = moment::parse(text) {
        let printed = moment::machine(time);
        assert_eq!(moment::parse(&printed.to_string()), Some(time), "{printed}");
    }
    if let Some(time) = moment::parse_exact(text) {
        assert_eq!(
            moment::parse_exact(&moment::machine_exact(time)),
            Some(time)
        );
    }
    if let Ok(name) = text.parse::<BoardName>() {
        assert_eq!(name.to_string().parse(), Ok(name));
    }
    if let Ok(origin) = text.parse::<Origin>() {
        assert_eq!(origin.as_str().parse(), Ok(origin));
    }
    if let Ok(hash) = text.parse::<Hashed>() {
        assert_eq!(hash.as_str(), text);
    }
});

/// Whether Markdown sees nothing but paragraphs in it.
fn is_of_paragraphs(text: &str) -> bool {
    Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH).all(|event| {
        matches!(
            event,
            Event::Start(Tag::Paragraph)
                | Event::End(TagEnd::Paragraph)
                | Event::Text(_)
                | Event::SoftBreak
        )
    })
}

fn parsed(text: &str) -> String {
    let mut out = String::new();
    html::push_html(&mut out, Parser::new(text));
    out
}

/// Checks that each mark is allowed and closed in its turn.
fn assert_closed(html: &str) {
    let mut open = Vec::new();
    for part in html.split('<').skip(1) {
        let (mark, text) = part.split_once('>').expect("a mark ends");
        assert!(!text.contains('>'), "`>` outside of a mark in {html}");
        let (name, attributes) = mark.split_once(' ').unwrap_or((mark, ""));
        match name {
            "br" | "hr" => assert_eq!(attributes, "/"),
            "p" | "h4" | "h5" | "h6" | "ul" | "li" | "blockquote" | "em" | "strong" | "del"
            | "code" | "pre" => {
                assert_eq!(attributes, "", "{html}");
                open.push(name);
            }
            "ol" => {
                let number = attributes.strip_prefix("start=\"");
                let number = number.and_then(|it| it.strip_suffix('"'));
                assert!(
                    attributes.is_empty() || number.is_some_and(is_number),
                    "{html}"
                );
                open.push(name);
            }
            "a" => {
                assert_link(attributes);
                open.push(name);
            }
            _ => {
                let closed = name
                    .strip_prefix('/')
                    .expect("only these marks are allowed");
                assert_eq!(open.pop(), Some(closed), "{html}");
            }
        }
    }
    assert!(open.is_empty(), "{html}");
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks that a link has an address and nothing of anybody's choice beside it.
fn assert_link(attributes: &str) {
    let rest = attributes
        .strip_prefix("href=\"")
        .expect("a link has an address");
    let (address, rest) = rest.split_once('"').expect("an address ends");
    let is_ours = address.starts_with(['/', '#']);
    let expected = if is_ours {
        ""
    } else {
        " rel=\"nofollow ugc noopener\""
    };
    assert_eq!(rest, expected);
    let lower = address.to_ascii_lowercase();
    let leads_away = ["http:", "https:", "mailto:"]
        .iter()
        .any(|it| lower.starts_with(it));
    assert!(
        leads_away || is_ours && !address.starts_with("//"),
        "{address}"
    );
}
