// fib, quicksort, nqueens and tree-search: a goroutine for each second half.
//
// Each program is written twice, with forks and with plain calls, because Go would call the halves
// of a generic one through a table. Algorithms, sizes and data are those of lab/src/programs.

package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// join runs both halves, the second one in a goroutine.
func join(first, second func()) {
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		second()
		group.Done()
	}()
	first()
	group.Wait()
}

// program is a program that is measured with forks and without.
type program struct {
	reset, serial, forking func()
	// check ends the rival if the answer is wrong.
	check func()
	// forks is how often it forks; 0 where a cost per fork would say nothing.
	forks int
}

// timed returns the mean nanoseconds of this many runs.
func (p *program) timed(run func(), repeats int, pause time.Duration) float64 {
	var total time.Duration
	for range repeats {
		p.reset()
		if pause > 0 {
			time.Sleep(pause)
		}
		clock := time.Now()
		run()
		total += time.Since(clock)
		p.check()
	}
	return per(total, repeats)
}

// run does what the starter asks for: it decides on the rounds, as for lab/src/programs/measure.rs.
func (p *program) run() {
	pause := time.Duration(number("pause_us")) * time.Microsecond
	forms := map[string]func(){"serial": p.serial, "forking": p.forking}
	fmt.Println("forks", p.forks)
	var form string
	var repeats int
	for asked := bufio.NewReader(os.Stdin); ; {
		if _, err := fmt.Fscanln(asked, &form, &repeats); err != nil {
			return
		}
		fmt.Printf("%.3f\n", p.timed(forms[form], repeats, pause))
	}
}

func forkFib() {
	n := number("n")
	if n > 90 {
		badUsage("The number of forks would not fit: give n of at most 90.")
	}
	before, right, forks := 0, 1, 0
	for i := 1; i < n; i++ {
		before, right = right, before+right
	}
	// Every number above 1 forks, so there is one fork less than the next Fibonacci number.
	forks = before + right - 1
	answer := 0
	forked := program{
		reset:   func() { answer = 0 },
		serial:  func() { answer = fib(n) },
		forking: func() { answer = forkingFib(n) },
		check: func() {
			if answer != right {
				fail("A wrong Fibonacci number was found.")
			}
		},
		forks: forks,
	}
	forked.run()
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func forkingFib(n int) int {
	if n < 2 {
		return n
	}
	var a, b int
	join(func() { a = forkingFib(n - 1) }, func() { b = forkingFib(n - 2) })
	return a + b
}

const (
	inserted    = 50
	forkedAbove = 400
)

func forkQuicksort() {
	n := number("n")
	given := make([]uint32, n)
	if word("data", "seed", "random") == "seed" {
		state := uint32(7)
		for i := range given {
			state = (state*2017 + 2020) % 2027
			given[i] = state + 1
		}
	} else {
		for i := range given {
			given[i] = uint32(i)
		}
		for i := 1; i < n; i++ {
			other := mix(uint64(i)) % uint64(i+1)
			given[i], given[other] = given[other], given[i]
		}
	}
	sorted := slices.Clone(given)
	slices.Sort(sorted)
	work := slices.Clone(given)
	forked := program{
		reset:   func() { copy(work, given) },
		serial:  func() { sort(work) },
		forking: func() { forkingSort(work) },
		check: func() {
			if !slices.Equal(work, sorted) {
				fail("The array is not sorted, or its elements are not those that were given.")
			}
		},
	}
	forked.run()
}

func sort(data []uint32) {
	if len(data) <= inserted {
		insert(data)
		return
	}
	left, right := partition(data)
	sort(left)
	sort(right)
}

func forkingSort(data []uint32) {
	if len(data) <= forkedAbove {
		sort(data)
		return
	}
	left, right := partition(data)
	join(func() { forkingSort(left) }, func() { forkingSort(right) })
}

// partition moves what is smaller than the pivot before what is greater.
func partition(data []uint32) ([]uint32, []uint32) {
	pivot := data[len(data)/2]
	left, right := 0, len(data)
	for left < right {
		for data[left] < pivot {
			left++
		}
		for data[right-1] > pivot {
			right--
		}
		if left >= right {
			break
		}
		data[left], data[right-1] = data[right-1], data[left]
		left++
		right--
	}
	return data[:right], data[left:]
}

func insert(data []uint32) {
	for sorted := 1; sorted < len(data); sorted++ {
		element, place := data[sorted], sorted
		for ; place > 0 && data[place-1] > element; place-- {
			data[place] = data[place-1]
		}
		data[place] = element
	}
}

const most = 16

// solutionsOf holds the numbers of solutions for boards of 1, 2, 3 ... rows.
var solutionsOf = [most]int{
	1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512,
}

// board holds the columns of the queens in the first rows; each half gets a copy.
type board struct {
	columns [most]uint8
	rows, n int
}

func forkQueens() {
	n := number("n")
	if n > most {
		badUsage("The board is too large: give n of at most 16.")
	}
	answer, forks := 0, 0
	countForks(board{n: n}, &forks)
	forked := program{
		reset:   func() { answer = 0 },
		serial:  func() { answer = solutions(board{n: n}) },
		forking: func() { answer = forkingSolutions(board{n: n}) },
		check: func() {
			if answer != solutionsOf[n-1] {
				fail("A wrong number of solutions was found.")
			}
		},
		forks: forks,
	}
	forked.run()
}

// free returns the columns of the next row that no queen threatens.
func (b *board) free(columns *[most]uint8) []uint8 {
	count := 0
	for column := range b.n {
		if b.isFree(column) {
			columns[count] = uint8(column)
			count++
		}
	}
	return columns[:count]
}

func (b *board) isFree(column int) bool {
	for row := b.rows - 1; row >= 0; row-- {
		queen, distance := int(b.columns[row]), b.rows-row
		if queen == column || queen+distance == column || column+distance == queen {
			return false
		}
	}
	return true
}

func (b board) with(column uint8) board {
	b.columns[b.rows] = column
	b.rows++
	return b
}

func countForks(b board, forks *int) {
	if b.rows == b.n {
		return
	}
	var columns [most]uint8
	free := b.free(&columns)
	*forks += max(0, len(free)-1)
	for _, column := range free {
		countForks(b.with(column), forks)
	}
}

func solutions(b board) int {
	if b.rows == b.n {
		return 1
	}
	var columns [most]uint8
	return solutionsAmong(b, b.free(&columns))
}

func solutionsAmong(b board, columns []uint8) int {
	switch len(columns) {
	case 0:
		return 0
	case 1:
		return solutions(b.with(columns[0]))
	}
	half := len(columns) / 2
	return solutionsAmong(b, columns[:half]) + solutionsAmong(b, columns[half:])
}

func forkingSolutions(b board) int {
	if b.rows == b.n {
		return 1
	}
	var columns [most]uint8
	return forkingSolutionsAmong(b, b.free(&columns))
}

func forkingSolutionsAmong(b board, columns []uint8) int {
	switch len(columns) {
	case 0:
		return 0
	case 1:
		return forkingSolutions(b.with(columns[0]))
	}
	half := len(columns) / 2
	var first, second int
	join(
		func() { first = forkingSolutionsAmong(b, columns[:half]) },
		func() { second = forkingSolutionsAmong(b, columns[half:]) },
	)
	return first + second
}
