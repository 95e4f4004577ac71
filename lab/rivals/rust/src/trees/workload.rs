//! The workloads, each on threads that take tasks from one counter.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::programs::xorshift::Xorshift;
use common::{Call, commit_at_once, fail, per, print_metrics, rss_bytes};

use super::database::{Kept, Names, Published};
use super::document::{Node, Shape, for_each_node, paths};
use super::library::Library;

/// How a tree is written.
#[derive(Clone, Copy)]
enum Mode {
    /// From its leaves to its root.
    Bulk,
    /// Node by node, in place as far as nothing else shares the tree.
    Edit,
    /// Node by node, each of them published.
    Commits,
}

/// The attributes; a commit puts one of them.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Runs tasks 0 to `count` on this many threads and returns how long it took.
fn on_threads(workers: usize, count: usize, task: impl Fn(usize) + Sync) -> Duration {
    let next = AtomicUsize::new(0);
    let clock = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    task(number);
                }
            });
        }
    });
    clock.elapsed()
}

/// How many of its newest versions a tree keeps, as the forest does.
const KEPT: usize = 1_000;

pub(crate) fn read<L: Library>(call: &Call, shape: Shape) -> ! {
    let tasks = call.count("tasks");
    let is_of_attributes = call.optional("what").is_some()
        && call.word("what", &[("count", false), ("attribute", true)]);
    let before = rss_bytes();
    let tree = Node::<L>::build(shape);
    let grown = rss_bytes().saturating_sub(before);
    let nodes = tree.count();
    let (tree, paths) = (Published::new(tree), paths(shape));
    let visited = AtomicUsize::new(0);
    let elapsed = on_threads(call.workers, tasks, |number| {
        let path = &paths[Xorshift::of(number).below(paths.len())];
        let version = tree.append(path, number as u64);
        let count = if is_of_attributes {
            version.count_attributes()
        } else {
            version.count()
        };
        visited.fetch_add(count, Ordering::Relaxed);
    });
    let visited = visited.into_inner();
    if visited != (0..tasks).map(|task| nodes + task + 1).sum() {
        fail("The tasks counted a different number of nodes than their versions have.");
    }
    print_metrics(&[
        ("ns_per_node", per(elapsed, visited as f64)),
        ("bytes_per_node", grown as f64 / nodes as f64),
        ("s", elapsed.as_secs_f64()),
    ])
}

pub(crate) fn write<L: Library>(call: &Call, shape: Shape) -> ! {
    let trees = call.count("trees");
    let modes = [
        ("bulk", Mode::Bulk),
        ("edit", Mode::Edit),
        ("versions", Mode::Commits),
        ("commits", Mode::Commits),
    ];
    let mode = call.word("mode", &modes);
    let nodes = paths(shape).len();
    let write_all = || {
        let (names, correct) = (Names::<L>::new(), AtomicUsize::new(0));
        let elapsed = on_threads(call.workers, trees, |number| {
            let name = format!("tree-{number}");
            write_one(&names, &name, (shape, mode));
            let written = names.get(&name).map(|tree| tree.root.load().count());
            correct.fetch_add(usize::from(written == Some(nodes)), Ordering::Relaxed);
        });
        (elapsed, correct.into_inner(), names)
    };
    // The second time counts: memory is warm then.
    let before = rss_bytes();
    let (_, _, names) = write_all();
    let grown = rss_bytes().saturating_sub(before);
    drop(names);
    let (elapsed, correct, names) = write_all();
    drop(names);
    print_metrics(&[
        ("ns_per_node", per(elapsed, (trees * nodes) as f64)),
        ("bytes_per_node", grown as f64 / (trees * nodes) as f64),
        ("s", elapsed.as_secs_f64()),
        ("correct", correct as f64),
    ])
}

fn write_one<L: Library>(names: &Names<L>, name: &str, (shape, mode): (Shape, Mode)) {
    let register = |root| {
        let tree = Arc::new(Published::new(root));
        names.register(name, &tree);
        tree
    };
    match mode {
        Mode::Bulk => _ = register(Node::build(shape)),
        Mode::Edit => {
            let mut root = Node::leaf(0);
            for_each_node(shape, |parent, number| {
                Node::append(&mut root, parent, Node::leaf(number));
            });
            register(root);
        }
        Mode::Commits => {
            let (tree, kept) = (register(Node::leaf(0)), Kept::new(KEPT));
            for_each_node(shape, |parent, number| {
                kept.keep(tree.append(parent, number))
            });
            tree.keep_until_the_end(kept);
        }
    }
}

pub(crate) fn hot<L: Library>(call: &Call, shape: Shape) -> ! {
    call.word("kind", &[("threads", ())]);
    let (writers, commits) = (call.count("writers"), call.count("commits"));
    let kept = call.word("retention", &[("kept", KEPT), ("none", 0)]);
    let tree = Published::new(Node::<L>::build(shape));
    let kept = Kept::new(kept);
    let (paths, each) = (paths(shape), commits.div_ceil(writers));
    let (elapsed, all) = commit_at_once(writers, each, |number| {
        let mut random = Xorshift::of(number);
        let (tree, kept, paths) = (&tree, &kept, &paths);
        move |step| {
            let path = &paths[random.below(paths.len())];
            kept.keep(if step % 2 == 0 {
                tree.append(path, step as u64)
            } else {
                let name = NAMES[random.below(NAMES.len())];
                tree.commit(|newest| newest.put(path, name, step.to_le_bytes()))
            });
        }
    });
    let retries = tree.retries.load(Ordering::Relaxed);
    print_metrics(&[
        ("commits_per_s", all.len() as f64 / elapsed.as_secs_f64()),
        (
            "p99_us",
            all[(all.len() - 1) * 99 / 100].as_secs_f64() * 1e6,
        ),
        ("retries_per_commit", retries as f64 / all.len() as f64),
    ])
}

pub(crate) fn append<L: Library>(children: usize, commits: usize) -> ! {
    let child = |number| Node::<L>::over(number, vec![Node::leaf(number)]);
    let tree = Published::new(Node::over(0, (0..children as u64).map(child).collect()));
    let kept = Kept::new(KEPT);
    let clock = Instant::now();
    for number in 0..commits {
        kept.keep(tree.append(&[], number as u64));
    }
    let elapsed = clock.elapsed();
    if L::iter(&tree.root.load().children).count() != children + commits {
        fail("The node does not have as many children as were appended.");
    }
    print_metrics(&[("ns", per(elapsed, commits as f64))])
}

pub(crate) fn snapshot<L: Library>(call: &Call, shape: Shape) -> ! {
    let (reads, workers) = (call.count("reads"), call.workers);
    let is_borrowed = call.word("what", &[("borrowed", true), ("owned", false)]);
    let tree = Published::new(Node::<L>::build(shape));
    let read = || match is_borrowed {
        true => L::iter(&tree.root.load().children).size_hint().0,
        false => L::iter(&tree.root.load_full().children).size_hint().0,
    };
    let elapsed = on_threads(workers, workers, |_| {
        for _ in 0..reads {
            black_box(read());
        }
    });
    print_metrics(&[("ns", per(elapsed, reads as f64))])
}
