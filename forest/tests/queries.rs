//! Queries with conditions on several attributes, an order, a limit and a cursor: they answer as a naive model does, in
//! the same order with and without indexes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use proptest::prelude::*;
use tools::Wait;
use weald_forest::{Attributes, Cursor, Forest, NodeId, Plan, Query, Root, TreeHandle};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A condition, as data.
#[derive(Clone, Debug)]
enum Sought {
    Range(usize, u8, u8),
    Equal(usize, u8),
    And(Box<Sought>, Box<Sought>),
    Or(Box<Sought>, Box<Sought>),
}

impl Sought {
    fn query(&self) -> Query {
        match self {
            Self::Range(name, from, to) => Query::range(NAMES[*name], [*from]..[*to]),
            Self::Equal(name, value) => Query::equal(NAMES[*name], [*value]),
            Self::And(one, other) => one.query().and(other.query()),
            Self::Or(one, other) => one.query().or(other.query()),
        }
    }

    fn is_met(&self, values: &[Option<u8>; 3]) -> bool {
        match self {
            Self::Range(name, from, to) => values[*name].is_some_and(|it| *from <= it && it < *to),
            Self::Equal(name, value) => values[*name] == Some(*value),
            Self::And(one, other) => one.is_met(values) && other.is_met(values),
            Self::Or(one, other) => one.is_met(values) || other.is_met(values),
        }
    }

    fn leading(&self) -> usize {
        match self {
            Self::Range(name, ..) | Self::Equal(name, _) => *name,
            Self::And(one, _) | Self::Or(one, _) => one.leading(),
        }
    }
}

fn sought() -> impl Strategy<Value = Sought> {
    let range = (0..3_usize, 0..6_u8, 0..8_u8);
    let leaf = prop_oneof![
        range.prop_map(|(name, from, len)| Sought::Range(name, from, from + len)),
        (0..3_usize, 0..6_u8).prop_map(|(name, value)| Sought::Equal(name, value)),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let both = (inner.clone(), inner);
        prop_oneof![
            both.clone()
                .prop_map(|(one, other)| Sought::And(Box::new(one), Box::new(other))),
            both.prop_map(|(one, other)| Sought::Or(Box::new(one), Box::new(other))),
        ]
    })
}

fn attributes(values: &[Option<u8>; 3]) -> Attributes {
    let some = NAMES.iter().zip(values);
    some.filter_map(|(name, value)| Some((*name, [(*value)?])))
        .fold(Attributes::new(), |all, (name, value)| {
            all.with(name, value)
        })
}

/// A tree with these nodes, each below one of those before it.
fn build(nodes: &[([Option<u8>; 3], usize)]) -> (TreeHandle, Vec<NodeId>) {
    let tree = Forest::new().create("t").wait().unwrap();
    let mut edit = tree.edit();
    let mut ids = vec![edit.root()];
    for (values, above) in nodes {
        let parent = ids[above % ids.len()];
        ids.push(edit.append(parent, attributes(values)).unwrap());
    }
    edit.commit().wait().unwrap();
    (tree, ids)
}

fn ids(root: &Root, query: &Query) -> Vec<NodeId> {
    root.find(query).map(|node| node.id()).collect()
}

fn value(root: &Root, id: NodeId, name: usize) -> Option<u8> {
    let node = root.tree().node(id)?;
    node.get(NAMES[name]).map(|value| value[0])
}

fn values(root: &Root, id: NodeId) -> [Option<u8>; 3] {
    [0, 1, 2].map(|name| value(root, id, name))
}

/// What a look at every node finds, in order.
fn naive(root: &Root, sought: &Sought, under: Option<NodeId>, is_reversed: bool) -> Vec<NodeId> {
    let first = under.map_or(Some(root.tree().root()), |id| root.tree().node(id));
    let nodes = first.into_iter().flat_map(|node| node.preorder());
    let ids = nodes.map(|node| node.id());
    let mut found: Vec<_> = ids.filter(|id| sought.is_met(&values(root, *id))).collect();
    found.sort_by_key(|id| (value(root, *id, sought.leading()), *id));
    if is_reversed {
        found.reverse();
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn queries_answer_as_a_naive_model_does(
        nodes in prop::collection::vec((any::<[Option<u8>; 3]>(), any::<usize>()), 0..120),
        changes in prop::collection::vec((any::<usize>(), any::<[Option<u8>; 3]>()), 0..6),
        sought in sought(),
        indexed in prop::collection::vec(0..3_usize, 0..3),
        (is_reversed, limit, page, under) in (any::<bool>(), 0..20_usize, 1..7_usize, any::<Option<usize>>()),
    ) {
        let small = |values: [Option<u8>; 3]| values.map(|value| value.map(|value| value % 6));
        let nodes: Vec<_> = nodes.into_iter().map(|(values, above)| (small(values), above)).collect();
        let (tree, all) = build(&nodes);
        for name in indexed {
            tree.add_index(NAMES[name]).wait().unwrap();
        }
        let under = under.map(|at| all[at % all.len()]);
        let mut query = sought.query();
        if let Some(under) = under {
            query = query.under(under);
        }
        if is_reversed {
            query = query.reverse();
        }
        let view = tree.snapshot();
        let expected = naive(&view, &sought, under, is_reversed);
        prop_assert_eq!(ids(&view, &query), expected.clone());
        if let Plan::Index { candidates } = view.explain(&query) {
            prop_assert!(candidates >= expected.len());
        }
        let first: Vec<_> = expected.iter().copied().take(limit).collect();
        prop_assert_eq!(ids(&view, &query.clone().limit(limit)), first);

        // Page by page, and each cursor goes through text.
        let mut paged = Vec::new();
        let mut next = query.clone().limit(page);
        loop {
            let found: Vec<_> = view.find(&next).collect();
            let Some(last) = found.last() else { break };
            paged.extend(found.iter().map(|node| node.id()));
            let cursor = next.cursor(*last).to_string().parse::<Cursor>().unwrap();
            next = query.clone().limit(page).after(cursor);
        }
        prop_assert_eq!(&paged, &expected);

        // An edit finds what it changed.
        let mut edit = tree.edit();
        for (at, values) in changes {
            let id = all[at % all.len()];
            for (name, value) in NAMES.iter().zip(small(values)) {
                match value {
                    Some(value) => edit.put_attribute(id, name, [value]).unwrap(),
                    None => _ = edit.delete_attribute(id, name),
                }
            }
        }
        let found = edit.find(&query.clone().limit(limit)).unwrap();
        edit.commit().wait().unwrap();
        let after = tree.snapshot();
        let expected = naive(&after, &sought, under, is_reversed);
        prop_assert_eq!(found, expected.into_iter().take(limit).collect::<Vec<_>>());
    }
}

#[test]
fn a_cursor_goes_on_in_a_newer_version() {
    let values = [1, 3, 5].map(|value| ([Some(value), None, None], 0));
    let (tree, all) = build(&values);
    let query = Query::range::<&[u8]>("a", ..).limit(1);
    let view = tree.snapshot();
    let cursor = query.cursor(view.find(&query).next().unwrap());
    let mut edit = tree.edit();
    let new = Attributes::new().with("a", [2]);
    let new = edit.append(edit.root(), new).unwrap();
    edit.delete(all[1]).unwrap();
    edit.commit().wait().unwrap();
    assert_eq!(ids(&tree.snapshot(), &query.after(cursor)), [new]);
    for text in ["", "x", "0", "1.z", "1.0", "-1"] {
        assert!(text.parse::<Cursor>().is_err(), "{text}");
    }
}

#[test]
fn what_cannot_be_seen_does_not_sort() {
    let (tree, all) = build(&[([None, Some(1), None], 0), ([Some(0), Some(1), None], 0)]);
    let mut edit = tree.edit();
    edit.put_erasable(all[1], "a", "secret").unwrap();
    edit.commit().wait().unwrap();
    let query = Query::equal("a", [0]).or(Query::equal("b", [1]));
    assert_eq!(ids(&tree.snapshot(), &query), [all[1], all[2]]);
    assert_eq!(
        query
            .cursor(tree.snapshot().tree().node(all[1]).unwrap())
            .to_string(),
        "2"
    );
}
