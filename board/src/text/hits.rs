//! What a search has found, marked: in a text that is shown as HTML, and the place in a long text where it stands.

/// How many bytes stand before the first hit of an excerpt.
const BEFORE: usize = 60;

/// HTML in which each word that begins with one of those that were sought is marked. These are in small letters.
pub(crate) fn mark(html: &str, sought: &[String]) -> String {
    let mut out = String::with_capacity(html.len() + 64);
    let mut rest = html;
    while let Some(first) = rest.chars().next() {
        // Tags and entities stay as they are.
        let end = match first {
            '<' => rest.find('>').map(|at| at + 1),
            '&' => rest.find(';').map(|at| at + 1),
            first if first.is_alphanumeric() => rest.find(|c: char| !c.is_alphanumeric()),
            _ => rest.find(|c: char| matches!(c, '<' | '&') || c.is_alphanumeric()),
        };
        let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
        match first.is_alphanumeric() && is_hit(piece, sought) {
            true => out.extend(["<mark>", piece, "</mark>"]),
            false => out.push_str(piece),
        }
        rest = behind;
    }
    out
}

/// A text as HTML that shows it as it is, marked in the same way.
pub(crate) fn mark_text(text: &str, sought: &[String]) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            c => html.push(c),
        }
    }
    mark(&html, sought)
}

/// Where an excerpt of a text begins that shows the first hit: at its beginning, if that is near.
pub(crate) fn excerpt(text: &str, sought: &[String]) -> usize {
    let mut from = 0;
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        if is_hit(bare, sought) {
            break;
        }
        from += word.len();
    }
    if from == text.len() || from <= BEFORE {
        return 0;
    }
    let near = (from - BEFORE..from).find(|at| text.is_char_boundary(*at));
    let near = near.unwrap_or(from);
    // At a space, if there is one, so that no word is cut.
    text[near..from]
        .find(char::is_whitespace)
        .map_or(from, |at| near + at)
}

fn is_hit(word: &str, sought: &[String]) -> bool {
    let word = word.to_lowercase();
    !word.is_empty() && sought.iter().any(|it| word.starts_with(it.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn words_are_marked_and_tags_are_left_alone() {
        let sought = words(&["wat", "a", "é"]);
        for (html, marked) in [
            ("<p>Water</p>", "<p><mark>Water</mark></p>"),
            (
                "<a href=\"a\">b a</a>",
                "<a href=\"a\">b <mark>a</mark></a>",
            ),
            ("b &amp; c", "b &amp; c"),
            ("b &amp;a", "b &amp;<mark>a</mark>"),
            ("ÉTÉ sea", "<mark>ÉTÉ</mark> sea"),
            ("", ""),
            ("b & c", "b & c"),
        ] {
            assert_eq!(mark(html, &sought), marked);
        }
        assert_eq!(
            mark_text("a<b>&\"", &sought),
            "<mark>a</mark>&lt;b&gt;&amp;&quot;"
        );
    }

    #[test]
    fn an_excerpt_begins_before_the_first_hit() {
        let sought = words(&["here"]);
        let far = format!("{}here it is", "word ".repeat(40));
        let at = excerpt(&far, &sought);
        assert!(far[at..].find("here").unwrap() <= BEFORE && far[at..].starts_with(" word"));
        assert_eq!(excerpt("it is here", &sought), 0);
        assert_eq!(excerpt(&"word ".repeat(40), &sought), 0);
        let umlauts = format!("{} here", "ä".repeat(100));
        assert!(umlauts[excerpt(&umlauts, &sought)..].contains("here"));
    }
}
