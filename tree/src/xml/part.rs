//! The parts of a document, and what they may have.

use super::characters::{continues_name, is_allowed, is_name, is_space};
use super::tag::attributes_in;
use crate::attributes::Attributes;
use crate::node::Node;

/// What a node stands for, with the value of the attribute that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XmlPart<'a> {
    Document(&'a str),
    Element(&'a str),
    Text(&'a str),
    Cdata(&'a str),
    Comment(&'a str),
    Instruction(&'a str),
}

type Make = for<'a> fn(&'a str) -> XmlPart<'a>;

const PARTS: [(&str, Make); 6] = [
    ("#document", |text| XmlPart::Document(text)),
    ("#element", |text| XmlPart::Element(text)),
    ("#text", |text| XmlPart::Text(text)),
    ("#cdata", |text| XmlPart::Cdata(text)),
    ("#comment", |text| XmlPart::Comment(text)),
    ("#instruction", |text| XmlPart::Instruction(text)),
];

impl<'a> XmlPart<'a> {
    /// What a node stands for, if it stands for one part.
    pub(super) fn of(node: Node<'a>) -> Option<Self> {
        let mut known = PARTS
            .iter()
            .filter_map(|(name, make)| Some(make(node.get_str(name)?)));
        let part = known.next()?;
        let is_one = known.next().is_none();
        let is_element = matches!(part, XmlPart::Element(_));
        (is_one && (is_element || node.attributes().len() == 1)).then_some(part)
    }

    /// The attributes of a node, without those of an element.
    pub(super) fn attributes(self) -> Attributes {
        let (name, text) = match self {
            Self::Document(text) => ("#document", text),
            Self::Element(text) => ("#element", text),
            Self::Text(text) => ("#text", text),
            Self::Cdata(text) => ("#cdata", text),
            Self::Comment(text) => ("#comment", text),
            Self::Instruction(text) => ("#instruction", text),
        };
        Attributes::new().with(name, text)
    }

    /// Whether a document may have it.
    pub(super) fn is_valid(self) -> bool {
        match self {
            Self::Document(text) => text.is_empty() || is_declaration(text),
            Self::Element(name) => is_name(name),
            Self::Text(text) => text.chars().all(is_allowed),
            // Between these there are no references, so this end of a line would be read as another.
            Self::Cdata(text) => is_literal(text) && !text.contains("]]>"),
            Self::Comment(text) => is_literal(text) && !text.contains("--") && !text.ends_with('-'),
            Self::Instruction(text) => {
                let target: String = text
                    .chars()
                    .take_while(|sign| continues_name(*sign))
                    .collect();
                let rest = &text[target.len()..];
                is_literal(text)
                    && is_name(&target)
                    && !target.eq_ignore_ascii_case("xml")
                    && !text.contains("?>")
                    && (rest.is_empty() || rest.starts_with(is_space))
            }
        }
    }
}

fn is_literal(text: &str) -> bool {
    text.chars().all(|sign| is_allowed(sign) && sign != '\r')
}

/// Whether a declaration may have this between its name and its end.
fn is_declaration(text: &str) -> bool {
    let known = attributes_in(text).unwrap_or_default();
    let mut names = known.iter().map(|(name, _)| *name);
    let value_of = |name| {
        known
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| &**value)
    };
    let has_order = names.next() == Some("version")
        && match (names.next(), names.next(), names.next()) {
            (None | Some("encoding" | "standalone"), None, None) => true,
            (first, second, None) => (first, second) == (Some("encoding"), Some("standalone")),
            _ => false,
        };
    let version = value_of("version").and_then(|version| version.strip_prefix("1."));
    let is_number = version
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|digit| digit.is_ascii_digit()));
    let is_utf_8 = value_of("encoding").is_none_or(|name| {
        let known = ["utf-8", "us-ascii"];
        known.iter().any(|known| name.eq_ignore_ascii_case(known))
    });
    let is_standalone = value_of("standalone").is_none_or(|value| matches!(value, "yes" | "no"));
    let is_plain = !text.contains("?>")
        && !text.contains('&')
        && !text.starts_with(is_space)
        && !text.ends_with(is_space);
    has_order && is_number && is_utf_8 && is_standalone && is_plain && is_literal(text)
}
