// tree-search: the greatest value in a tree that exists only as the rule by which a node has children.

package main

import "fmt"

const root = 36

// found is the result of a search.
type found struct {
	nodes, greatest uint64
}

func one(node uint64) found {
	return found{1, mix(node)}
}

func (f found) and(other found) found {
	return found{f.nodes + other.nodes, max(f.greatest, other.greatest)}
}

// mix is the step of SplitMix64.
func mix(number uint64) uint64 {
	z := number + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// childrenAbove is the number of children of a node with this many levels below it.
func childrenAbove(node, levels uint64) uint64 {
	count := uint64(0)
	if levels == 0 {
		return count
	}
	for ; node%5 != 0; node /= 5 {
		count++
	}
	return count
}

func forkTree() {
	nodes, depth := uint64(number("n")), uint64(number("depth"))
	random := word("shape", "random", "left") == "random"
	if !random && nodes%(2*depth) != 0 {
		badUsage("No such tree has that many nodes: give a multiple of twice the depth.")
	}
	var answer, right found
	serial := func() { answer = leftTree(nodes, depth) }
	forking := func() { answer = forkingLeftTree(nodes, depth) }
	// Each balanced node forks, and each node of the path except the last.
	forks := int(nodes) - 1
	if random {
		serial = func() { answer = randomTree(mix(root), depth) }
		forking = func() { answer = forkingRandomTree(mix(root), depth) }
		forks = forksOfRandom(mix(root), depth)
	}
	serial()
	right = answer
	forked := program{
		reset:   func() { answer = found{} },
		serial:  serial,
		forking: forking,
		check: func() {
			if answer.nodes != nodes {
				fail(fmt.Sprintf("The tree has %d nodes and should have %d.", answer.nodes, nodes))
			}
			if answer != right {
				fail("The greatest value is not the one that was found first.")
			}
		},
		forks: forks,
	}
	forked.run()
}

func forksOfRandom(node, levels uint64) int {
	count := childrenAbove(node, levels)
	forks := max(0, int(count)-1)
	for child := range count {
		forks += forksOfRandom(mix(node^(child+1)), levels-1)
	}
	return forks
}

func randomTree(node, levels uint64) found {
	count := childrenAbove(node, levels)
	if count == 0 {
		return one(node)
	}
	return one(node).and(among(node, levels, 0, count))
}

func among(node, levels, start, end uint64) found {
	if end-start == 1 {
		return randomTree(mix(node^(start+1)), levels-1)
	}
	middle := (start + end) / 2
	return among(node, levels, start, middle).and(among(node, levels, middle, end))
}

func forkingRandomTree(node, levels uint64) found {
	count := childrenAbove(node, levels)
	if count == 0 {
		return one(node)
	}
	return one(node).and(forkingAmong(node, levels, 0, count))
}

func forkingAmong(node, levels, start, end uint64) found {
	if end-start == 1 {
		return forkingRandomTree(mix(node^(start+1)), levels-1)
	}
	middle := (start + end) / 2
	var a, b found
	join(
		func() { a = forkingAmong(node, levels, start, middle) },
		func() { b = forkingAmong(node, levels, middle, end) },
	)
	return a.and(b)
}

func leftTree(nodes, depth uint64) found {
	half := nodes / 2
	return one(nodes).and(way(depth, half/depth)).and(balanced(nodes, half-1))
}

func forkingLeftTree(nodes, depth uint64) found {
	half := nodes / 2
	var a, b found
	join(
		func() { a = forkingWay(depth, half/depth) },
		func() { b = forkingBalanced(nodes, half-1) },
	)
	return one(nodes).and(a).and(b)
}

func way(steps, each uint64) found {
	if steps == 1 {
		return one(steps).and(balanced(steps, each-1))
	}
	return one(steps).and(way(steps-1, each)).and(balanced(steps, each-1))
}

func forkingWay(steps, each uint64) found {
	if steps == 1 {
		return one(steps).and(forkingBalanced(steps, each-1))
	}
	var a, b found
	join(
		func() { a = forkingWay(steps-1, each) },
		func() { b = forkingBalanced(steps, each-1) },
	)
	return one(steps).and(a).and(b)
}

func balanced(node, nodes uint64) found {
	if nodes == 0 {
		return found{}
	}
	value, rest := mix(node), nodes-1
	return one(value).and(balanced(value^1, rest/2)).and(balanced(value^2, rest-rest/2))
}

func forkingBalanced(node, nodes uint64) found {
	if nodes == 0 {
		return found{}
	}
	value, rest := mix(node), nodes-1
	var a, b found
	join(
		func() { a = forkingBalanced(value^1, rest/2) },
		func() { b = forkingBalanced(value^2, rest-rest/2) },
	)
	return one(value).and(a).and(b)
}
