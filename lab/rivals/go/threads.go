// thread: what a goroutine costs, shaped like a thread that can be joined.

package main

import (
	"runtime"
	"time"
)

func readThread(k keys) func() {
	n := k.number("n", 1)
	switch k.word("what", "create-join", "create-all", "parked", "yield", "lock", "lock-contended",
		"barrier", "condvar") {
	case "create-join":
		return func() { createJoin(n) }
	case "create-all":
		return func() { createAll(n) }
	case "parked":
		return func() { parked(n) }
	case "yield":
		return func() { giveWay(n) }
	case "lock":
		return func() { lock(1, n, false) }
	case "lock-contended":
		threads := k.number("threads", 1)
		return func() { lock(threads, n, false) }
	case "barrier":
		threads := k.number("threads", 1)
		return func() { meet(threads, n) }
	}
	return func() { condvar(n) }
}

// create starts a goroutine that returns a number through a channel, which is how it is joined.
func create(number int) chan int {
	ended := make(chan int, 1)
	go func() { ended <- number }()
	return ended
}

func joinWith(ended chan int, wanted int) {
	if <-ended != wanted {
		fail("A goroutine returned a wrong number.")
	}
}

func createJoin(n int) {
	clock := time.Now()
	for i := range n {
		joinWith(create(i), i)
	}
	printMetrics(metric{"ns", per(time.Since(clock), n)})
}

func createAll(n int) {
	ended := make([]chan int, n)
	clock := time.Now()
	for i := range ended {
		ended[i] = create(i)
	}
	for i := range ended {
		joinWith(ended[i], i)
	}
	printMetrics(metric{"ns", per(time.Since(clock), n)})
}

func parked(n int) {
	open := make(chan struct{})
	done := newGate(n)
	var total time.Duration
	var counts, bytes []float64
	made := 0
	for step := range 9 {
		size := n * step / 8
		if step > 0 && size == made {
			continue
		}
		clock := time.Now()
		if size > made {
			arrived := newGate(size - made)
			for ; made < size; made++ {
				go func() {
					arrived.add()
					<-open
					done.add()
				}()
			}
			<-arrived.open
		}
		total += time.Since(clock)
		counts, bytes = append(counts, float64(size)), append(bytes, float64(rssBytes()))
	}
	close(open)
	<-done.open
	printMetrics(
		metric{"ns", per(total, n)},
		metric{"bytes_per_thread", slope(counts, bytes)},
	)
}

// slope is that of the least-squares line.
func slope(x, y []float64) float64 {
	var middle, level, along, width float64
	for i := range x {
		middle += x[i] / float64(len(x))
		level += y[i] / float64(len(y))
	}
	for i := range x {
		along += (x[i] - middle) * (y[i] - level)
		width += (x[i] - middle) * (x[i] - middle)
	}
	return along / width
}

func giveWay(n int) {
	t := newTeam(2)
	for range 2 {
		t.add(func() {
			for range n {
				runtime.Gosched()
			}
		})
	}
	printMetrics(metric{"ns", per(t.run(), 2*n)})
}
