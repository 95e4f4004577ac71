// The rival Node.js: callbacks of setTimeout on the one thread that runs JavaScript.
//
// Invariants: the number of workers is read and changes nothing; metrics go to stdout with exit code 0, an
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

// RssAnon and RssShmem of /proc/self/status, in bytes.
function rssBytes() {
  globalThis.gc();
  const status = fs.readFileSync("/proc/self/status", "utf8");
  const kilobytes = [...status.matchAll(/^Rss(?:Anon|Shmem):\s*(\d+)/gm)];
  return kilobytes.reduce((sum, match) => sum + 1024 * Number(match[1]), 0);
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
  const points = [];
  let made = 0;
  for (let step = 0; step <= 8; step++) {
    const size = Math.floor((n * step) / 8);
    if (step > 0 && size === made) continue;
    for (; made < size; made++) start(made);
    await sleep(SETTLE_MS);
    points.push([size, rssBytes()]);
  }
  printLine(points);
}

// Prints the least-squares line through numbers of callbacks and resident memories.
function printLine(points) {
  const mean = (of) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const middle = mean(([x]) => x), level = mean(([, y]) => y);
  const along = mean(([x, y]) => (x - middle) * (y - level));
  const perOne = along / mean(([x]) => (x - middle) ** 2);
  const intercept = level - perOne * middle;
  const width = mean(([, y]) => (y - level) ** 2);
  const beside = mean(([x, y]) => (y - intercept - perOne * x) ** 2);
  const squared = width > 0 ? 1 - beside / width : 1;
  printMetrics([
    ["bytes_per_callback", perOne],
    ["intercept_bytes", intercept],
    ["r", Math.sqrt(Math.max(squared, 0))],
    ["r2", squared],
  ]);
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

function keysOf(pairs) {
  const keys = new Map();
  for (const pair of pairs) {
    const [key, value] = pair.split("=");
    if (value === undefined) badUsage(`The argument \`${pair}\` is not of the form key=value.`);
    if (keys.has(key)) badUsage(`The key \`${key}\` is given twice: give it once.`);
    keys.set(key, value);
  }
  return keys;
}

function take(keys, key) {
  const value = keys.get(key);
  if (value === undefined) badUsage(`The key \`${key}\` is missing: give it as ${key}=VALUE.`);
  keys.delete(key);
  return value;
}

function number(keys, key) {
  const value = Number(take(keys, key));
  if (!Number.isInteger(value) || value < 1) {
    badUsage(`The key \`${key}\` takes a whole number of at least 1.`);
  }
  return value;
}

function workloadOf(name, keys) {
  if (name === "timers") {
    const pending = number(keys, "pending");
    return () => timers(pending);
  }
  if (name !== "callbacks") badUsage(`The workload \`${name}\` is unknown: see the README.`);
  const n = number(keys, "n");
  const start = { once: sleepOnce, loop: sleepInLoop }[take(keys, "kind")];
  if (start === undefined) badUsage("The key `kind` takes `once` or `loop`.");
  return () => callbacks(n, start);
}

function main([name, ...pairs]) {
  if (name === undefined) {
    badUsage("No workload is given: call it as WORKLOAD key=value ..., or with --version.");
  }
  if (name === "--version") {
    process.stdout.write(`Node.js ${process.version.slice(1)}\n`);
    return;
  }
  const keys = keysOf(pairs);
  const workload = workloadOf(name, keys);
  number(keys, "workers");
  for (const key of keys.keys()) {
    badUsage(`The key \`${key}\` does not belong to this workload: leave it out.`);
  }
  workload().catch((error) => fail(`The workload crashed: ${error}.`));
}

main(process.argv.slice(2));
