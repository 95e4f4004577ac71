// What the workloads measure with: resident memory, metrics, lateness, the traffic pattern, work
// without waiting.

package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
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

func milliseconds(duration time.Duration) float64 {
	return float64(duration.Nanoseconds()) / 1e6
}

// rssBytes is the resident memory: RssAnon and RssShmem of /proc/self/status.
func rssBytes() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fail("/proc/self/status cannot be read: run this on Linux with /proc mounted.")
	}
	total := 0
	for _, line := range strings.Split(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 3 && (fields[0] == "RssAnon:" || fields[0] == "RssShmem:") {
			kilobytes, _ := strconv.Atoi(fields[1])
			total += kilobytes * 1024
		}
	}
	return total
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

// quantile returns the value that this share of the values does not exceed; 1 gives the greatest.
func quantile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(math.Ceil(share * float64(len(values))))
	return values[max(rank, 1)-1]
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

// line is a least-squares line; squared is the square of its correlation.
type line struct {
	slope, intercept, squared float64
}

// measureSizes makes something grow to n in eight steps and returns the line through its sizes and the resident memory.
func measureSizes(n int, grow func(size int)) line {
	var x, y []float64
	for step := range 9 {
		size := float64(n * step / 8)
		if step == 0 || size != x[len(x)-1] {
			grow(int(size))
			x, y = append(x, size), append(y, float64(rssBytes()))
		}
	}
	count := float64(len(x))
	var middle, level, along, width, spread float64
	for i := range x {
		middle += x[i] / count
		level += y[i] / count
	}
	for i := range x {
		along += (x[i] - middle) * (y[i] - level)
		width += (x[i] - middle) * (x[i] - middle)
		spread += (y[i] - level) * (y[i] - level)
	}
	found := line{along / width, level - along/width*middle, 1}
	if spread > 0 {
		found.squared = along * along / (width * spread)
	}
	return found
}
