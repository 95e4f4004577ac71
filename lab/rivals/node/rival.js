// The rival Node.js: callbacks of setTimeout on the one thread that runs JavaScript.
//
// rival-start (common/src/start.rs) checks the keys and puts them into the environment, and says what the program may
// ask it.
//
// Invariants: the number of workers changes nothing; metrics go to stdout with exit code 0, an
// error is one sentence on stderr with exit code 1, or 2 for bad usage. Memory is read after a garbage
// collection, for which the program is started with --expose-gc.
"use strict";

const fs = require("node:fs");

// Node refuses timeouts longer than 24.8 days; this is an hour.
const HOUR_MS = 3_600_000;
const SETTLE_MS = 20;
const SPREAD_MS = 2000;

function fail(sentence, code = 1) {
  process.stderr.write(`${sentence}\n`);
  process.exit(code);
}

function badUsage(sentence) {
  fail(sentence, 2);
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// Tells the starter that this program holds so many things, and waits while it reads the memory.
function at(size) {
  globalThis.gc();
  fs.writeSync(1, `at ${size}\n`);
  fs.readSync(0, Buffer.alloc(1));
}

function printMetrics(metrics) {
  const lines = metrics.map(([name, value]) => `${name} ${value.toFixed(3)}\n`);
  fs.writeSync(1, lines.join(""));
  process.exit(0);
}

let used = 0;

// Starts a callback that runs once after an hour and holds two numbers.
function sleepOnce(index) {
  const [first, second] = [index, index + 1];
  setTimeout(() => { used += first + second; }, HOUR_MS);
}

// Starts a loop: each round ends with a sleep, whose callback is the next round.
function sleepInLoop(index) {
  const round = () => {
    used += index;
    setTimeout(round, HOUR_MS);
  };
  round();
}

async function callbacks(n, start) {
  let made = 0;
  for (let step = 0; step <= 8; step++) {
    const size = Math.floor((n * step) / 8);
    if (step > 0 && size === made) continue;
    for (; made < size; made++) start(made);
    await sleep(SETTLE_MS);
    at(size);
  }
  process.exit(0);
}

async function timers(pending) {
  const handles = new Array(pending);
  let started = 0, stopped = 0;
  // The first round touches the memory and wakes the compiler; the last one counts.
  for (let round = 0; round < 3; round++) {
    let clock = process.hrtime.bigint();
    for (let i = 0; i < pending; i++) {
      const [first, second] = [i, i + 1];
      handles[i] = setTimeout(() => { used += first + second; }, HOUR_MS);
    }
    started = Number(process.hrtime.bigint() - clock) / pending;
    clock = process.hrtime.bigint();
    for (let i = 0; i < pending; i++) clearTimeout(handles[i]);
    stopped = Number(process.hrtime.bigint() - clock) / pending;
    await sleep(SETTLE_MS);
  }
  handles.fill(undefined);
  printMetrics([
    ["ns_per_after", started],
    ["ns_per_stop", stopped],
    ["lateness_p99_us", await lateness(pending)],
  ]);
}

// The lateness in microseconds that 99 of 100 timers do not exceed. Nothing computes beside them, because
// there is one thread.
async function lateness(pending) {
  const late = new Float64Array(pending);
  let ran = 0;
  const start = performance.now() + 500 + pending / 500;
  for (let i = 0; i < pending; i++) {
    const due = start + (((i * 7919) % pending) * SPREAD_MS) / pending;
    setTimeout(() => { late[ran++] = performance.now() - due; }, due - performance.now());
  }
  while (ran < pending) await sleep(50);
  late.sort();
  return 1000 * Math.max(late[Math.ceil(pending * 0.99) - 1], 0);
}

function workloadOf(name) {
  if (name === "timers") return () => timers(Number(process.env.pending));
  if (name !== "callbacks") badUsage(`The workload \`${name}\` is unknown: see the README.`);
  const start = { once: sleepOnce, loop: sleepInLoop }[process.env.kind];
  if (start === undefined) badUsage("The key `kind` takes `once` or `loop`.");
  return () => callbacks(Number(process.env.n), start);
}

function main([name]) {
  if (name === undefined) badUsage("No workload is given: let rival-start call it, or give --version.");
  if (name === "--version") {
    process.stdout.write(`Node.js ${process.version.slice(1)}\n`);
    return;
  }
  workloadOf(name)().catch((error) => fail(`The workload crashed: ${error}.`));
}

main(process.argv.slice(2));
