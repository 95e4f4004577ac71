// The rival Java: trees of immutable nodes, copied from the root to the place of an edit, and roots behind
// atomic references.
//
// rival-start (common/src/start.rs) checks the keys and puts them into the environment, and says what the program may
// ask it.
//
// Invariants: tasks run on a fixed pool of as many threads as there are workers; metrics go to stdout, an
// error is one sentence on stderr with exit code 1, or 2 for bad usage. A workload is run once or twice
// before it is measured, so that its code is compiled by then.

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;
import java.util.function.ToIntFunction;

public final class Rival {
    private static final Map<Integer, int[]> SHAPES = Map.of(
            1, new int[] {},
            100, new int[] {3, 4, 7},
            156, new int[] {5, 5, 5},
            10_005, new int[] {4, 4, 4, 5, 5, 5},
            810_156, new int[] {5, 5, 5, 5, 5, 6, 6, 6});
    /** How many of its newest versions a tree keeps, as the forest does. */
    private static final int KEPT = 1000;
    private static final String[] NAMES = {"a", "b", "c", "d", "e", "f", "g", "h"};

    private final int workers = number("workers");

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0) {
            badUsage("No workload is given: let rival-start call it, or give --version.");
        }
        if (arguments[0].equals("--version")) {
            System.out.println("OpenJDK " + Runtime.version());
            return;
        }
        new Rival().run(arguments[0]);
        System.exit(0);
    }

    private void run(String workload) throws Exception {
        switch (workload) {
            case "tree-read" -> {
                boolean attributes = "attribute".equals(System.getenv("what"));
                read(shape(), number("tasks"), attributes ? Node::countAttributes : Node::count);
            }
            case "tree-write" -> write(shape(), number("trees"), word("mode", "bulk", "edit", "versions", "commits"));
            case "hot-tree" -> {
                word("kind", "threads");
                int kept = word("retention", "kept", "none").equals("kept") ? KEPT : 0;
                hot(shape(), number("writers"), number("commits"), kept);
            }
            case "append" -> append(number("children"), number("commits"));
            case "snapshot" -> {
                snapshot(shape(), number("reads")); // Owned or borrowed: the collector makes them the same.
            }
            default -> badUsage("The workload `" + workload + "` is unknown: see the README.");
        }
    }

    private void read(int[] shape, int tasks, ToIntFunction<Node> visit) throws Exception {
        at(0);
        Node root = Node.build(shape);
        int nodes = root.count();
        at(nodes);
        int[][] paths = Node.paths(shape);
        for (int warm = 0; warm < 5; warm++) {
            visit.applyAsInt(root);
        }
        Published tree = new Published(root);
        AtomicLong visited = new AtomicLong();
        long elapsed = onThreads(workers, tasks, number -> {
            int[] path = paths[new Random(number).below(paths.length)];
            Node child = Node.over(number, Node.NONE);
            Node version = tree.commit(newest -> newest.appended(path, 0, child));
            visited.addAndGet(visit.applyAsInt(version));
        });
        if (visited.get() != (long) tasks * nodes + (long) tasks * (tasks + 1) / 2) {
            fail("The tasks counted a different number of nodes than their versions have.");
        }
        print("ns_per_node", (double) elapsed / visited.get());
        print("s", elapsed / 1e9);
    }

    private void write(int[] shape, int trees, String mode) throws Exception {
        int[][] paths = Node.paths(shape);
        long[] last = {0, 0};
        for (int time = 0; time < 2; time++) { // The second time counts.
            if (time == 0) {
                at(0);
            }
            var names = new java.util.concurrent.atomic.AtomicReference<Map<String, Published>>(Map.of());
            AtomicInteger correct = new AtomicInteger();
            last[0] = onThreads(workers, trees, number -> {
                String name = "tree-" + number;
                Published tree = writeOne(shape, mode, paths);
                while (true) {
                    Map<String, Published> known = names.get();
                    Map<String, Published> next = new HashMap<>(known);
                    next.put(name, tree);
                    if (names.compareAndSet(known, next)) {
                        break;
                    }
                }
                if (names.get().get(name).newest().count() == paths.length) {
                    correct.incrementAndGet();
                }
            });
            last[1] = correct.get();
            if (time == 0) {
                at(trees * paths.length);
            }
            if (names.get().size() != trees) {
                fail("A tree was not registered.");
            }
        }
        print("ns_per_node", (double) last[0] / ((long) trees * paths.length));
        print("s", last[0] / 1e9);
        print("correct", last[1]);
    }

    private static Published writeOne(int[] shape, String mode, int[][] paths) {
        if (mode.equals("bulk")) {
            return new Published(Node.build(shape));
        }
        Published tree = new Published(Node.over(0, Node.NONE));
        if (!mode.equals("edit")) {
            tree.kept = new Kept(KEPT);
        }
        int number = 0;
        for (int[] parent : paths) {
            if (parent.length == shape.length) {
                break;
            }
            for (int at = 0; at < shape[parent.length]; at++) {
                Node child = Node.over(++number, Node.NONE);
                if (mode.equals("edit")) {
                    tree.newest().appendHere(parent, child);
                } else {
                    tree.kept.keep(tree.commit(newest -> newest.appended(parent, 0, child)));
                }
            }
        }
        return tree;
    }

    private void hot(int[] shape, int writers, int commits, int kept) throws Exception {
        int each = (commits + writers - 1) / writers;
        hotOnce(shape, writers, each, kept);
        Published[] tree = new Published[1];
        ConcurrentLinkedQueue<long[]> latencies = new ConcurrentLinkedQueue<>();
        long elapsed = hotInto(shape, writers, each, kept, latencies, tree);
        long[] all = latencies.stream().flatMapToLong(java.util.Arrays::stream).sorted().toArray();
        print("commits_per_s", all.length / (elapsed / 1e9));
        print("p99_us", all[(int) ((all.length - 1) * 99L / 100)] / 1e3);
        print("retries_per_commit", (double) tree[0].retries.get() / all.length);
    }

    private void hotOnce(int[] shape, int writers, int each, int kept) throws Exception {
        hotInto(shape, writers, each, kept, new ConcurrentLinkedQueue<>(), new Published[1]);
    }

    private static long hotInto(
            int[] shape, int writers, int each, int kept, ConcurrentLinkedQueue<long[]> latencies, Published[] made)
            throws Exception {
        Published tree = new Published(Node.build(shape));
        made[0] = tree;
        Kept versions = new Kept(kept);
        int[][] paths = Node.paths(shape);
        return onThreads(writers, writers, writer -> {
            Random random = new Random(writer);
            long[] own = new long[each];
            for (int step = 0; step < each; step++) {
                long clock = System.nanoTime();
                int[] path = paths[random.below(paths.length)];
                if (step % 2 == 0) {
                    Node child = Node.over(step, Node.NONE);
                    versions.keep(tree.commit(newest -> newest.appended(path, 0, child)));
                } else {
                    String name = NAMES[random.below(NAMES.length)];
                    byte[] value = Node.value(step);
                    versions.keep(tree.commit(newest -> newest.put(path, 0, name, value)));
                }
                own[step] = System.nanoTime() - clock;
            }
            latencies.add(own);
        });
    }

    private void append(int children, int commits) {
        Node[] list = new Node[children];
        for (int at = 0; at < children; at++) {
            list[at] = Node.over(at, new Node[] {Node.over(at, Node.NONE)});
        }
        Published tree = new Published(Node.over(0, list));
        tree.kept = new Kept(KEPT);
        long clock = System.nanoTime();
        for (int number = 0; number < commits; number++) {
            Node child = Node.over(number, Node.NONE);
            tree.kept.keep(tree.commit(newest -> newest.appended(new int[0], 0, child)));
        }
        print("ns", (double) (System.nanoTime() - clock) / commits);
    }

    private void snapshot(int[] shape, int reads) throws Exception {
        Published tree = new Published(Node.build(shape));
        AtomicLong seen = new AtomicLong();
        IntConsumer task = worker -> {
            long sum = 0;
            for (int read = 0; read < reads; read++) {
                sum += tree.newest().childCount();
            }
            seen.addAndGet(sum);
        };
        onThreads(workers, workers, task);
        print("ns", (double) onThreads(workers, workers, task) / reads);
    }

    /** Runs tasks 0 to count on this many threads and returns how many nanoseconds it took. */
    private static long onThreads(int threads, int count, IntConsumer task) throws Exception {
        AtomicInteger next = new AtomicInteger();
        List<Thread> all = new ArrayList<>();
        long clock = System.nanoTime();
        for (int at = 0; at < threads; at++) {
            Thread thread = new Thread(() -> {
                for (int number = next.getAndIncrement(); number < count; number = next.getAndIncrement()) {
                    task.accept(number);
                }
            });
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            thread.join();
        }
        return System.nanoTime() - clock;
    }

    private int[] shape() {
        int[] shape = SHAPES.get(number("nodes"));
        if (shape == null) {
            badUsage("The key `nodes` takes 1, 100, 156, 10005 or 810156.");
        }
        return shape;
    }

    /** A number, which the starter has checked. */
    private static int number(String key) {
        return Integer.parseInt(System.getenv(key));
    }

    private static String word(String key, String... allowed) {
        String value = System.getenv(key);
        if (!List.of(allowed).contains(value)) {
            badUsage("The key `" + key + "` takes one of: " + String.join(", ", allowed) + ".");
        }
        return value;
    }

    /** Tells the starter that this program holds so many things, and waits while it reads the memory. */
    private static void at(int size) throws Exception {
        System.gc();
        System.out.println("at " + size);
        System.in.read();
    }

    private static void print(String metric, double value) {
        System.out.println(metric + String.format(Locale.ROOT, " %.3f", value));
    }

    private static void fail(String sentence) {
        System.err.println(sentence);
        System.exit(1);
    }

    private static void badUsage(String sentence) {
        System.err.println(sentence);
        System.exit(2);
    }
}
