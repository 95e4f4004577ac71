//! Any JSON document becomes a tree and comes back, in pieces of any length; nothing else does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use serde_json::{Map, Value};
use weald_tree::{Attributes, DocumentReader, NotADocument, Tree, Where};

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let members = prop::collection::vec((".{0,4}", inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            members.prop_map(|all| Value::Object(all.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn in_pieces(text: &[u8], cuts: &[usize]) -> Result<Tree, weald_tree::DocumentError> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let mut reader = DocumentReader::new();
    for ends in cuts.windows(2) {
        reader.push(&text[ends[0]..ends[1]])?;
    }
    reader.finish()
}

#[test]
fn half_a_surrogate_pair_comes_back() {
    for text in [
        r#""\ud800""#,
        r#"{"\udfff":["a\ud83cb","\udf75"],"tea":"x"}"#,
    ] {
        let tree = Tree::from_document(text).unwrap();
        let again: String = tree.root().to_document().unwrap();
        assert_eq!(again, text);
        let exact = Tree::from_json(&tree.root().to_json()).unwrap();
        assert_eq!(exact.root().to_document().unwrap(), text);
    }
    let mut edit = Tree::from_document("\"x\"").unwrap().edit();
    let root = edit.tree().root().id();
    edit.put_attribute(root, "value", b"\xff").unwrap();
    assert!(edit.freeze().root().to_document().is_err());
}

proptest! {
    #[test]
    fn any_document_comes_back(
        document in documents(),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap()] {
            let tree = Tree::from_document(&text).unwrap();
            prop_assert_eq!(tree.root().to_document().unwrap(), document.to_string());
            let again = in_pieces(text.as_bytes(), &cuts).unwrap();
            prop_assert_eq!(again.root().to_document().unwrap(), document.to_string());
        }
    }

    #[test]
    fn what_is_no_document_is_refused(text in r#"[\[\]{}:, "a10.\-etrulfasn\n\t]{0,14}"#) {
        let is_document = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(Tree::from_document(&text).is_ok(), is_document, "{}", text);
    }

    #[test]
    fn one_sign_more_or_less_is_noticed(document in documents(), at in any::<usize>(), sign in "[\\[\\]{}:,\"x\\n\\t]") {
        let mut text: Vec<char> = document.to_string().chars().collect();
        let at = at % (text.len() + 1);
        text.insert(at, sign.chars().next().unwrap());
        let text: String = text.into_iter().collect();
        let is_document = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(Tree::from_document(&text).is_ok(), is_document, "{}", text);
    }
}

#[test]
fn what_others_lose_stays() {
    let text = r#"{"a":1.50,"a":123456789012345678901234567890,"":[1e999,-0,"\u0000"]}"#;
    let tree = Tree::from_document(text).unwrap();
    assert_eq!(tree.root().to_document().unwrap(), text);
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let tree = Tree::from_document(&deep).unwrap();
    assert_eq!(tree.root().to_document().unwrap(), deep);
}

#[test]
fn errors_say_where() {
    let error = |text: &str| Tree::from_document(text).unwrap_err().to_string();
    let says = |expected: &str, at: usize| {
        format!("the text is not a JSON document: expected {expected} at byte {at}")
    };
    assert_eq!(error(""), says("a value", 0));
    assert_eq!(error("[1,]"), says("a value", 3));
    assert_eq!(error(r#"{"a" 1}"#), says("`:`", 5));
    assert_eq!(error("[01]"), says("a value or `]`", 1));
    assert_eq!(error("[1] 2"), says("the end", 4));
    assert_eq!(
        error("[1"),
        says("`,` or the end of the object or array", 2)
    );
    assert_eq!(error("[\"\\x\"]"), says("a string", 1));
    let mut reader = DocumentReader::new();
    reader.push(b"]").unwrap_err();
    reader.push(b"[]").unwrap_err();
    reader.finish().unwrap_err();
}

#[test]
fn a_tree_that_is_no_document_is_not_written() {
    let tree = Tree::from_document(r#"{"a":[1]}"#).unwrap();
    let array = tree.root().child(0).unwrap();
    let number = array.child(0).unwrap().id();
    let refused = |change: &dyn Fn(&mut weald_tree::Edit)| -> NotADocument {
        let mut edit = tree.edit();
        change(&mut edit);
        edit.freeze().root().to_document().unwrap_err()
    };
    let put = |name: &'static str, value: &'static str| {
        refused(&move |edit| edit.put_attribute(number, name, value).unwrap())
    };
    assert_eq!(put("value", "one").node, number);
    assert_eq!(put("type", "list").node, number);
    assert_eq!(put("type", "boolean").node, number);
    let child = |edit: &mut weald_tree::Edit| _ = edit.append(number, Attributes::new()).unwrap();
    assert_eq!(refused(&child).node, number);
    let array = array.id();
    let no_key = refused(&|edit| edit.delete_attribute(array, "key").unwrap());
    assert_eq!(no_key.node, array);
}

#[test]
fn a_document_is_spliced_into_a_tree() {
    let tree = Tree::from_document("[1]").unwrap();
    let mut reader = tree.document_reader();
    reader.push(b"{\"b\":2}").unwrap();
    let document = reader.finish_subtree().unwrap();
    let mut edit = tree.edit();
    edit.splice(Where::Last(tree.root().id()), &document)
        .unwrap();
    let text = edit.freeze().root().to_document().unwrap();
    assert_eq!(text, r#"[1,{"b":2}]"#);
}

#[test]
fn a_long_document_comes_in_pieces() {
    let text = format!("[{}]", vec!["\"some text\""; 50_000].join(","));
    let tree = Tree::from_document(&text).unwrap();
    let pieces: Vec<_> = tree.root().document_pieces().map(Result::unwrap).collect();
    assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.len() < 70_000));
    assert_eq!(pieces.concat(), text);
}
