// A tree whose versions are published one after the other.

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;

final class Published {
    private final AtomicReference<Node> root;
    final AtomicLong retries = new AtomicLong();
    /** The versions that stay as long as the tree does. */
    Kept kept = new Kept(0);

    Published(Node root) {
        this.root = new AtomicReference<>(root);
    }

    Node newest() {
        return root.get();
    }

    /** Derives a version from the newest one, and starts again if another came first. */
    Node commit(UnaryOperator<Node> change) {
        while (true) {
            Node newest = root.get();
            Node next = change.apply(newest);
            if (root.compareAndSet(newest, next)) {
                return next;
            }
            retries.incrementAndGet();
        }
    }
}
