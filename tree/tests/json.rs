//! JSON: what is written reads back as the same tree, and what is not a tree is refused with its position.

#[path = "support/model.rs"]
mod model;

use model::{Model, grown, steps};
use proptest::prelude::*;
use weald_tree::{Tree, Where};

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
