//! Measures what forking costs and gains: `fork_figures WORKLOAD WORKERS RUNS`, with 0 workers for plain calls.

use std::{hint::black_box, time::Instant};

use weald_kernel::{Runtime, fork::join, spawn};

fn fib_serial(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    fib_serial(n - 1) + fib_serial(n - 2)
}

fn fib(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

fn partition(v: &mut [u32]) -> usize {
    let (mid, last) = (v.len() / 2, v.len() - 1);
    v.swap(mid, last);
    let pivot = v[last];
    let mut store = 0;
    for i in 0..last {
        if v[i] < pivot {
            v.swap(i, store);
            store += 1;
        }
    }
    v.swap(store, last);
    store
}

fn quicksort(v: &mut [u32], forks: bool) {
    if v.len() <= 400 {
        return v.sort_unstable();
    }
    let mid = partition(v);
    let (left, right) = v.split_at_mut(mid);
    let right = &mut right[1..];
    match forks {
        true => {
            join(|| quicksort(left, true), || quicksort(right, true));
        }
        false => {
            quicksort(left, false);
            quicksort(right, false);
        }
    }
}

fn heavy(units: u64) -> u64 {
    (0..units).fold(1, |x, i| black_box(x * 6_364_136_223_846_793_005 + i))
}

/// The left half goes down without doing anything, each right half is heavy.
fn deep(n: u32, units: u64, forks: bool) -> u64 {
    if n == 0 {
        return 1;
    }
    let (left, right) = match forks {
        true => join(|| deep(n - 1, units, true), || heavy(units)),
        false => (deep(n - 1, units, false), heavy(units)),
    };
    left ^ right
}

/// As above, but only one right half, far down, is heavy, and what is left of it.
fn one_heavy(n: u32, at: u32, units: u64, forks: bool) -> u64 {
    if n == 0 {
        return heavy(units);
    }
    let right = move || if n == at { heavy(units) } else { 1 };
    let (left, right) = match forks {
        true => join(|| one_heavy(n - 1, at, units, true), right),
        false => (one_heavy(n - 1, at, units, false), right()),
    };
    left ^ right
}

fn nqueens(n: usize, board: &[u8], forks: bool) -> u64 {
    if board.len() == n {
        return 1;
    }
    try_columns(n, board, 0, n, forks)
}

fn try_columns(n: usize, board: &[u8], from: usize, to: usize, forks: bool) -> u64 {
    if to - from == 1 {
        let row = board.len();
        let safe = board
            .iter()
            .enumerate()
            .all(|(r, &c)| usize::from(c) != from && usize::from(c).abs_diff(from) != row - r);
        if !safe {
            return 0;
        }
        let mut next = board.to_vec();
        next.push(u8::try_from(from).expect("a small board"));
        return nqueens(n, &next, forks);
    }
    let mid = usize::midpoint(from, to);
    let (a, b) = match forks {
        true => join(
            || try_columns(n, board, from, mid, true),
            || try_columns(n, board, mid, to, true),
        ),
        false => (
            try_columns(n, board, from, mid, false),
            try_columns(n, board, mid, to, false),
        ),
    };
    a + b
}

fn random(n: usize) -> Vec<u32> {
    let mut state = 1_u64;
    let draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from(state >> 32).expect("32 bits")
    };
    std::iter::repeat_with(draw).take(n).collect()
}

fn once(workload: &str, forks: bool) -> f64 {
    let mut v = if workload == "quicksort" {
        random(10_000_000)
    } else {
        Vec::new()
    };
    let start = Instant::now();
    match workload {
        "fib" if forks => drop(black_box(fib(black_box(38)))),
        "fib" => drop(black_box(fib_serial(black_box(38)))),
        "quicksort" => quicksort(&mut v, forks),
        "deep" => drop(black_box(deep(1000, 200_000, forks))),
        "one" => drop(black_box(one_heavy(10_000, 3_000, 100_000_000, forks))),
        "nqueens" => drop(black_box(nqueens(11, &[], forks))),
        other => panic!("no workload `{other}`"),
    }
    let took = start.elapsed().as_secs_f64() * 1e3;
    assert!(v.is_sorted());
    took
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workload, workers, runs] = &arguments[..] else {
        panic!("fork_figures WORKLOAD WORKERS RUNS");
    };
    let workers: usize = workers.parse().expect("a number of workers");
    let runs: usize = runs.parse().expect("a number of runs");
    let mut times: Vec<f64> = match workers {
        0 => (0..runs).map(|_| once(workload, false)).collect(),
        _ => {
            let runtime = Runtime::builder()
                .workers(workers)
                .build()
                .expect("threads");
            let workload = workload.clone();
            let job = async move { (0..runs).map(|_| once(&workload, true)).collect() };
            let times = runtime.block_on(async { spawn(job).await.expect("no panic") });
            println!("cores: {:.0?}", core_times());
            times
        }
    };
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[(times.len() - 1) * part / 2];
    println!(
        "{workload} {workers}: {:.0} / {:.0} / {:.0} ms",
        at(0),
        at(1),
        at(2)
    );
}

/// Time on a core of each thread of the program in milliseconds: what a busy machine does not falsify.
fn core_times() -> Vec<f64> {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux");
    let time = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
        Some(nanoseconds / 1e6)
    };
    threads.filter_map(time).collect()
}
