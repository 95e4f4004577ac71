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

// keys are the key=value arguments that have not been asked for yet.
type keys map[string]string

// workloads holds all that this rival can do.
var workloads = map[string]func(keys) func(){
	"spawn":        readOne("n", spawn),
	"ring":         readRing,
	"mailbox":      readMailbox,
	"many-to-many": readManyToMany,
	"fan-in":       readFanIn,
	"ping-pong":    readOne("rounds", pingPong),
	"burst-send":   readBurstSend,
	"call":         readCall,
	"broadcast":    readBroadcast,
	"stall":        readStall,
	"sleep-loop":   readSleepLoop,
	"handoff":      readOne("rounds", handoff),
	"channel":      readChannel,
	"select":       readSelect,
	"lock":         readLock,
	"condvar":      readOne("rounds", condvar),
	"barrier":      readBarrier,
	"footprint":    readFootprint,
	"callbacks":    readCallbacks,
	"timers":       readOne("pending", timers),
	"fib":          readFib,
	"quicksort":    readQuicksort,
	"nqueens":      readQueens,
	"tree-search":  readTree,
	"thread":       readThread,
	"tree-read":    readTreeRead,
	"tree-write":   readTreeWrite,
	"hot-tree":     readHotTree,
	"append":       readAppend,
	"snapshot":     readSnapshot,
	"serve-echo":   readServe(serveEcho),
	"serve-hello":  readServe(serveHello),
	"serve-board":  readServe(serveBoard),
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
	read, known := workloads[arguments[0]]
	if !known {
		badUsage("The workload `" + arguments[0] + "` is unknown: see the README.")
	}
	k := readKeys(arguments[1:])
	workload := read(k)
	workers := k.number("workers", 1)
	k.finish()
	runtime.GOMAXPROCS(workers)
	workload()
}

func readKeys(pairs []string) keys {
	k := keys{}
	for _, pair := range pairs {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			badUsage("The argument `" + pair + "` is not of the form key=value.")
		}
		if _, twice := k[key]; twice {
			badUsage("The key `" + key + "` is given twice: give it once.")
		}
		k[key] = value
	}
	return k
}

// readOne reads the only key of a workload.
func readOne(key string, workload func(int)) func(keys) func() {
	return func(k keys) func() {
		number := k.number(key, 1)
		return func() { workload(number) }
	}
}

func readRing(k keys) func() {
	n, m, tokens := k.number("n", 1), k.number("m", 1), k.number("tokens", 1)
	if tokens > n {
		badUsage("There are more tokens than processes: give tokens <= n.")
	}
	return func() { ring(n, m, tokens) }
}

func readMailbox(k keys) func() {
	count, bytes := k.number("k", 1), k.number("bytes", 1)
	fresh := k.word("payload", "shared", "fresh") == "fresh"
	return func() { mailbox(count, bytes, fresh) }
}

func readManyToMany(k keys) func() {
	processes, messages := k.number("processes", 1), k.number("messages", 1)
	return func() { manyToMany(processes, messages) }
}

func readFanIn(k keys) func() {
	senders, messages := k.number("senders", 1), k.number("messages", 1)
	return func() { fanIn(senders, messages) }
}

func readStall(k keys) func() {
	s := stalled{
		offender:  k.word("offender", "none", "blocks", "computes", "holds", "just-below", "waker"),
		offenders: k.number("offenders", 0),
		seconds:   k.number("seconds", 1),
		pingers:   k.number("pingers", 0),
		isBurst:   k.word("burst", "no", "yes") == "yes",
	}
	if s.isBurst && s.offender != "blocks" && s.offender != "computes" {
		badUsage("A burst blocks or computes.")
	}
	return func() { stall(s) }
}

// readSleepLoop reads the run of stall that has no offenders and takes two seconds.
func readSleepLoop(k keys) func() {
	s := stalled{offender: "none", seconds: 2}
	if k.word("beside", "nothing", "pingers") == "pingers" {
		s.pingers = 1000
	}
	return func() { stall(s) }
}

func readBurstSend(k keys) func() {
	receivers, messages := k.number("receivers", 1), k.number("messages", 1)
	cores := k.number("cores", 1)
	return func() {
		bindToProcessors(cores)
		burstSend(receivers, (messages+receivers-1)/receivers)
	}
}

func (k keys) take(key string) string {
	value, found := k[key]
	if !found {
		badUsage("The key `" + key + "` is missing: give it as " + key + "=VALUE.")
	}
	delete(k, key)
	return value
}

func (k keys) number(key string, least int) int {
	number, err := strconv.Atoi(k.take(key))
	if err != nil || number < least {
		badUsage(fmt.Sprintf("The key `%s` takes a whole number of at least %d.", key, least))
	}
	return number
}

func (k keys) word(key string, allowed ...string) string {
	value := k.take(key)
	for _, word := range allowed {
		if value == word {
			return value
		}
	}
	badUsage("The key `" + key + "` takes one of: " + strings.Join(allowed, ", ") + ".")
	return ""
}

func (k keys) finish() {
	for key := range k {
		badUsage("The key `" + key + "` does not belong to this workload: leave it out.")
	}
}
