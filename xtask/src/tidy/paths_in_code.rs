//! Every path that a piece of Rust names, such as `crate::a::B`, read from its tokens.
//!
//! - `use` trees are flattened, and macro bodies are read like any other code.
//! - Attributes, `pub(in …)` and items that only tests see are left out.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One path, with the name that a `use` gives it, and the line of its first own segment.
pub(super) struct Named {
    pub(super) path: Vec<String>,
    pub(super) alias: String,
    pub(super) line: usize,
}

/// The paths of two segments or more in `tokens`.
pub(super) fn paths(tokens: TokenStream) -> Vec<Named> {
    let mut named = Vec::new();
    scan(tokens, &[], &mut named);
    named
}

/// Whether an attribute, given as text, limits its item to builds for tests.
pub(super) fn is_for_tests(attribute: &str) -> bool {
    let condition: String = attribute.split_whitespace().collect();
    let mut words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
    let may_be_elsewhere = condition.contains("any(") || condition.contains("not(test)");
    words.next() == Some("cfg") && words.any(|word| word == "test") && !may_be_elsewhere
}

fn scan(tokens: TokenStream, prefix: &[String], named: &mut Vec<Named>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        at += left_out(&tokens[at..]);
        match &tokens[at..] {
            [TokenTree::Ident(word), TokenTree::Group(group), ..]
                if word == "pub" && group.delimiter() == Delimiter::Parenthesis =>
            {
                at += 2;
            }
            [TokenTree::Ident(_), ..] => at += path(&tokens, at, prefix, named),
            [star, ..] if is(star, '*') && !prefix.is_empty() => {
                push(prefix.to_vec(), "*", star, named);
                at += 1;
            }
            [TokenTree::Group(group), ..] => {
                scan(group.stream(), &[], named);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Reads the path that starts at `at`, with the `use` tree below it, and returns its length in tokens.
fn path(tokens: &[TokenTree], at: usize, prefix: &[String], named: &mut Vec<Named>) -> usize {
    let is_tail = at > 1 && tokens[at - 2..at].iter().all(|token| is(token, ':'));
    let mut path = prefix.to_vec();
    path.push(tokens[at].to_string());
    let mut length = 1;
    while let [a, b, next, ..] = &tokens[at + length..]
        && is(a, ':')
        && is(b, ':')
    {
        match next {
            TokenTree::Ident(segment) => path.push(segment.to_string()),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                scan(group.stream(), &path, named);
                return length + 3;
            }
            star if is(star, '*') => path.push("*".to_owned()),
            _ => break,
        }
        length += 3;
    }
    let mut alias = path.last().cloned().unwrap_or_default();
    if path.len() > 1 && alias == "self" {
        path.pop();
        alias = path.last().cloned().unwrap_or_default();
    }
    if let [TokenTree::Ident(word), TokenTree::Ident(name), rest @ ..] = &tokens[at + length..]
        && word == "as"
        && !rest.first().is_some_and(|token| is(token, ':'))
    {
        alias = name.to_string();
        length += 2;
    }
    if !is_tail && (path.len() > 1 || !prefix.is_empty()) {
        push(path, &alias, &tokens[at], named);
    }
    length
}

fn push(mut path: Vec<String>, alias: &str, first: &TokenTree, named: &mut Vec<Named>) {
    if alias == "*" && path.last().is_none_or(|last| last != "*") {
        path.push("*".to_owned());
    }
    named.push(Named {
        path,
        alias: alias.to_owned(),
        line: first.span().start().line,
    });
}

/// The length in tokens of what is left out here: attributes, and items that only tests see.
pub(super) fn left_out(tokens: &[TokenTree]) -> usize {
    let mut at = 0;
    while let [hash, TokenTree::Group(attribute), ..] = &tokens[at..]
        && is(hash, '#')
    {
        at += 2;
        if is_for_tests(&attribute.stream().to_string()) {
            at += item_length(&tokens[at..]);
        }
    }
    at
}

/// The length in tokens of the item that starts here, up to its `;` or its braces.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is(token, ';'),
    };
    let end = tokens.iter().position(is_end);
    end.map_or(tokens.len(), |end| end + 1)
}

pub(super) fn is(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tokens = text.parse().expect("the text consists of tokens");
        let name =
            |named: Named| format!("{} {}:{}", named.line, named.path.join("::"), named.alias);
        paths(tokens).into_iter().map(name).collect()
    }

    #[test]
    fn a_use_tree_is_flattened() {
        assert_eq!(
            found("pub(in crate::z) use crate::{a::{self, B as C},\n d::*};"),
            ["1 crate::a:a", "1 crate::a::B:C", "2 crate::d::*:*"]
        );
        assert_eq!(found("use super::{*};"), ["1 super::*:*"]);
    }

    #[test]
    fn paths_in_code_and_in_macros_are_found() {
        assert_eq!(
            found("fn f(x: crate::A) { g!(x as super::B, [c::d::<E>(), $crate::h]) }"),
            ["1 crate::A:A", "1 super::B:B", "1 c::d:d", "1 crate::h:h"]
        );
        assert_eq!(
            found("<a::T as b::U>::V::W; ::std::x; x as u8"),
            ["1 a::T:T", "1 b::U:U"]
        );
    }

    #[test]
    fn comments_strings_attributes_and_tests_are_left_out() {
        assert_eq!(
            found(
                "/// crate::a::b\n#[derive(a::B)] struct A; // crate::c\nconst B: &str = \"d::e\";\n\
                 #[cfg(all(test, not(loom)))] mod tests { use super::*; }\n\
                 impl A { #[cfg(test)] fn f() { g::h() } fn i() { j::k() } }"
            ),
            ["5 j::k:k"]
        );
    }

    #[test]
    fn a_condition_that_another_build_can_meet_is_not_for_tests() {
        for (attribute, expected) in [
            ("cfg(test)", true),
            ("cfg (all (loom , test))", true),
            ("cfg(not(test))", false),
            ("cfg(any(test, loom))", false),
            ("cfg(testing)", false),
            ("test", false),
        ] {
            assert_eq!(is_for_tests(attribute), expected, "{attribute}");
        }
    }
}
