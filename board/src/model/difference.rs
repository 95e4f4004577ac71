//! The difference of two texts, word by word: what stayed, what went and what came.

use std::ops::Range;

/// The most pairs of words that are compared. Beyond that, everything between the common ends counts as
/// gone and new.
const MOST: usize = 250_000;

/// A part of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// It is in both texts.
    Same(&'a str),
    /// It is in the old text only.
    Gone(&'a str),
    /// It is in the new text only.
    New(&'a str),
}

/// The difference of two texts. The pieces that are not `New` are the old text, those that are not `Gone` the new one.
///
/// ```
/// use weald_board::model::{Piece, difference};
///
/// let pieces = difference("a cup of tea", "a pot of tea");
/// assert_eq!(pieces, [Piece::Same("a "), Piece::Gone("cup"), Piece::New("pot"), Piece::Same(" of tea")]);
/// ```
pub fn difference<'a>(old: &'a str, new: &'a str) -> Vec<Piece<'a>> {
    let (olds, news) = (words(old), words(new));
    let same = |(one, other): &(&Range<usize>, &Range<usize>)| {
        old[(*one).clone()] == new[(*other).clone()]
    };
    let before = olds.iter().zip(&news).take_while(same).count();
    let rest = olds.len().min(news.len()) - before;
    let after = olds
        .iter()
        .rev()
        .zip(news.iter().rev())
        .take(rest)
        .take_while(same)
        .count();
    let (middle_old, middle_new) = (
        &olds[before..olds.len() - after],
        &news[before..news.len() - after],
    );
    let mut pieces = Pieces {
        old,
        new,
        pieces: Vec::new(),
    };
    olds[..before].iter().for_each(|word| pieces.same(word));
    pieces.middle(middle_old, middle_new);
    olds[olds.len() - after..]
        .iter()
        .for_each(|word| pieces.same(word));
    pieces.joined()
}

/// The words of a text, and what is between them, each as a range of bytes.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut last = None;
    for (at, c) in text.char_indices() {
        let is_of_word = c.is_alphanumeric();
        let end = at + c.len_utf8();
        match words.last_mut() {
            Some(word) if is_of_word && last == Some(true) => word.end = end,
            _ => words.push(at..end),
        }
        last = Some(is_of_word);
    }
    words
}

struct Pieces<'a> {
    old: &'a str,
    new: &'a str,
    pieces: Vec<(PieceKind, Range<usize>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Same,
    Gone,
    New,
}

impl<'a> Pieces<'a> {
    fn same(&mut self, word: &Range<usize>) {
        self.pieces.push((PieceKind::Same, word.clone()));
    }

    /// By the longest common subsequence.
    fn middle(&mut self, olds: &[Range<usize>], news: &[Range<usize>]) {
        let (rows, columns) = (olds.len(), news.len());
        if rows.saturating_mul(columns) > MOST {
            self.pieces
                .extend(olds.iter().map(|word| (PieceKind::Gone, word.clone())));
            self.pieces
                .extend(news.iter().map(|word| (PieceKind::New, word.clone())));
            return;
        }
        let width = columns + 1;
        let is_same = |row: usize, column: usize| {
            self.old[olds[row].clone()] == self.new[news[column].clone()]
        };
        let mut common = vec![0_u32; (rows + 1) * width];
        for row in (0..rows).rev() {
            for column in (0..columns).rev() {
                common[row * width + column] = match is_same(row, column) {
                    true => common[(row + 1) * width + column + 1] + 1,
                    false => {
                        common[(row + 1) * width + column].max(common[row * width + column + 1])
                    }
                };
            }
        }
        let (mut row, mut column) = (0, 0);
        let mut pieces = Vec::with_capacity(rows + columns);
        while row < rows || column < columns {
            if row < rows && column < columns && is_same(row, column) {
                pieces.push((PieceKind::Same, olds[row].clone()));
                (row, column) = (row + 1, column + 1);
            } else if row < rows
                && (column == columns
                    || common[(row + 1) * width + column] >= common[row * width + column + 1])
            {
                pieces.push((PieceKind::Gone, olds[row].clone()));
                row += 1;
            } else {
                pieces.push((PieceKind::New, news[column].clone()));
                column += 1;
            }
        }
        self.pieces.extend(pieces);
    }

    /// Joins neighbours of one kind to one piece; between two pieces that stay, the gone one stands
    /// before the new one.
    fn joined(self) -> Vec<Piece<'a>> {
        let mut runs: Vec<(PieceKind, Range<usize>)> = Vec::new();
        let mut changed = 0;
        for (kind, word) in self.pieces {
            let from = match kind {
                PieceKind::Same => runs.len().saturating_sub(1),
                _ => changed,
            };
            match runs[from..]
                .iter_mut()
                .find(|(of, run)| *of == kind && run.end == word.start)
            {
                Some((_, run)) => run.end = word.end,
                None if kind == PieceKind::Gone => {
                    // Before what came in the same place.
                    let at = runs[changed..]
                        .iter()
                        .position(|(of, _)| *of == PieceKind::New);
                    runs.insert(at.map_or(runs.len(), |at| changed + at), (kind, word));
                }
                None => runs.push((kind, word)),
            }
            if kind == PieceKind::Same {
                changed = runs.len();
            }
        }
        let (old, new) = (self.old, self.new);
        let piece = |(kind, range): (PieceKind, Range<usize>)| match kind {
            PieceKind::Same => Piece::Same(&old[range]),
            PieceKind::Gone => Piece::Gone(&old[range]),
            PieceKind::New => Piece::New(&new[range]),
        };
        runs.into_iter().map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(pieces: &[Piece<'_>]) -> (String, String) {
        let (mut old, mut new) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Same(text) => {
                    old += text;
                    new += text;
                }
                Piece::Gone(text) => old += text,
                Piece::New(text) => new += text,
            }
        }
        (old, new)
    }

    #[test]
    fn the_pieces_are_both_texts() {
        let texts = [
            "",
            "a",
            "a b",
            "b a",
            "the cat sat",
            "the dog sat down",
            "tea,tea,tea",
            "ä ö\nü",
            "  a  ",
        ];
        for old in texts {
            for new in texts {
                let pieces = difference(old, new);
                assert_eq!(
                    sides(&pieces),
                    (old.to_owned(), new.to_owned()),
                    "{pieces:?}"
                );
                let is_doubled = pieces.windows(2).any(|pair| {
                    std::mem::discriminant(&pair[0]) == std::mem::discriminant(&pair[1])
                });
                assert!(!is_doubled, "{pieces:?}");
            }
        }
        assert_eq!(difference("a", "a"), [Piece::Same("a")]);
    }

    #[test]
    fn long_texts_are_compared_at_their_ends() {
        let (old, new) = ("a ".repeat(4_000), "b ".repeat(4_000));
        let (old, new) = (format!("one {old}two"), format!("one {new}two"));
        let pieces = difference(&old, &new);
        assert_eq!(sides(&pieces), (old.clone(), new.clone()));
        assert_eq!(pieces.len(), 4);
    }
}
