//! Finds the known name nearest to a mistyped one, for error sentences.

/// How many letters must change to turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let target: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=target.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in target.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[target.len()]
}

/// The known name that is close enough to `word` to be the intended one.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count().div_ceil(2);
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(far, _)| *far <= limit)
        .min()
        .map(|(_, name)| name)
}

/// A sentence that says what is unknown, what was probably meant, and what exists.
#[must_use]
pub fn unknown(kind: &str, word: &str, known: &[&str]) -> String {
    let meant = match nearest(word, known.iter().copied()) {
        Some(name) => format!(" Did you mean '{name}'?"),
        None => String::new(),
    };
    format!(
        "There is no {kind} '{word}'.{meant} Choose one of: {}.",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_changed_letters() {
        assert_eq!(distance("spawn", "spawn"), 0);
        assert_eq!(distance("spwan", "spawn"), 2);
        assert_eq!(distance("", "ring"), 4);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["spawn", "ring", "fan-in"];
        assert_eq!(nearest("spwan", known), Some("spawn"));
        assert_eq!(nearest("fanin", known), Some("fan-in"));
        assert_eq!(nearest("zzzzzzz", known), None);
    }
}
