//! JSON: what is written reads back as the same tree, and what is not a tree is refused with its position.

#[path = "support/model.rs"]
mod model;

use model::{Model, grown, steps};
use proptest::prelude::*;
use weald_tree::{Attributes, Builder, JsonReader, Tree, Where};

/// The model with the ids of another, so that only shape and attributes count.
fn bare(mut model: Model, ids: &Model) -> Model {
    model.id = ids.id;
    let children = model.children.into_iter().zip(&ids.children);
    model.children = children.map(|(child, ids)| bare(child, ids)).collect();
    model
}

proptest! {
    #[test]
    fn what_is_written_reads_back(steps in steps(60)) {
        let (tree, model) = grown(&steps);
        let text = tree.root().to_json();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let again = Tree::from_json(&value.to_string()).unwrap();
        prop_assert_eq!(again.len(), tree.len());
        prop_assert_eq!(bare(Model::of(again.root()), &model), model);
        prop_assert_eq!(again.root().to_json(), text);
    }

    #[test]
    fn no_text_breaks_the_reader(text in r#"[{}\[\]:,"\\ a-]{0,20}"#, at in 0..90_usize) {
        let _ = Tree::from_json(&text);
        let whole = r#"{"attributes":{"k":"é\n","b":{"hex":"ff"}},"children":[{},{"children":[{}]}]}"#;
        if let Some((before, after)) = whole.split_at_checked(at) {
            let _ = Tree::from_json(&format!("{before}{text}{after}"));
            if before != whole {
                prop_assert!(Tree::from_json(before).is_err());
            }
        }
    }
}

#[test]
fn a_subtree_can_be_read_for_splicing() {
    let tree = Tree::new();
    let subtree = tree
        .subtree_from_json(r#" { "children" : [ { } , { } ] } "#)
        .unwrap();
    let mut edit = tree.edit();
    edit.splice(Where::Last(tree.root().id()), &subtree)
        .unwrap();
    assert_eq!(edit.freeze().len(), 4);
}

#[test]
fn an_error_names_the_position() {
    for (text, at, expected) in [
        ("", 0, "`{` of a node"),
        (
            "{\"a\":1}",
            4,
            "`attributes` and then `children` as the names in a node",
        ),
        ("{} x", 3, "the end"),
        (r#"{"attributes":{"a":1}}"#, 19, "a string"),
        (
            r#"{"attributes":{"a":{"hex":"0"}}}"#,
            29,
            "pairs of hexadecimal digits",
        ),
        (r#"{"attributes":{"a":"\x"}}"#, 19, "a string"),
        (r#"{"children":[{}"#, 15, "`,` or `]` after a child"),
    ] {
        let error = Tree::from_json(text).expect_err("not a tree");
        assert_eq!((error.at, error.expected), (at, expected), "{text}");
    }
}

#[test]
fn erasable_values_are_plain_or_taken_with_their_nodes() {
    let text = concat!(
        r#"{"attributes":{"a":{"erasable":"1"},"b":"2","c":{"erased":"5"}},"children":["#,
        r#"{"attributes":{"d":{"erasable":{"hex":"ff"}}},"children":[{}]},"#,
        r#"{"attributes":{"e":{"erasable":"3"},"f":{"hex":"fe"}}}]}"#
    );
    let plain = Tree::from_json(text).unwrap();
    assert_eq!(plain.root().get("a"), Some(&b"1"[..]));
    let mut taken = Vec::new();
    let tree = Tree::from_json_with(text, &mut |node, name, value| {
        taken.push((node, name.to_owned(), value.to_vec()));
    });
    let tree = tree.unwrap();
    let nodes: Vec<_> = tree.root().preorder().map(|node| node.id()).collect();
    let due = [
        (nodes[0], "a", &b"1"[..]),
        (nodes[1], "d", &[0xff]),
        (nodes[3], "e", b"3"),
    ];
    assert_eq!(
        taken,
        due.map(|(node, name, value)| (node, name.to_owned(), value.to_vec()))
    );
    assert_eq!(
        tree.root().to_json(),
        r#"{"attributes":{"b":"2"},"children":[{"children":[{}]},{"attributes":{"f":{"hex":"fe"}}}]}"#
    );
    // Nothing is taken of a text that is no tree in the end.
    let cut = &text[..text.len() - 1];
    assert!(Tree::from_json_with(cut, &mut |_, _, _| unreachable!()).is_err());
    for (text, at) in [
        (r#"{"attributes":{"a":{"erasable":{"erasable":"1"}}}}"#, 42),
        (r#"{"attributes":{"a":{"erasable":1}}}"#, 31),
        (r#"{"attributes":{"a":{"other":"1"}}}"#, 27),
    ] {
        assert_eq!(Tree::from_json(text).unwrap_err().at, at, "{text}");
    }
}

#[test]
fn an_attribute_that_a_node_has_twice_is_refused() {
    let values = [
        r#""1""#,
        r#"{"hex":"00"}"#,
        r#"{"erasable":"1"}"#,
        r#"{"erased":"1763780000"}"#,
    ];
    for (first, second) in values
        .iter()
        .flat_map(|first| values.map(|second| (first, second)))
    {
        let text = format!(r#"{{"attributes":{{"a":{first},"b":"","a":{second}}}}}"#);
        let error = Tree::from_json(&text).unwrap_err();
        assert!(error.expected.contains("attribute already"), "{error}");
        Tree::from_json_with(&text, &mut |_, _, _| ()).unwrap_err();
    }
}

#[test]
fn a_text_in_pieces_is_read_as_the_whole() {
    let text = concat!(
        r#" {"attributes" :{"a":{"erasable":{"hex":"c3bc"}},"ü":"\\\"ü\u00fc"},"children":[{},"#,
        r#"{"children":[]},{"attributes":{},"children":[{"attributes":{"b":{"hex":"ff"}}}]}] } "#
    );
    let whole = Tree::from_json(text).unwrap().root().to_json();
    for len in 1..text.len() {
        let mut reader = JsonReader::new();
        for piece in text.as_bytes().chunks(len) {
            reader.push(piece).unwrap();
        }
        assert_eq!(reader.finish().unwrap().root().to_json(), whole, "{len}");
    }
    for end in 0..text.trim_end().len() {
        let mut reader = JsonReader::new();
        reader.push(&text.as_bytes()[..end]).unwrap();
        assert!(reader.finish().is_err(), "{end}");
    }
}

#[test]
fn after_an_error_a_reader_says_the_same_again() {
    let mut reader = JsonReader::new();
    let error = reader.push(b"{\"attributes\":[").unwrap_err();
    assert_eq!((error.at, error.expected), (14, "`{` of the attributes"));
    assert_eq!(reader.push(b"{}"), Err(error.clone()));
    assert_eq!(reader.finish().unwrap_err(), error);
}

#[test]
fn a_large_tree_is_written_in_pieces() {
    let mut builder = Builder::new(Attributes::new());
    for number in 0..10_000 {
        builder.leaf(Attributes::new().with("number", number.to_string()));
    }
    let tree = builder.finish().into_tree();
    let pieces: Vec<_> = tree.root().json_pieces().collect();
    assert!(pieces.len() > 3);
    assert!(pieces.iter().all(|piece| piece.len() < 66_000));
    let mut reader = tree.json_reader();
    for piece in &pieces {
        reader.push(piece.as_bytes()).unwrap();
    }
    assert_eq!(pieces.concat(), reader.finish().unwrap().root().to_json());
}
