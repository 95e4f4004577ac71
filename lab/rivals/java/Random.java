// The generator xorshift64 (shifts 13, 7, 17), seeded with an index plus one.

final class Random {
    private long state;

    Random(int index) {
        state = index + 1L;
    }

    int below(int bound) {
        state ^= state << 13;
        state ^= state >>> 7;
        state ^= state << 17;
        return (int) Long.remainderUnsigned(state, bound);
    }
}
