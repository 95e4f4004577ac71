//! What is in a tag.

use super::characters::{continues_name, is_name, is_space, resolved};

/// The tag of an element, without `<` and `>`.
pub(super) enum Tag<'a> {
    Start(Start<'a>),
    End(&'a str),
}

/// The first tag of an element, or the only one.
pub(super) struct Start<'a> {
    pub(super) name: &'a str,
    /// In the order of the text; no name twice.
    pub(super) attributes: Vec<(&'a str, String)>,
    pub(super) is_empty: bool,
}

impl<'a> Tag<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        if let Some(name) = text.strip_prefix('/') {
            let name = name.trim_end_matches(is_space);
            return is_name(name).then_some(Self::End(name));
        }
        let (text, is_empty) = match text.strip_suffix('/') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (name, rest) = split_name(text)?;
        let attributes = match rest.trim_start_matches(is_space) {
            "" => Vec::new(),
            all if rest.starts_with(is_space) => attributes_in(all)?,
            _ => return None,
        };
        Some(Self::Start(Start {
            name,
            attributes,
            is_empty,
        }))
    }
}

/// The attributes in a text that begins with the first of them.
pub(super) fn attributes_in(mut text: &str) -> Option<Vec<(&str, String)>> {
    let mut all: Vec<(&str, String)> = Vec::new();
    loop {
        let (name, rest) = split_name(text)?;
        let rest = rest.trim_start_matches(is_space).strip_prefix('=')?;
        let rest = rest.trim_start_matches(is_space);
        let quote = rest
            .chars()
            .next()
            .filter(|sign| matches!(sign, '"' | '\''))?;
        let (value, rest) = rest[1..].split_once(quote)?;
        if value.contains('<') {
            return None;
        }
        all.push((name, resolved(value, true)?));
        text = rest.trim_start_matches(is_space);
        if text.is_empty() {
            return has_no_name_twice(&all).then_some(all);
        }
        if !rest.starts_with(is_space) {
            return None;
        }
    }
}

/// Sorted, because a hostile document may have a million attributes in one tag.
fn has_no_name_twice(all: &[(&str, String)]) -> bool {
    let mut names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

fn split_name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|sign| !continues_name(sign));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    is_name(name).then_some((name, rest))
}
