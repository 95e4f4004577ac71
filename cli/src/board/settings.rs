//! Settings from a file: TOML, whose keys are the names of the options.

use std::ops::Range;
use std::path::Path;

use weald_lab::error::Error;

use crate::args::board::Board;

/// What a file says; nothing, if there is none.
///
/// # Errors
/// The file cannot be read, or says something that is no setting; the sentence has the file and the line.
pub(super) fn read(path: Option<&Path>) -> Result<Board, Error> {
    let Some(path) = path else {
        return Ok(Board::default());
    };
    let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
    let settings: Board = toml::from_str(&text).map_err(|error| {
        let line = error.span().map(|span| line_of(&text, &span));
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        // Some messages have two lines.
        let told = error.message().replace('\n', "; ");
        Error::Usage(format!("{}{line}: {told}.", path.display()))
    })?;
    if settings.moderator.is_some() && settings.moderator_hash.is_some() {
        let told = "moderator and moderator-hash exclude each other";
        return Err(Error::Usage(format!("{}: {told}.", path.display())));
    }
    Ok(settings)
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.get(..span.start).unwrap_or(text);
    before.bytes().filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::ffi::OsStr;
    use std::time::Duration;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::board::{Durability, LogLevel};
    use crate::args::{Args, Command};

    fn of_text(text: &str) -> Result<Board, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("board.toml");
        std::fs::write(&path, text).unwrap();
        read(Some(&path)).map_err(|error| error.to_string())
    }

    /// Without the variables, which are the same for all tests of this program.
    fn of_words(words: &[&str]) -> Board {
        let words = ["weald", "board"].iter().chain(words);
        match Args::try_parse_from(words).unwrap().command {
            Command::Board(board) => board,
            _ => unreachable!("the words say board"),
        }
    }

    #[test]
    fn every_option_can_stand_in_a_file() {
        let file = of_text(
            "directory = \"/srv/board\"\naddr = \"0.0.0.0:80\"\norigin = \"https://tea.example\"\ntitle = \"Tea\"\ndurability = \"buffered\"\n\
             reads = 5\nwrites = 6\nproxy = [\"127.0.0.0/8\", \"::1\"]\nmoderator = \"/etc/moderators\"\n\
             requests = 7\nreaders = 8\nreaders-per-address = 9\ndrain = 1.5\nmetrics-open = true\nget-writes = true\nlog = \"warn\"\nlog-json = true\n",
        );
        let file = file.unwrap();
        let words = of_words(&[
            "/srv/board",
            "--addr=0.0.0.0:80",
            "--origin=https://tea.example",
            "--title=Tea",
            "--durability=buffered",
            "--reads=5",
            "--writes=6",
            "--proxy=127.0.0.0/8,::1",
            "--moderator=/etc/moderators",
            "--requests=7",
            "--readers=8",
            "--readers-per-address=9",
            "--drain=1.5",
            "--metrics-open",
            "--get-writes",
            "--log=warn",
            "--log-json",
        ]);
        assert_eq!(file, words);
        assert_eq!(file.drain, Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn every_option_is_a_variable_too() {
        let command = Args::command();
        let board = command.find_subcommand("board").unwrap();
        let options = board.get_arguments().map(|option| {
            let name = option.get_id().as_str().to_uppercase();
            let name = if name == "DIRECTORY" { "DIR" } else { &name };
            (format!("WEALD_BOARD_{name}"), option.get_env())
        });
        let (with, without): (Vec<_>, Vec<_>) = options.partition(|(_, env)| env.is_some());
        assert!(with.len() > 15, "{with:?}");
        for (name, env) in with {
            assert_eq!(env, Some(OsStr::new(&name)));
        }
        // A demo keeps nothing, so nobody starts it again and again.
        let without: Vec<_> = without.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(without, ["WEALD_BOARD_DEMO"]);
    }

    #[test]
    fn an_option_wins_over_the_file() {
        let file = "directory = \"a\"\naddr = \"127.0.0.1:1\"\nproxy = [\"10.0.0.1\"]\nmoderator = \"m\"\nlog-json = true";
        let words = [
            "--addr=127.0.0.1:2",
            "--proxy=10.0.0.2",
            "--moderator-hash=x",
            "--log-json=false",
        ];
        let both = of_words(&words).or(of_text(file).unwrap());
        assert_eq!(both.directory, Some("a".into()));
        assert_eq!(both.addr, "127.0.0.1:2".parse().ok());
        assert_eq!(
            both.proxy,
            ["10.0.0.2".parse::<weald_board::Network>().unwrap()]
        );
        assert_eq!((both.moderator, both.log_json), (None, Some(false)));
        let demo = of_words(&["--demo"]).or(of_text(file).unwrap());
        assert_eq!(demo.directory, None);
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_line() {
        for (text, told) in [
            (
                "title = \"Tea\"\nadr = \"x\"\n",
                "line 2: unknown field `adr`",
            ),
            ("\n\naddr = \"nowhere\"", "line 3: invalid socket address"),
            ("reads = -1", "line 1: invalid value"),
            ("durability = \"half\"", "line 1: unknown variant `half`"),
            (
                "title = \"Tea\"\ndrain = 0",
                "line 2: it must be a number of seconds above zero",
            ),
            ("drain = 1e99", "and at most 1000000000"),
            ("title = \" \"", "line 1: a title is one line"),
            ("title = \"a\\u0000\"", "line 1: a title is one line"),
            ("origin = \"tea\"", "line 1: `tea` is not an origin"),
            ("title = Tea", "line 1: "),
            (
                "addr = \"127.0.0.1:1\"\nproxy = [\"10.0.0.0/33\"]",
                "line 2: `10.0.0.0/33` needs a number of bits",
            ),
            ("title = \"a\"\ntitle = \"b\"", "line 2: duplicate key"),
            ("demo = true", "line 1: unknown field `demo`"),
            (
                "moderator = \"a\"\nmoderator-hash = \"b\"",
                "exclude each other",
            ),
        ] {
            let error = of_text(text).unwrap_err();
            assert!(
                error.contains(told) && error.contains("board.toml"),
                "{error}"
            );
            assert!(!error.contains('\n') && error.ends_with('.'), "{error}");
        }
        assert!(read(Some(Path::new("/nowhere.toml"))).is_err());
        assert_eq!(read(None).unwrap(), Board::default());
        assert_eq!(of_text("log = \"off\"").unwrap().log, Some(LogLevel::Off));
        let durable = of_text("durability = \"durable\"").unwrap();
        assert_eq!(durable.durability, Some(Durability::Durable));
    }
}
