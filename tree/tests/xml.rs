//! XML documents become trees and come back, in pieces of any length; what is no document is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use weald_tree::{Attributes, Tree, Where, XmlError, XmlReader};

/// A part of an element as XML, written in one of the ways in which it may be.
fn content() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-z&&[^x]]{1,4}( |\n|\t|ü|🍵){0,2}",
        Just("&lt;&#38;&gt;".to_owned()),
        Just("<![CDATA[ a<b]] > ]]>".to_owned()),
        Just("<!-- a - b > -->".to_owned()),
        Just("<?style href='a?' > ?>".to_owned()),
        Just("<?bare?>".to_owned()),
        Just("\r\n".to_owned()),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let names = "[a-c:]{1,2}";
        let attributes = prop_oneof![
            Just(""),
            Just(" z = 'a\"b' y=\"a>b&amp;\n\t\""),
            Just("\nxmlns:x='urn:x' x:b=''"),
        ];
        (
            names,
            attributes,
            prop::collection::vec(inner, 0..5),
            any::<bool>(),
        )
            .prop_map(|(name, attributes, inner, is_short)| {
                match inner.is_empty() && is_short {
                    true => format!("<{name}{attributes} />"),
                    false => format!("<{name}{attributes}>{}</{name} >", inner.concat()),
                }
            })
    })
}

fn documents() -> impl Strategy<Value = String> {
    let before = prop_oneof![
        Just(""),
        Just("\u{feff}<?xml version='1.0' encoding=\"UTF-8\" standalone='yes' ?>\n"),
        Just("<?xml version=\"1.1\"?><!-- tea --> <?a b?>"),
        Just("\n<!---->"),
    ];
    let after = prop_oneof![Just(""), Just("\n"), Just("<!-- end --><?end?>")];
    let inner = prop::collection::vec(content(), 0..6);
    (before, inner, after)
        .prop_map(|(before, inner, after)| format!("{before}<top>{}</top>{after}", inner.concat()))
}

fn in_pieces(text: &[u8], cuts: &[usize]) -> Result<Tree, XmlError> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let mut reader = XmlReader::new();
    for ends in cuts.windows(2) {
        reader.push(&text[ends[0]..ends[1]])?;
    }
    reader.finish()
}

/// What the nodes are, with the number of ancestors of each.
fn nodes(tree: &Tree) -> Vec<(usize, Attributes)> {
    let all = tree.root().preorder();
    all.map(|node| (node.ancestors().count(), node.attributes().clone()))
        .collect()
}

proptest! {
    #[test]
    fn any_document_comes_back(text in documents(), cuts in prop::collection::vec(any::<usize>(), 0..6)) {
        let tree = Tree::from_xml(&text).unwrap();
        let written = tree.root().to_xml().unwrap();
        let again = Tree::from_xml(&written).unwrap();
        prop_assert_eq!(nodes(&again), nodes(&tree), "{}", written);
        prop_assert_eq!(again.root().to_xml().unwrap(), written);
        prop_assert_eq!(nodes(&in_pieces(text.as_bytes(), &cuts).unwrap()), nodes(&tree));
    }

    #[test]
    fn no_text_breaks_the_reader(text in r#"[<>/!?a='"&;#\[\]C\-x \n]{0,16}"#, cuts in prop::collection::vec(any::<usize>(), 0..3)) {
        let whole = Tree::from_xml(&text);
        prop_assert_eq!(in_pieces(text.as_bytes(), &cuts).is_ok(), whole.is_ok());
        if let Ok(tree) = whole {
            let again = Tree::from_xml(&tree.root().to_xml().unwrap()).unwrap();
            prop_assert_eq!(nodes(&again), nodes(&tree));
        }
    }

    #[test]
    fn any_text_and_any_value_come_back(text in "(?s).{1,8}", value in "(?s).{0,8}") {
        let mut edit = Tree::from_xml("<a/>").unwrap().edit();
        let element = edit.tree().root().child(0).unwrap().id();
        edit.put_attribute(element, "v", &value).unwrap();
        edit.append(element, Attributes::new().with("#text", &text)).unwrap();
        let tree = edit.freeze();
        // XML has no way to write some characters.
        if let Ok(written) = tree.root().to_xml() {
            prop_assert_eq!(nodes(&Tree::from_xml(&written).unwrap()), nodes(&tree));
        } else {
            let all = text.chars().chain(value.chars());
            let has_unknown = all.into_iter().any(|sign| sign < ' ' || matches!(sign, '\u{fffe}' | '\u{ffff}'));
            prop_assert!(has_unknown);
        }
    }
}

#[test]
fn a_document_is_these_nodes() {
    let tree =
        Tree::from_xml("<?xml version='1.0'?><t:a b='1'>x<![CDATA[<]]><!--c--><?p d?></t:a>")
            .unwrap();
    let expected = [
        (0, Attributes::new().with("#document", "version='1.0'")),
        (1, Attributes::new().with("#element", "t:a").with("b", "1")),
        (2, Attributes::new().with("#text", "x")),
        (2, Attributes::new().with("#cdata", "<")),
        (2, Attributes::new().with("#comment", "c")),
        (2, Attributes::new().with("#instruction", "p d")),
    ];
    assert_eq!(nodes(&tree), expected);
    let element = tree.root().child(0).unwrap();
    assert_eq!(element.child(1).unwrap().to_xml().unwrap(), "<![CDATA[<]]>");
}

#[test]
fn what_is_no_document_is_refused_where_it_is_wrong() {
    for (text, at) in [
        ("", 0),
        ("tea", 0),
        (" ", 1),
        ("<a>", 3),
        ("<a", 0),
        ("<a></b>", 3),
        ("<a/><b/>", 4),
        ("<a/>x", 4),
        ("</a>", 0),
        ("<a b='1' b='2'/>", 0),
        ("<a b=1/>", 0),
        ("<a b='1'c='2'/>", 0),
        ("<a b='<'/>", 0),
        ("<1/>", 0),
        ("<a>&nbsp;</a>", 3),
        ("<a>]]></a>", 3),
        ("<a>\0</a>", 3),
        ("<a><!-- a -- b --></a>", 3),
        ("<a><!--->", 3),
        ("<a><?xml version='1.0'?></a>", 3),
        ("<a><?XML ?></a>", 3),
        ("<a><? b?></a>", 3),
        ("<![CDATA[a]]><a/>", 0),
        ("<!DOCTYPE a><a/>", 0),
        ("<!DOCTYPE a [<!ENTITY b 'ccc'>]><a>&b;</a>", 0),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><a/>", 0),
        ("<?xml encoding='UTF-8'?><a/>", 0),
        ("<?xml version='2.0'?><a/>", 0),
        (" <?xml version='1.0'?><a/>", 1),
    ] {
        let error = Tree::from_xml(text).unwrap_err();
        assert_eq!(error.at, at, "{text}: {error}");
    }
    assert!(in_pieces(b"<a>\xff</a>", &[]).is_err());
    let mut reader = XmlReader::new();
    let first = reader.push(b"<a></b>").unwrap_err();
    assert_eq!(reader.push(b"<c/>").unwrap_err(), first);
    assert_eq!(reader.finish().unwrap_err(), first);
}

#[test]
fn what_xml_cannot_say_is_refused() {
    let wrong = [
        Attributes::new(),
        Attributes::new().with("#element", "a b"),
        Attributes::new().with("#element", "a").with("b c", "d"),
        Attributes::new().with("#element", "a").with("#text", "d"),
        Attributes::new().with("#element", "a").with("b", [0xff]),
        Attributes::new().with("#text", "a").with("b", "d"),
        Attributes::new().with("#text", "\u{1}"),
        Attributes::new().with("#cdata", "a]]>b"),
        Attributes::new().with("#cdata", "a\rb"),
        Attributes::new().with("#comment", "a--b"),
        Attributes::new().with("#comment", "a-"),
        Attributes::new().with("#instruction", "xml a"),
        Attributes::new().with("#instruction", "a ?> b"),
        Attributes::new().with("#document", ""),
    ];
    for attributes in wrong {
        let mut edit = Tree::from_xml("<a/>").unwrap().edit();
        let element = edit.tree().root().child(0).unwrap().id();
        let node = edit.append(element, attributes.clone()).unwrap();
        let refused = edit.tree().root().to_xml().unwrap_err();
        assert_eq!(refused.node, node, "{attributes:?}: {refused}");
    }
    // Beside the element of a document there is no other, and no text; and a text has nothing in it.
    for (name, at) in [
        ("#element", Where::Last as fn(_) -> _),
        ("#text", Where::First),
    ] {
        let mut edit = Tree::from_xml("<a>b</a>").unwrap().edit();
        let root = edit.tree().root().id();
        edit.add(at(root), Attributes::new().with(name, "b"))
            .unwrap();
        assert_eq!(edit.freeze().root().to_xml().unwrap_err().node, root);
    }
    let mut edit = Tree::from_xml("<a>b</a>").unwrap().edit();
    let text = edit.tree().root().child(0).unwrap().child(0).unwrap().id();
    edit.append(text, Attributes::new().with("#text", "c"))
        .unwrap();
    assert_eq!(edit.freeze().root().to_xml().unwrap_err().node, text);
}

#[test]
fn a_subtree_is_spliced_in_and_a_deep_document_needs_no_stack() {
    let base = Tree::new();
    let mut reader = base.xml_reader();
    reader.push(b"<a><b/></a>").unwrap();
    let mut edit = base.edit();
    let root = edit.tree().root().id();
    edit.splice(Where::Last(root), &reader.finish_subtree().unwrap())
        .unwrap();
    let tree = edit.freeze();
    assert_eq!(
        tree.root().child(0).unwrap().to_xml().unwrap(),
        "<a><b/></a>"
    );
    let depth = 100_000;
    let text = format!("{}<b/>{}", "<a>".repeat(depth), "</a>".repeat(depth));
    let deep = Tree::from_xml(&text).unwrap();
    assert_eq!(deep.root().to_xml().unwrap(), text);
    assert!(deep.root().xml_pieces().count() > 1);
}

/// One after the other, each would be compared with all before it, and copy their list.
#[test]
fn a_tag_may_have_very_many_attributes() {
    let numbers = 0..50_000_u32;
    let all: String = numbers.clone().map(|n| format!(" a{n}='{n}'")).collect();
    let tree = Tree::from_xml(&format!("<top{all}/>")).unwrap();
    let top = tree.root().children().next().unwrap();
    assert_eq!(top.attributes().len(), numbers.len() + 1);
    assert_eq!(top.attributes().get("a33333"), Some(&b"33333"[..]));
    let again = Tree::from_xml(&tree.root().to_xml().unwrap()).unwrap();
    let top_again = again.root().children().next().unwrap();
    assert!(top.attributes().iter().eq(top_again.attributes().iter()));
    assert!(Tree::from_xml(&format!("<top{all} a33333=''/>")).is_err());
}
