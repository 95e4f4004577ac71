//! A program is killed while its threads commit, again and again: what it was told is durable is there.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use pollster::block_on;
use weald_forest::Attributes;
use weald_journal::DiskForest;

/// Tells the test below that it is the program, and where its forest is.
const CHILD: &str = "WEALD_TEST_KILLED_FOREST";

/// Not a test of its own: the program that is killed. Each of its threads says what was acknowledged.
#[test]
fn the_program_that_is_killed() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let forest = block_on(DiskForest::open(directory)).unwrap();
    thread::scope(|scope| {
        for writer in ["a", "b", "c"] {
            let forest = &forest;
            scope.spawn(move || {
                let tree = match forest.get(writer) {
                    Ok(tree) => tree,
                    Err(_) => block_on(forest.create(writer)).unwrap(),
                };
                loop {
                    let mut edit = tree.edit();
                    let root = edit.root();
                    edit.append(root, Attributes::new().with("by", writer))
                        .unwrap();
                    let len = edit.tree().len();
                    block_on(edit.commit()).unwrap();
                    println!("acknowledged {writer} {len}");
                }
            });
        }
    });
}

#[test]
fn what_a_killed_program_had_acknowledged_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = [("a", 0), ("b", 0), ("c", 0)];
    for round in 1..=4 {
        let mut program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::the_program_that_is_killed", "--nocapture"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines {
            let line = line.unwrap();
            let Some((_, line)) = line.split_once("acknowledged ") else {
                continue;
            };
            // The last line may be cut off by the kill.
            if let Some((writer, len)) = line.split_once(' ')
                && let Ok(len) = len.parse::<u64>()
                && let Some(known) = acknowledged.iter_mut().find(|(name, _)| *name == writer)
                && seen < 30 * round
            {
                known.1 = known.1.max(len);
            }
            seen += 1;
            if seen == 30 * round {
                program.kill().unwrap();
            }
        }
        program.wait().unwrap();
        assert!(
            seen >= 30 * round,
            "round {round}: only {seen} were acknowledged"
        );
        let forest = block_on(DiskForest::open(directory.path())).unwrap();
        for (writer, len) in acknowledged {
            if len == 0 {
                continue;
            }
            let found = forest.get(writer).unwrap().view().tree().len();
            assert!(found >= len, "round {round}: {found} of {len}");
        }
    }
}
