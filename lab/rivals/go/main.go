// The rival Go: processes are goroutines, mailboxes are buffered channels.
//
// Invariants: GOMAXPROCS is the number of workers; metrics go to stdout, an error is one sentence
// on stderr with exit code 1, or 2 for bad usage. main runs one workload and ends the program
// without waiting for goroutines that are still alive.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// keys are the key=value arguments.
type keys map[string]string

// workloads holds all that this rival can do, each with its keys besides workers.
var workloads = map[string]struct {
	keys string
	run  func(keys)
}{
	"spawn":        {"n", spawn},
	"ring":         {"n m tokens", ring},
	"mailbox":      {"k bytes payload", mailbox},
	"many-to-many": {"processes messages", manyToMany},
	"fan-in":       {"senders messages", fanIn},
	"ping-pong":    {"rounds", pingPong},
	"burst-send":   {"receivers cores messages", burstSend},
	"call":         {"rounds callee timeout", call},
	"broadcast":    {"members rounds", broadcast},
	"stall":        {"offender offenders burst seconds pingers", stall},
	"sleep-loop":   {"beside", sleepLoop},
	"handoff":      {"rounds", handoff},
	"channel":      {"senders messages kind capacity", channel},
	"select":       {"branches messages kind capacity", selection},
	"lock":         {"units rounds inside", lockKeys},
	"condvar":      {"rounds", func(k keys) { condvar(k.count("rounds")) }},
	"barrier":      {"units rounds", func(k keys) { meet(k.count("units"), k.count("rounds")) }},
	"footprint":    {"n what", footprint},
	"callbacks":    {"n kind", callbacks},
	"timers":       {"pending", timers},
	"fib":          {"n forking pause_us", forkFib},
	"quicksort":    {"n data forking pause_us", forkQuicksort},
	"nqueens":      {"n forking pause_us", forkQueens},
	"tree-search":  {"n depth shape forking pause_us", forkTree},
	"thread":       {"n what threads", thread},
	"tree-read":    {"nodes tasks what", treeRead},
	"tree-write":   {"trees nodes mode", treeWrite},
	"hot-tree":     {"writers commits nodes kind retention", hotTree},
	"append":       {"children commits", appendMany},
	"snapshot":     {"reads nodes what", snapshot},
	"serve-echo":   {"", serve(serveEcho)},
	"serve-hello":  {"", serve(serveHello)},
	"serve-board":  {"", serve(serveBoard)},
}

func main() {
	arguments := os.Args[1:]
	if len(arguments) == 0 {
		badUsage("No workload is given: call it as WORKLOAD key=value ..., or with --version.")
	}
	if arguments[0] == "--version" {
		fmt.Println("Go", strings.TrimPrefix(runtime.Version(), "go"))
		return
	}
	workload, known := workloads[arguments[0]]
	if !known {
		badUsage("The workload `" + arguments[0] + "` is unknown: see the README.")
	}
	k := readKeys(arguments[1:], "workers "+workload.keys)
	runtime.GOMAXPROCS(k.count("workers"))
	workload.run(k)
}

func readKeys(pairs []string, allowed string) keys {
	k := keys{}
	for _, pair := range pairs {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			badUsage("The argument `" + pair + "` is not of the form key=value.")
		}
		if !strings.Contains(" "+allowed+" ", " "+key+" ") {
			badUsage("The key `" + key + "` does not belong to this workload: leave it out.")
		}
		if _, twice := k[key]; twice {
			badUsage("The key `" + key + "` is given twice: give it once.")
		}
		k[key] = value
	}
	return k
}

func (k keys) text(key string) string {
	value, found := k[key]
	if !found {
		badUsage("The key `" + key + "` is missing: give it as " + key + "=VALUE.")
	}
	return value
}

func (k keys) count(key string) int {
	return k.number(key, 1)
}

func (k keys) number(key string, least int) int {
	number, err := strconv.Atoi(k.text(key))
	if err != nil || number < least {
		badUsage(fmt.Sprintf("The key `%s` takes a whole number of at least %d.", key, least))
	}
	return number
}

func (k keys) word(key string, allowed ...string) string {
	value := k.text(key)
	for _, word := range allowed {
		if value == word {
			return value
		}
	}
	badUsage("The key `" + key + "` takes one of: " + strings.Join(allowed, ", ") + ".")
	return ""
}
