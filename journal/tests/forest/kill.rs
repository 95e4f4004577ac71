//! A program is killed under load, again and again, even while it opens: many writers commit at all levels, checkpoints
//! are put and history is removed meanwhile, and values are put and erased. Everything that it acknowledged is there,
//! and nothing that it erased.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pollster::block_on;
use weald_forest::{Attributes, CommitError, Edit, Forest, Level, Node, TreeHandle, Value};
use weald_journal::{Directory, DiskForest, DiskJournal, ReadOnlyForest, Settings};

use crate::openings::Random;

/// Tells the test below that it is the program: its seed, and where its forest is.
const CHILD: &str = "WEALD_TEST_LOADED_FOREST";

const WRITERS: u64 = 8;

/// How many nodes a tree has at most. Before another is appended, the oldest goes.
const WINDOW: u64 = 40;

fn open(directory: &Path) -> DiskForest {
    let medium = Directory::create(directory).unwrap();
    let settings = Settings::new()
        .segment(32 << 10)
        .silence(Duration::from_millis(1))
        .checkpoint_after(Some(24 << 10))
        .history_bytes(128 << 10);
    let journal = DiskJournal::open_on(medium, settings).unwrap();
    block_on(DiskForest::recover(Forest::builder().keep(10), journal)).unwrap()
}

fn name(writer: u64) -> String {
    format!("writer {writer}")
}

fn text(writer: u64, number: u64) -> String {
    let len = usize::try_from(writer * 7 + number * 31).unwrap() % 900;
    format!("{writer} {number} ").repeat(len / 4 + 1)
}

fn number(node: &Node<'_>) -> u64 {
    node.get_str("number").unwrap().parse().unwrap()
}

/// What one writer does until the program is killed. Each line tells what was acknowledged, except for those that begin
/// with "will".
fn write(tree: &TreeHandle, writer: u64, random: &mut Random) -> Result<(), CommitError> {
    loop {
        let level = [Level::Accepted, Level::Buffered, Level::Durable][random.index(3)];
        let view = tree.view();
        let last = view.tree().root().children().last();
        let kind = random.below(10);
        let mut edit: Edit = tree.edit();
        match last {
            Some(last) if kind < 2 => {
                let number = number(&last);
                println!("told will {writer} {number} .");
                edit.put_erasable(last.id(), "secret", text(writer, number))
                    .unwrap();
                block_on(edit.commit().level(level))?;
                if level > Level::Accepted {
                    println!("told secret {writer} {number} .");
                }
            }
            Some(last) if kind == 2 => {
                let number = number(&last);
                println!("told will {writer} {number} .");
                block_on(tree.erase(last.id(), "secret"))?;
                println!("told erased {writer} {number} .");
            }
            last => {
                let number = last.map_or(1, |last| self::number(&last) + 1);
                let oldest = view.tree().root().children().next();
                if let Some(oldest) = oldest
                    && number >= self::number(&oldest) + WINDOW
                {
                    edit.delete(oldest.id()).unwrap();
                }
                let attributes = Attributes::new()
                    .with("number", number.to_string())
                    .with("text", text(writer, number));
                let node = edit.append(edit.root(), attributes).unwrap();
                let committed = block_on(edit.commit().level(level))?;
                let version = committed.version.number;
                let kind = if level > Level::Accepted {
                    "node"
                } else {
                    "seen"
                };
                println!("told {kind} {writer} {number} {version} {} .", node.get());
            }
        }
    }
}

/// Not a test of its own: the program that is killed.
#[test]
fn the_program_that_is_killed_under_load() {
    let Some(call) = std::env::var_os(CHILD) else {
        return;
    };
    let call = call.into_string().unwrap();
    let (seed, directory) = call.split_once(' ').unwrap();
    let mut random = Random(seed.parse().unwrap());
    println!("told opening .");
    let forest = open(Path::new(directory));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (forest, mut random) = (&forest, Random(random.below(1 << 30)));
            scope.spawn(move || {
                let name = name(writer);
                let tree = match forest.get(&name) {
                    Ok(tree) => tree,
                    Err(_) => block_on(forest.create(&name)).unwrap(),
                };
                write(&tree, writer, &mut random)
            });
        }
    });
}

/// What a value is to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secret {
    Put,
    /// It is being put or erased.
    Unknown,
    Erased,
}

/// What all programs have told.
#[derive(Default)]
struct Told {
    /// The last node of each writer.
    last: BTreeMap<u64, u64>,
    secrets: BTreeMap<(u64, u64), Secret>,
    /// The greatest number of a version in all openings, and in those before the one that was told of last.
    version: u64,
    before: u64,
    /// Node ids of each writer's tree, and which number has them.
    nodes: BTreeSet<(u64, u64)>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let (kind, numbers) = (words[0], &words[1..words.len() - 1]);
        let numbers: Vec<u64> = numbers.iter().map(|it| it.parse().unwrap()).collect();
        match (kind, &numbers[..]) {
            ("opening", []) => self.before = self.version,
            ("secret", [writer, number]) => {
                _ = self.secrets.insert((*writer, *number), Secret::Put);
            }
            ("will", [writer, number]) => {
                _ = self.secrets.insert((*writer, *number), Secret::Unknown)
            }
            ("erased", [writer, number]) => {
                _ = self.secrets.insert((*writer, *number), Secret::Erased);
            }
            ("node" | "seen", [writer, number, version, node]) => {
                assert!(
                    *version > self.before,
                    "version {version} was given out twice"
                );
                self.version = self.version.max(*version);
                assert!(
                    self.nodes.insert((*writer, *node)),
                    "node {node} was given out twice"
                );
                if kind == "node" {
                    self.last.insert(*writer, *number);
                }
            }
            _ => panic!("what does it mean: {line}"),
        }
    }

    /// Checks a tree, and returns the number of its last node.
    fn check(&self, writer: u64, forest: &Forest, what: &str) -> u64 {
        let told = self.last.get(&writer).copied().unwrap_or(0);
        let Ok(tree) = forest.get(&name(writer)) else {
            assert_eq!(told, 0, "{what}: the tree of writer {writer} is lost");
            return 0;
        };
        let view = tree.view();
        let nodes: Vec<Node<'_>> = view.tree().root().children().collect();
        let first = nodes.first().map_or(1, number);
        for (node, due) in nodes.iter().zip(first..) {
            assert_eq!(number(node), due, "{what}: writer {writer}");
            assert_eq!(node.get_str("text"), Some(&text(writer, due)[..]), "{what}");
            let secret = forest.value(*node, "secret");
            match self.secrets.get(&(writer, due)) {
                Some(Secret::Put) => {
                    let due = Value::Erasable(text(writer, due).into_bytes().into());
                    assert_eq!(secret, Some(due), "{what}: writer {writer}");
                }
                Some(Secret::Erased) => {
                    let is_erased = matches!(secret, None | Some(Value::Erased { .. }));
                    assert!(is_erased, "{what}: {secret:?} of writer {writer} came back");
                }
                _ => {}
            }
        }
        let last = first + nodes.len() as u64 - 1;
        assert!(last >= told, "{what}: {last} of {told} of writer {writer}");
        last
    }
}

fn start(directory: &Path, seed: u64) -> Child {
    let program = "kill::the_program_that_is_killed_under_load";
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", program, "--nocapture"])
        .env(CHILD, format!("{seed} {}", directory.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets the program run until it has told this much, and kills it.
fn run(program: &mut Child, lines: u64, told: &mut Told) {
    let mut heard = 0;
    for line in BufReader::new(program.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // A line is written at once; a line that is not whole does not count.
        if let Some((_, line)) = line.split_once("told ")
            && line.ends_with(" .")
        {
            told.hear(line);
            heard += 1;
        }
        if heard == lines {
            // Wherever it is just now.
            program.kill().unwrap();
        }
    }
    program.wait().unwrap();
    assert!(heard >= lines, "the program has ended by itself");
}

fn check(directory: &Path, told: &mut Told, reads: bool, what: &str) {
    let mut seen = BTreeMap::new();
    if reads {
        let forest = block_on(ReadOnlyForest::open(directory)).unwrap();
        for writer in 0..WRITERS {
            seen.insert(writer, told.check(writer, &forest, what));
        }
    }
    let forest = open(directory);
    for writer in 0..WRITERS {
        let last = told.check(writer, &forest, what);
        if let Some(seen) = seen.get(&writer) {
            assert_eq!(last, *seen, "{what}: a reader saw another tree");
        }
        told.last.insert(writer, last);
    }
}

#[test]
fn soak_a_program_that_is_killed_under_load_keeps_what_it_has_told() {
    let seconds = std::env::var("WEALD_SOAK").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    let directory = tempfile::tempdir().unwrap();
    let (mut told, mut random) = (Told::default(), Random(1));
    for round in 0_u64.. {
        let mut program = start(directory.path(), round);
        let lines = match random.below(5) {
            0 => 1 + random.below(3),
            _ => random.below(400) + 1,
        };
        run(&mut program, lines, &mut told);
        if random.below(3) > 0 {
            let reads = random.below(2) == 0;
            check(
                directory.path(),
                &mut told,
                reads,
                &format!("round {round}"),
            );
        }
        if round >= 5 && Instant::now() >= end {
            eprintln!("killed {} times, {} nodes", round + 1, told.nodes.len());
            return;
        }
    }
}
