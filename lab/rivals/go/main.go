// The rival Go: processes are goroutines, mailboxes are buffered channels.
//
// Invariants: GOMAXPROCS is the number of workers; metrics go to stdout, an error is one sentence
// on stderr with exit code 1, or 2 for bad usage. rival-start (common/src/start.rs) checks the keys
// and puts them into the environment, and says what the program may ask it. main runs one workload
// and ends the program without waiting for goroutines that are still alive.
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// workloads holds all that this rival can do.
var workloads = map[string]func(){
	"spawn":        spawn,
	"ring":         ring,
	"mailbox":      mailbox,
	"many-to-many": manyToMany,
	"fan-in":       fanIn,
	"ping-pong":    pingPong,
	"burst-send":   burstSend,
	"call":         call,
	"broadcast":    broadcast,
	"stall":        stall,
	"sleep-loop":   sleepLoop,
	"handoff":      handoff,
	"channel":      channel,
	"select":       selection,
	"lock":         lockKeys,
	"condvar":      func() { condvar(number("rounds")) },
	"barrier":      func() { meet(number("units"), number("rounds")) },
	"footprint":    footprint,
	"callbacks":    callbacks,
	"timers":       timers,
	"fib":          forkFib,
	"quicksort":    forkQuicksort,
	"nqueens":      forkQueens,
	"tree-search":  forkTree,
	"thread":       thread,
	"tree-read":    treeRead,
	"tree-write":   treeWrite,
	"hot-tree":     hotTree,
	"append":       appendMany,
	"snapshot":     snapshot,
	"serve-echo":   serve(serveEcho),
	"serve-hello":  serve(serveHello),
	"serve-board":  serve(serveBoard),
}

func main() {
	if len(os.Args) < 2 {
		badUsage("No workload is given: let rival-start call it, or give --version.")
	}
	if os.Args[1] == "--version" {
		fmt.Println("Go", strings.TrimPrefix(runtime.Version(), "go"))
		return
	}
	run, known := workloads[os.Args[1]]
	if !known {
		badUsage("The workload `" + os.Args[1] + "` is unknown: see the README.")
	}
	runtime.GOMAXPROCS(number("workers"))
	run()
}

// number is the value of a key that the starter has checked; 0 if it was left out.
func number(key string) int {
	number, _ := strconv.Atoi(os.Getenv(key))
	return number
}

// word is the value of a key, if this rival has a program for it.
func word(key string, allowed ...string) string {
	value := os.Getenv(key)
	if !slices.Contains(allowed, value) {
		badUsage("The key `" + key + "` takes one of: " + strings.Join(allowed, ", ") + ".")
	}
	return value
}
