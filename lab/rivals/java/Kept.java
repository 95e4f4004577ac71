// The newest versions of a tree, so that they can be read again: a ring of slots.

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

final class Kept {
    private final AtomicReferenceArray<Node> slots;
    private final AtomicLong published = new AtomicLong();

    Kept(int versions) {
        this.slots = new AtomicReferenceArray<>(versions);
    }

    /** Keeps a version in place of the oldest one; or not at all, if none are kept. */
    void keep(Node version) {
        if (slots.length() > 0) {
            long number = published.getAndIncrement();
            slots.set((int) (number % slots.length()), version);
        }
    }
}
