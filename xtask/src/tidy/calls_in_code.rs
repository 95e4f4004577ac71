//! Every method that a piece of Rust calls, such as `f` in `a.f()`, read from its tokens.
//!
//! Macro bodies are read like any other code; items that only tests see are left out.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::paths_in_code::{is, left_out};

/// A call of a method: its name and its line.
pub(super) type Call = (String, usize);

/// The methods that are called in `tokens`.
pub(super) fn calls(tokens: TokenStream) -> Vec<Call> {
    let mut calls = Vec::new();
    scan(tokens, &mut calls);
    calls
}

fn scan(tokens: TokenStream, calls: &mut Vec<Call>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        at += left_out(&tokens[at..]);
        match &tokens[at..] {
            [dot, TokenTree::Ident(name), next, ..] if is(dot, '.') && begins_call(next) => {
                calls.push((name.to_string(), name.span().start().line));
                at += 2;
            }
            [TokenTree::Group(group), ..] => {
                scan(group.stream(), calls);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Whether a name before this token is called: it has arguments, or their types.
fn begins_call(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        token => is(token, ':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_in_code_and_macros_and_fields_and_tests_are_not() {
        let text = "impl A { fn f(&self) { self.a.b(x.c::<D>()); g!(y.e() + 1.0); h(); }\n\
                    #[cfg(test)] fn i(&self) { self.j() } }";
        let tokens = text.parse().expect("the text consists of tokens");
        let names: Vec<String> = calls(tokens).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "c", "e"]);
    }
}
