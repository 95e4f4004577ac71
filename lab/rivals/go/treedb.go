// The workloads of trees: nodes that are never changed, copied from the root to the place of an edit, and
// roots behind atomic pointers.
//
// kind=processes: writers are goroutines; kind=threads: goroutines that keep an OS thread each.

package main

import (
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type attribute struct {
	name  string
	value [8]byte
}

type node struct {
	attributes []attribute
	children   []*node
}

// shapes holds how many children the nodes of each level have.
var shapes = map[int][]int{
	1:      {},
	100:    {3, 4, 7},
	156:    {5, 5, 5},
	10005:  {4, 4, 4, 5, 5, 5},
	810156: {5, 5, 5, 5, 5, 6, 6, 6},
}

func readShape() []int {
	shape, known := shapes[number("nodes")]
	if !known {
		badUsage("The key `nodes` takes 1, 100, 156, 10005 or 810156.")
	}
	return shape
}

func valueOf(number int) (value [8]byte) {
	binary.LittleEndian.PutUint64(value[:], uint64(number))
	return value
}

func over(number int, children []*node) *node {
	return &node{[]attribute{{"k", valueOf(number)}}, children}
}

func buildTree(shape []int) *node {
	number := 0
	return buildBelow(shape, &number)
}

func buildBelow(shape []int, number *int) *node {
	own := *number
	var children []*node
	if len(shape) > 0 {
		children = make([]*node, shape[0])
		for at := range children {
			*number++
			children[at] = buildBelow(shape[1:], number)
		}
	}
	return over(own, children)
}

func (n *node) count() int {
	count := 1
	for _, child := range n.children {
		count += child.count()
	}
	return count
}

// countAttributes counts the nodes that have their attribute, which is read by its name.
func (n *node) countAttributes() int {
	count := 0
	if at := slices.IndexFunc(n.attributes, func(a attribute) bool { return a.name == "k" }); at >= 0 {
		if n.attributes[at].value[7] == 0 { // The highest byte of the number.
			count = 1
		}
	}
	for _, child := range n.children {
		count += child.countAttributes()
	}
	return count
}

// appended returns the tree with one more node behind the children of the node at the path.
func (n *node) appended(path []int, child *node) *node {
	if len(path) == 0 {
		children := make([]*node, len(n.children)+1)
		copy(children, n.children)
		children[len(n.children)] = child
		return &node{n.attributes, children}
	}
	children := slices.Clone(n.children)
	children[path[0]] = children[path[0]].appended(path[1:], child)
	return &node{n.attributes, children}
}

// put returns the tree with another value of one attribute.
func (n *node) put(path []int, name string, value [8]byte) *node {
	if len(path) > 0 {
		children := slices.Clone(n.children)
		children[path[0]] = children[path[0]].put(path[1:], name, value)
		return &node{n.attributes, children}
	}
	attributes := slices.Clone(n.attributes)
	at := slices.IndexFunc(attributes, func(a attribute) bool { return a.name == name })
	if at < 0 {
		return &node{append(attributes, attribute{name, value}), n.children}
	}
	attributes[at].value = value
	return &node{attributes, n.children}
}

// appendHere appends in place, to an unshared tree.
func (n *node) appendHere(path []int, child *node) {
	for _, at := range path {
		n = n.children[at]
	}
	n.children = append(n.children, child)
}

func pathsOf(shape []int) [][]int {
	all, from := [][]int{{}}, 0
	for _, count := range shape {
		level := all[from:]
		from = len(all)
		for _, parent := range level {
			for at := range count {
				all = append(all, append(slices.Clone(parent), at))
			}
		}
	}
	return all
}

// published is a tree whose versions are published one after the other.
type published struct {
	root    atomic.Pointer[node]
	retries atomic.Int64
	kept    kept
}

func publish(root *node) *published {
	p := &published{}
	p.root.Store(root)
	return p
}

// commit derives a version from the newest one, and starts again if another came first.
func (p *published) commit(change func(*node) *node) *node {
	for {
		newest := p.root.Load()
		next := change(newest)
		if p.root.CompareAndSwap(newest, next) {
			return next
		}
		p.retries.Add(1)
	}
}

// kept holds the newest versions of a tree, so that they can be read again: a ring of slots.
type kept struct {
	slots     []atomic.Pointer[node]
	published atomic.Int64
}

// keep keeps a version in place of the oldest one.
func (k *kept) keep(version *node) {
	if len(k.slots) > 0 {
		number := int(k.published.Add(1)) - 1
		k.slots[number%len(k.slots)].Store(version)
	}
}

// onGoroutines runs tasks 0 to count on this many goroutines.
func onGoroutines(workers, count int, task func(int)) time.Duration {
	var next atomic.Int64
	var all sync.WaitGroup
	clock := time.Now()
	for range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			for number := int(next.Add(1)) - 1; number < count; number = int(next.Add(1)) - 1 {
				task(number)
			}
		}()
	}
	all.Wait()
	return time.Since(clock)
}

// keptVersions is how many of its newest versions a tree keeps, as the forest does.
const keptVersions = 1000

func treeRead() {
	shape, tasks := readShape(), number("tasks")
	visit := (*node).count
	if word("what", "", "count", "attribute") == "attribute" {
		visit = (*node).countAttributes
	}
	at(0)
	root := buildTree(shape)
	at(root.count())
	nodes, tree, paths := root.count(), publish(root), pathsOf(shape)
	var visited atomic.Int64
	elapsed := onGoroutines(runtime.GOMAXPROCS(0), tasks, func(number int) {
		random := xorshift(number + 1)
		path := paths[random.nextBelow(len(paths))]
		child := over(number, nil)
		version := tree.commit(func(newest *node) *node { return newest.appended(path, child) })
		visited.Add(int64(visit(version)))
	})
	if int(visited.Load()) != tasks*nodes+tasks*(tasks+1)/2 {
		fail("The tasks counted a different number of nodes than their versions have.")
	}
	printMetrics(
		metric{"ns_per_node", per(elapsed, int(visited.Load()))},
		metric{"s", elapsed.Seconds()},
	)
}

func treeWrite() {
	shape, trees := readShape(), number("trees")
	mode := word("mode", "bulk", "edit", "versions", "commits")
	paths := pathsOf(shape)
	var names atomic.Pointer[map[string]*published]
	writeAll := func() (time.Duration, int64) {
		names.Store(&map[string]*published{})
		var correct atomic.Int64
		elapsed := onGoroutines(runtime.GOMAXPROCS(0), trees, func(number int) {
			name := "tree-" + strconv.Itoa(number)
			tree := writeOne(shape, mode, paths)
			for {
				known := names.Load()
				next := maps.Clone(*known)
				next[name] = tree
				if names.CompareAndSwap(known, &next) {
					break
				}
			}
			if (*names.Load())[name].root.Load().count() == len(paths) {
				correct.Add(1)
			}
		})
		return elapsed, correct.Load()
	}
	// The second time counts: memory is warm then.
	at(0)
	writeAll()
	at(trees * len(paths))
	elapsed, correct := writeAll()
	printMetrics(
		metric{"ns_per_node", per(elapsed, trees, len(paths))},
		metric{"s", elapsed.Seconds()},
		metric{"correct", float64(correct)},
	)
}

func writeOne(shape []int, mode string, paths [][]int) *published {
	if mode == "bulk" {
		return publish(buildTree(shape))
	}
	tree := publish(over(0, nil))
	if mode != "edit" {
		tree.kept.slots = make([]atomic.Pointer[node], keptVersions)
	}
	number := 0
	for _, parent := range paths {
		if len(parent) == len(shape) {
			break
		}
		for range shape[len(parent)] {
			number++
			child := over(number, nil)
			if mode == "edit" {
				tree.root.Load().appendHere(parent, child)
			} else {
				tree.kept.keep(tree.commit(func(newest *node) *node { return newest.appended(parent, child) }))
			}
		}
	}
	return tree
}

// names are the attributes; a commit puts one of them.
var names = []string{"a", "b", "c", "d", "e", "f", "g", "h"}

func hotTree() {
	shape, writers, commits := readShape(), number("writers"), number("commits")
	threads := word("kind", "threads", "processes") == "threads"
	versions := 0
	if word("retention", "kept", "none") == "kept" {
		versions = keptVersions
	}
	tree, paths := publish(buildTree(shape)), pathsOf(shape)
	kept := kept{slots: make([]atomic.Pointer[node], versions)}
	each := (commits + writers - 1) / writers
	latencies := make([][]time.Duration, writers)
	t := newTeam(writers, writers)
	for writer := range writers {
		t.add(func() {
			if threads {
				runtime.LockOSThread()
			}
			random := xorshift(writer + 1)
			for step := range each {
				clock := time.Now()
				path := paths[random.nextBelow(len(paths))]
				if step%2 == 0 {
					child := over(step, nil)
					kept.keep(tree.commit(func(newest *node) *node { return newest.appended(path, child) }))
				} else {
					name := names[random.nextBelow(len(names))]
					kept.keep(tree.commit(func(newest *node) *node { return newest.put(path, name, valueOf(step)) }))
				}
				latencies[writer] = append(latencies[writer], time.Since(clock))
			}
		})
	}
	elapsed := t.run()
	all := slices.Concat(latencies...)
	slices.Sort(all)
	printMetrics(
		metric{"commits_per_s", float64(len(all)) / elapsed.Seconds()},
		metric{"p99_us", float64(all[(len(all)*99+99)/100-1].Nanoseconds()) / 1e3},
		metric{"retries_per_commit", float64(tree.retries.Load()) / float64(len(all))},
	)
}

func appendMany() {
	children, commits := number("children"), number("commits")
	list := make([]*node, children)
	for at := range list {
		list[at] = over(at, []*node{over(at, nil)})
	}
	tree := publish(over(0, list))
	tree.kept.slots = make([]atomic.Pointer[node], keptVersions)
	clock := time.Now()
	for number := range commits {
		child := over(number, nil)
		tree.kept.keep(tree.commit(func(newest *node) *node { return newest.appended(nil, child) }))
	}
	elapsed := time.Since(clock)
	if len(tree.root.Load().children) != children+commits {
		fail("The node does not have as many children as were appended.")
	}
	printMetrics(metric{"ns", per(elapsed, commits)})
}

func snapshot() {
	shape, reads := readShape(), number("reads")
	word("what", "borrowed", "owned") // The collector makes them the same.
	tree := publish(buildTree(shape))
	workers := runtime.GOMAXPROCS(0)
	var seen atomic.Int64
	elapsed := onGoroutines(workers, workers, func(int) {
		sum := 0
		for range reads {
			sum += len(tree.root.Load().children)
		}
		seen.Add(int64(sum))
	})
	if seen.Load() != int64(workers*reads*shape[0]) {
		fail("A reader saw another root.")
	}
	printMetrics(metric{"ns", per(elapsed, reads)})
}
