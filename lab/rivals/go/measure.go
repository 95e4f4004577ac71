// What the workloads measure with: metrics, sizes, the traffic pattern, work without waiting.

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// metric is one line of the output.
type metric struct {
	name  string
	value float64
}

func printMetrics(metrics ...metric) {
	var lines strings.Builder
	for _, m := range metrics {
		fmt.Fprintf(&lines, "%s %.3f\n", m.name, m.value)
	}
	if _, err := os.Stdout.WriteString(lines.String()); err != nil {
		fail("The metrics cannot be written: give the program a stdout.")
	}
}

// fail ends the program because the rival cannot do what was asked.
func fail(sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(1)
}

// badUsage ends the program because it was called wrongly.
func badUsage(sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(2)
}

// per returns the nanoseconds of a duration per unit.
func per(duration time.Duration, units ...int) float64 {
	result := float64(duration.Nanoseconds())
	for _, unit := range units {
		result /= float64(unit)
	}
	return result
}

// at tells the starter that this program holds so many things, and waits while it reads the memory.
func at(size int) {
	fmt.Println("at", size)
	os.Stdin.Read(make([]byte, 1))
}

// bindToProcessors binds every thread of this program to the first of the processors that it may use.
// Threads that start later inherit that.
func bindToProcessors(most int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Room for 1,024 processors.
	var allowed, chosen [16]uint64
	size, mask := unsafe.Sizeof(allowed), unsafe.Pointer(&allowed)
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, size, uintptr(mask)); e != 0 {
		fail("The processors of this program cannot be read: run this on Linux.")
	}
	for cpu := 0; cpu < 1024 && most > 0; cpu++ {
		if bit := uint64(1) << (cpu % 64); allowed[cpu/64]&bit != 0 {
			chosen[cpu/64] |= bit
			most--
		}
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		fail("/proc/self/task cannot be read: run this on Linux with /proc mounted.")
	}
	mask = unsafe.Pointer(&chosen)
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		_, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(id), size, uintptr(mask))
		// A thread that has ended meanwhile needs no processor.
		if e != 0 && e != syscall.ESRCH {
			fail("The processors of this program cannot be chosen: run this on Linux.")
		}
	}
}

// xorshift is the generator xorshift64 (shifts 13, 7, 17); process i is seeded with i + 1.
type xorshift uint64

func (x *xorshift) nextBelow(limit int) int {
	s := uint64(*x)
	s ^= s << 13
	s ^= s >> 7
	s ^= s << 17
	*x = xorshift(s)
	return int(s % uint64(limit))
}

// computed keeps the arithmetic of computeFor from being optimised away.
var computed uint64

// computeFor does arithmetic without waiting until the duration has passed.
func computeFor(duration time.Duration) {
	state := uint64(7)
	for start := time.Now(); time.Since(start) < duration; {
		for range 1000 {
			state = state*6364136223846793005 + 1
		}
	}
	computed = state
}

// growInSteps makes something grow to n in eight steps; the starter draws the line through their memory.
func growInSteps(n int, grow func(size int)) {
	made := -1
	for step := range 9 {
		if size := n * step / 8; size != made {
			grow(size)
			at(size)
			made = size
		}
	}
}
