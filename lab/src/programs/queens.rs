//! The number of ways to place n queens on a board of n by n without a threat. There is no cut-off, so
//! the forks at the leaves have almost no work.

use super::fork::Fork;
use super::measure::Program;

/// The numbers of solutions for boards of 1, 2, 3 ... rows.
const SOLUTIONS: [u64; 16] = [
    1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2_680, 14_200, 73_712, 365_596, 2_279_184, 14_772_512,
];

/// One board to solve.
#[derive(Clone, Copy, Debug)]
pub struct Queens {
    n: usize,
    answer: u64,
}

/// The columns of the queens in the first rows; each half gets a copy.
#[derive(Clone, Copy)]
struct Board {
    columns: [u8; SOLUTIONS.len()],
    rows: usize,
    n: usize,
}

impl Queens {
    /// A board of `n` rows; `None` above 16.
    #[must_use]
    pub fn of(n: usize) -> Option<Self> {
        (1..=SOLUTIONS.len())
            .contains(&n)
            .then_some(Self { n, answer: 0 })
    }
}

impl Program for Queens {
    fn reset(&mut self) {
        self.answer = 0;
    }

    fn run<F: Fork>(&mut self, scope: &mut F::Scope<'_>) {
        let empty = Board {
            columns: [0; SOLUTIONS.len()],
            rows: 0,
            n: self.n,
        };
        self.answer = solutions::<F>(scope, empty);
    }

    fn check(&self) -> Result<(), String> {
        let (n, answer, right) = (self.n, self.answer, SOLUTIONS[self.n - 1]);
        if answer == right {
            return Ok(());
        }
        Err(format!(
            "{n} queens can be placed in {right} ways, but {answer} were found."
        ))
    }
}

fn solutions<F: Fork>(scope: &mut F::Scope<'_>, board: Board) -> u64 {
    if board.rows == board.n {
        return 1;
    }
    let mut free = [0; SOLUTIONS.len()];
    let mut count = 0;
    for column in (0..).take(board.n) {
        if board.is_free(column) {
            free[count] = column;
            count += 1;
        }
    }
    among::<F>(scope, board, &free[..count])
}

/// The number of solutions with a queen in one of these columns of the next row.
fn among<F: Fork>(scope: &mut F::Scope<'_>, board: Board, columns: &[u8]) -> u64 {
    match columns {
        [] => 0,
        [column] => solutions::<F>(scope, board.with(*column)),
        _ => {
            let (left, right) = columns.split_at(columns.len() / 2);
            let (a, b) = F::join(
                scope,
                |scope| among::<F>(scope, board, left),
                |scope| among::<F>(scope, board, right),
            );
            a + b
        }
    }
}

impl Board {
    fn is_free(&self, column: u8) -> bool {
        let queens = self.columns[..self.rows].iter().rev();
        (1..).zip(queens).all(|(distance, queen)| {
            *queen != column && *queen + distance != column && column + distance != *queen
        })
    }

    fn with(mut self, column: u8) -> Self {
        self.columns[self.rows] = column;
        self.rows += 1;
        self
    }
}
