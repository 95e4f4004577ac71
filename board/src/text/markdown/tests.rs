//! What Markdown becomes, and what it never becomes.

use super::*;

fn usual(text: &str) -> String {
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
        assert_eq!(to_html(text), usual(text), "{text}");
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

/// A link to the web, as it has to be.
fn linked(url: &str) -> String {
    let href = url.replace('&', "&amp;").replace('\'', "%27");
    let shown = url.replace('&', "&amp;");
    format!("<a href=\"{href}\" rel=\"nofollow ugc noopener\">{shown}</a>")
}

#[test]
fn an_address_of_the_web_is_a_link_without_what_stands_around_it() {
    for (before, url, after) in [
        ("", "https://example.com", ""),
        ("see ", "http://example.com/a?b=c&d#e", ", or not"),
        ("(", "https://example.com/a_(b)", ")."),
        ("お茶：", "HTTPS://example.com/お茶", "。"),
        ("it's at 'q ", "https://example.com/it's", "' "),
        ("**a** ", "https://example.com/a_b_c*d", "! **b**"),
        ("# ", "http://[::1]:80/", ""),
    ] {
        let text = format!("{before}{url}{after}");
        let html = to_html(&text);
        assert!(html.contains(&linked(url)), "{text}: {html}");
        assert_eq!(html.matches("<a ").count(), 1, "{text}: {html}");
    }
    let two = to_html("https://a.example and http://b.example");
    let both = ["https://a.example", "http://b.example"].map(linked);
    assert_eq!(two, format!("<p>{} and {}</p>\n", both[0], both[1]));
    for text in [
        "javascript://example.com",
        "ftp://example.com",
        "git+https://example.com",
        "xhttps://example.com",
        "javascript:https://example.com",
        "https://",
        "https:// example.com",
        "https://\"onclick=x",
        "`https://example.com`",
        "    https://example.com",
        "[https://example.com](javascript:x)",
        "![https://example.com](https://example.com/a.png)",
        "<i>https:</i>//example.com",
    ] {
        assert!(!to_html(text).contains("<a "), "{text}: {}", to_html(text));
    }
    let once = to_html("[https://example.com/a](https://example.com/b)");
    assert_eq!(once.matches("<a ").count(), 1, "{once}");
}

/// Texts of pieces that matter, by a seed.
fn texts(seed: u64) -> impl Iterator<Item = String> {
    const PIECES: &[&str] = &[
        "https://a.b",
        "http://a",
        "https://",
        " https://a/",
        "http",
        "https",
        "HTTPS",
        "://",
        ":",
        "/",
        "//",
        "javascript",
        "data",
        "mailto",
        "a.b",
        "a",
        " ",
        " ",
        "\n",
        "\n\n",
        "<",
        ">",
        "\"",
        "'",
        "&",
        "&amp;",
        "&#x3a;",
        "*",
        "_",
        "~~",
        "[",
        "](",
        ")",
        "(",
        "]",
        "`",
        "\\",
        "\t",
        "@",
        "é",
        "\u{200b}",
        "。",
        "> ",
        "- ",
    ];
    let mut state = seed | 1;
    let mut draw = move |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % most as u64).unwrap()
    };
    std::iter::repeat_with(move || {
        let length = 1 + draw(14);
        (0..length).map(|_| PIECES[draw(PIECES.len())]).collect()
    })
}

#[test]
fn whatever_is_written_only_the_web_mail_and_the_board_are_linked() {
    let links = |html: &str| {
        let links = html.split("<a ").skip(1);
        links
            .map(|link| link.split('>').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let mut count = 0;
    for text in texts(0x0bad_cafe).take(20_000) {
        let html = to_html(&text);
        for link in links(&html) {
            let url = link
                .strip_prefix("href=\"")
                .unwrap()
                .split('"')
                .next()
                .unwrap();
            let is_own = link == format!("href=\"{url}\"");
            let scheme = url.split(':').next().unwrap().to_ascii_lowercase();
            let is_web = matches!(scheme.as_str(), "http" | "https");
            let is_written = text.contains("](") || text.contains('<');
            // A bare address leads to the web; what is written as a link also to mail and to the board.
            let is_allowed = is_web || (is_written && (scheme == "mailto" || is_own));
            assert!(is_allowed, "{text:?}: {html}");
            let rest = link[link.find(url).unwrap() + url.len() + 1..].to_owned();
            assert!(
                is_own || rest == " rel=\"nofollow ugc noopener\"",
                "{text:?}: {html}"
            );
            count += 1;
        }
        // Nothing but whole tags of ours, and no links in links.
        for tag in html.split('<').skip(1) {
            let name = tag.trim_start_matches('/');
            let name = name
                .split(|c: char| !c.is_ascii_alphanumeric())
                .next()
                .unwrap();
            let is_ours = [
                "p",
                "a",
                "em",
                "strong",
                "del",
                "code",
                "pre",
                "blockquote",
                "ul",
                "ol",
                "li",
                "hr",
            ];
            assert!(
                is_ours.contains(&name) || name.starts_with('h') || name == "br",
                "{text:?}: {html}"
            );
        }
        assert_eq!(
            html.matches("<a ").count(),
            html.matches("</a>").count(),
            "{text:?}: {html}"
        );
        if is_plain(&text) {
            assert_eq!(html, parsed(&text), "{text:?}");
        }
    }
    assert!(count > 500, "{count} links");
}

#[test]
fn a_short_text_makes_no_long_page() {
    // Each address that ends in a mark of a sentence is one.
    let addresses = "http://a. ".repeat(1_000);
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
        format!("*a* {addresses}"),
        addresses,
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
