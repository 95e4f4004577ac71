//! Notes on disk, with undo, redo, history, and the notes as they were: what was undone stays in the history.
//!
//! `cargo run -p weald --example notes -- DIR add milk`, and then `edit 2 "oat milk"`, `undo`, `redo`, `delete 2`,
//! `list`, `history`, `history 2`, `as-of 60` (seconds ago) or `as-of VERSION`

use std::{
    error::Error,
    time::{Duration, SystemTime},
};

use weald::forest::{
    Attributes, Edit, Snapshot, Tree, TreeHandle, Version,
    disk::{DiskForest, Moment, ReadOnlyForest},
};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "notes DIR add TEXT | edit ID TEXT | delete ID | undo | redo | list | history [ID] | as-of MOMENT";

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [directory, command @ ..] = &arguments[..] else {
        return Err(USAGE.into());
    };
    weald::block_on(async {
        match command {
            ["list" | "history" | "as-of", ..] => read(directory, command).await,
            _ => change(directory, command).await,
        }
    })
}

/// Takes no lock and leaves no file, so it may run beside a change.
async fn read(directory: &str, command: &[&str]) -> Outcome {
    let forest = match command {
        ["as-of", moment] => ReadOnlyForest::at(directory, parse_moment(moment)?).await?,
        _ => ReadOnlyForest::open(directory).await?,
    };
    let notes = forest.get("notes")?;
    match command {
        ["history"] => print_history(&notes.versions()),
        ["history", note] => {
            let mut newest_first = notes.history(note.parse()?);
            newest_first.reverse();
            print_history(&newest_first);
        }
        ["list"] | ["as-of", _] => print_notes(notes.view().tree()),
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

async fn change(directory: &str, command: &[&str]) -> Outcome {
    let forest = DiskForest::open(directory).await?;
    let notes = forest.get_or_create("notes").await?;
    let edit = match command {
        ["undo" | "redo"] => take_back(&notes, command[0])?,
        _ => {
            let mut edit = notes.edit();
            apply(&mut edit, command)?;
            edit
        }
    };
    // The commit says what it did: the history shows it, and the next undo finds what to take back.
    let what: String = command.join(" ").chars().take(200).collect();
    let committed = edit.commit().bytes(what.as_bytes()).await?;
    println!("{}", committed.version);
    Ok(())
}

fn apply(edit: &mut Edit, command: &[&str]) -> Outcome {
    match command {
        ["add", text] => {
            edit.append(edit.root(), Attributes::new().with("text", text))?;
        }
        ["edit", note, text] => edit.put_attribute(note.parse()?, "text", text)?,
        ["delete", note] => edit.delete(note.parse()?)?,
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// An undo reverts the last change, and a redo the last undo.
fn take_back(notes: &TreeHandle, what: &str) -> Outcome<Edit> {
    let (undo, redo) = stacks(&notes.versions());
    let next = match what {
        "undo" => undo.last(),
        _ => redo.last(),
    };
    let version = next.ok_or_else(|| format!("there is nothing to {what}"))?;
    Ok(notes.revert(*version)?)
}

/// What can be undone and redone; the last of each is next.
fn stacks(history: &[Snapshot]) -> (Vec<Version>, Vec<Version>) {
    let (mut undo, mut redo) = (Vec::new(), Vec::new());
    for made in history {
        match made.bytes() {
            // The first version: the notes were created.
            b"" => {}
            b"undo" => {
                undo.pop();
                redo.push(made.version());
            }
            b"redo" => {
                redo.pop();
                undo.push(made.version());
            }
            _ => {
                redo.clear();
                undo.push(made.version());
            }
        }
    }
    (undo, redo)
}

fn parse_moment(text: &str) -> Outcome<Moment> {
    match text.parse() {
        Ok(seconds) => Ok(Moment::Time(
            SystemTime::now() - Duration::from_secs(seconds),
        )),
        Err(_) => Ok(Moment::Version(text.parse()?)),
    }
}

fn print_notes(tree: &Tree) {
    for note in tree.root().children() {
        println!("{} {}", note.id(), note.get_str("text").unwrap_or_default());
    }
}

fn print_history(versions: &[Snapshot]) {
    for made in versions {
        let ago = made.time().elapsed().unwrap_or_default().as_secs();
        let what = String::from_utf8_lossy(made.bytes());
        println!("{}, {ago} s ago: {what}", made.version());
    }
}
