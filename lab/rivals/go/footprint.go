// footprint: how much memory unused mutexes or channels take.

package main

import (
	"runtime"
	"sync"
)

func readFootprint(k keys) func() {
	n := k.number("n", 1)
	switch k.word("what", "mutex", "bounded", "unbounded", "rendezvous") {
	case "mutex":
		return func() { footprintOfMutexes(n) }
	case "bounded":
		return func() { footprintOfChannels(n, 1) }
	case "rendezvous":
		return func() { footprintOfChannels(n, 0) }
	}
	badUsage("Go has no channel without a bound: give another thing.")
	return nil
}

func footprintOfMutexes(n int) {
	before := rssBytes()
	things := make([]sync.Mutex, n)
	for i := range things {
		// Fresh pages are resident only when they are written to.
		things[i].Lock()
		things[i].Unlock()
	}
	printGrown(before, n)
	runtime.KeepAlive(things)
}

func footprintOfChannels(n, room int) {
	before := rssBytes()
	things := make([]chan int, n)
	for i := range things {
		things[i] = make(chan int, room)
	}
	printGrown(before, n)
	runtime.KeepAlive(things)
}

func printGrown(before, n int) {
	printMetrics(metric{"bytes_per_object", float64(rssBytes()-before) / float64(n)})
}
