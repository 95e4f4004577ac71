//! A large board, durable writes, and many readers of events: what only a board with versions, a journal and live
//! updates has.

use std::path::Path;
use std::time::Instant;

use super::board::{Asking, BENCH, BoardLoad, Sum, at, fill, get, message, post};
use super::listeners::Listeners;
use super::measure::Figure;
use super::served::{Served, allow_descriptors};
use super::slices::Slices;
use super::visitors::Visitors;

/// How many messages are on a page.
const PAGE: usize = 20;
/// Turns in which the boards and versions are read.
const TURNS: usize = 3;
/// How many versions lie between the newest one and the older one that is read: memory has the newest
/// thousand.
const OLDER: u64 = 500;
/// One that only the disk has.
const OLDEST: u64 = 1_500;
/// So many of the messages are written one by one, each of which leaves a version. The others are there before.
const WRITTEN: usize = 2_000;

impl BoardLoad {
    /// What a page of a board with this many messages costs compared with one of a small board: of its newest version,
    /// of an older one, and of one that memory no longer has. The server makes most of its messages by itself
    /// (`messages=N`).
    ///
    /// # Errors
    /// A sentence, if server or system fail.
    pub fn large(&self, messages: usize) -> Result<Vec<Figure>, String> {
        let written = WRITTEN.min(messages.saturating_sub(PAGE));
        let there = [format!("messages={}", messages - written)];
        let words = [&self.words[..], &there].concat();
        let (served, mut visitors) = self.start_with(self.connections, &words)?;
        fill(&mut visitors, "small", PAGE)?;
        self.grow(&served, &mut visitors, written)?;
        let (incarnation, newest) = newest(&mut visitors)?;
        let pages = messages / PAGE;
        let older = |back: u64| {
            let older = newest.saturating_sub(back.min(newest / 2));
            format!("&at={incarnation}.{older}")
        };
        let (older, oldest) = (older(OLDER), older(OLDEST));
        // The first look opens the version.
        let clock = Instant::now();
        let mut request = Vec::new();
        get(&mut request, &format!("{BENCH}?page=1{oldest}"));
        visitors.once(&request)?;
        let opened = clock.elapsed();
        let small = ("/api/boards/small", 1, "");
        let places = [
            small,
            (BENCH, pages, ""),
            // An older version may have fewer pages.
            (BENCH, pages / 2, older.as_str()),
            (BENCH, pages / 2, oldest.as_str()),
        ];
        let mut sums: [Sum; 4] = Default::default();
        for _ in 0..TURNS {
            for (sum, (path, pages, at)) in sums.iter_mut().zip(places) {
                let mut state: u64 = 7;
                let mut ask = |request: &mut Vec<u8>| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let page = 1 + (state >> 33) % pages.max(1) as u64;
                    get(request, &format!("{path}?page={page}{at}"));
                };
                let requests = self.requests.div_ceil(TURNS);
                let asked: Asking<'_> = (&mut ask, |_| true);
                sum.add(self.slice((&served, &mut visitors), asked, requests)?);
            }
        }
        let mut figures = vec![
            ("cpu_s_per_million", 1e6 * sums[1].cpu_per_request()),
            ("p99_us", at(&sums[1].sorted(), 990)),
            ("disk_first_ms", 1e3 * opened.as_secs_f64()),
            ("errors", sums.iter().map(|sum| sum.errors as f64).sum()),
            ("rss_bytes", served.resident()? as f64),
        ];
        let small = sums[0].cpu_per_request();
        // Processor time comes in steps of 10 ms, so a short run may see none.
        if small > 0.0 {
            let names = ["large_ratio", "older_ratio", "disk_ratio"];
            let ratios = sums[1..].iter().map(|sum| sum.cpu_per_request() / small);
            figures.extend(names.into_iter().zip(ratios));
        }
        Ok(figures)
    }

    fn grow(
        &self,
        served: &Served,
        visitors: &mut Visitors,
        messages: usize,
    ) -> Result<(), String> {
        let mut number = 0;
        let mut write = |request: &mut Vec<u8>| {
            number += 1;
            let body =
                format!("{{\"title\":\"Topic {number}\",\"text\":\"Message {number} of many.\"}}");
            post(request, &format!("{BENCH}/messages"), &body);
        };
        let asked: Asking<'_> = (&mut write, |_| true);
        match self.slice((served, visitors), asked, messages)?.errors {
            0 => Ok(()),
            errors => Err(format!("{errors} messages were refused.")),
        }
    }

    /// Durable writes in turns with buffered ones, each to a server of its own with a directory below `dir`.
    ///
    /// # Errors
    /// A sentence, if server or system fail.
    pub fn durable(&self, dir: &Path) -> Result<Vec<Figure>, String> {
        allow_descriptors(2 * self.connections)?;
        let start = |durability: &str| {
            let dir = dir.join(durability);
            let words = [
                format!("durability={durability}"),
                format!("dir={}", dir.display()),
            ];
            let (served, mut visitors) = self.start_with(self.connections, &words)?;
            fill(&mut visitors, "bench", 1)?;
            Ok::<_, String>((served, visitors))
        };
        let mut both = [start("buffered")?, start("durable")?];
        let mut sums: [Sum; 2] = Default::default();
        let mut number = 0;
        let mut write = |request: &mut Vec<u8>| {
            number += 1;
            post(request, &format!("{BENCH}/messages"), &message(number));
        };
        let mut slices = Slices::of(self.requests, self.limit);
        while let Some(counts) = slices.next() {
            for (sum, (served, visitors)) in sums.iter_mut().zip(&mut both) {
                let asked: Asking<'_> = (&mut write, |_| true);
                let made = self.slice((served, visitors), asked, slices.each)?;
                if counts {
                    sum.add(made);
                }
            }
        }
        let [buffered, durable] = sums;
        let mut figures = durable.figures();
        figures.push(("buffered_ratio", durable.rate() / buffered.rate()));
        Ok(figures)
    }

    /// How long a message takes to reach this many readers of a board's events, and the memory of each.
    ///
    /// # Errors
    /// A sentence, if server or system fail, or a reader hears of a message twice.
    pub fn listened(&self, readers: usize) -> Result<Vec<Figure>, String> {
        allow_descriptors(readers)?;
        let (served, mut visitors) = self.start(self.connections)?;
        fill(&mut visitors, "bench", PAGE)?;
        let path = format!("{BENCH}/events");
        let few = readers.div_ceil(10);
        let mut first = Listeners::join(served.address, &path, few)?;
        let before = served.resident()?;
        let mut others = Listeners::join(served.address, &path, readers - few)?;
        let grown = served.resident()?.saturating_sub(before);
        let mut request = Vec::new();
        post(
            &mut request,
            &format!("{BENCH}/messages"),
            "{\"title\":\"New\",\"text\":\"news\"}",
        );
        let mut times = Vec::with_capacity(self.requests);
        for number in 1..=self.requests {
            let clock = Instant::now();
            visitors.once(&request)?;
            first.hear(number)?;
            others.hear(number)?;
            times.push(clock.elapsed());
        }
        times.sort_unstable();
        Ok(vec![
            ("delivered_ms", at(&times, 500) / 1e3),
            ("delivered_worst_ms", at(&times, 1_000) / 1e3),
            (
                "bytes_per_reader",
                grown as f64 / (readers - few).max(1) as f64,
            ),
        ])
    }
}

/// The newest version of the board, whose two numbers have a dot between them.
fn newest(visitors: &mut Visitors) -> Result<(u64, u64), String> {
    let mut request = Vec::new();
    get(&mut request, BENCH);
    let answer = visitors.once(&request)?;
    let text = String::from_utf8_lossy(&answer);
    let version = text
        .split_once("\"version\":\"")
        .map_or("", |(_, rest)| rest);
    let version = version.split('"').next().unwrap_or_default();
    let numbers = version.split_once('.');
    let numbers = numbers
        .and_then(|(incarnation, number)| Some((incarnation.parse().ok()?, number.parse().ok()?)));
    numbers.ok_or_else(|| format!("The board tells no version: {text}"))
}
