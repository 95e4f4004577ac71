//! A file with the settings of a board: a failure says what is wrong; what is read is within its bounds, and an option
//! wins over it.
//!
//! The files of the program are compiled in here, because a program is no library.

#![no_main]
#![allow(dead_code, reason = "the file has more than is tried here")]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;

#[path = "../../cli/src/args/board.rs"]
mod board;

use board::Board;

/// Stands for the program's own, which reads an option on the command line.
fn seconds(text: &str) -> Result<Duration, String> {
    let value = text.parse::<f64>().map_err(|error| error.to_string())?;
    board::duration(value).map_err(str::to_owned)
}

fuzz_target!(|text: &str| {
    let read = |text| toml::from_str::<Board>(text);
    let settings = match read(text) {
        Ok(settings) => settings,
        Err(error) => return assert!(!error.message().is_empty()),
    };
    assert!(
        !settings.demo && settings.config.is_none(),
        "a file cannot say these"
    );
    if let Some(drain) = settings.drain {
        assert!(!drain.is_zero() && drain <= Duration::from_secs(1_000_000_000));
    }
    if let Some(title) = &settings.title {
        assert!((1..=60).contains(&title.chars().count()) && title.trim() == title);
    }
    let again = read(text).expect("it was read before");
    assert_eq!(Board::default().or(again), settings, "nothing is lost");
    let options = Board {
        reads: Some(7),
        ..Board::default()
    };
    assert_eq!(options.or(settings).reads, Some(7), "an option wins");
});
