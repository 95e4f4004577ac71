// A node of an immutable tree: attributes in a small map, children in an array.

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

final class Node {
    static final Node[] NONE = {};

    private final Map<String, byte[]> attributes;
    private Node[] children;

    private Node(Map<String, byte[]> attributes, Node[] children) {
        this.attributes = attributes;
        this.children = children;
    }

    static Node over(long number, Node[] children) {
        return new Node(Map.of("k", value(number)), children);
    }

    static byte[] value(long number) {
        return ByteBuffer.allocate(8).putLong(number).array();
    }

    static Node build(int[] shape) {
        return buildBelow(shape, 0, new int[1]);
    }

    private static Node buildBelow(int[] shape, int level, int[] number) {
        int own = number[0];
        Node[] children = NONE;
        if (level < shape.length) {
            children = new Node[shape[level]];
            for (int at = 0; at < children.length; at++) {
                number[0]++;
                children[at] = buildBelow(shape, level + 1, number);
            }
        }
        return over(own, children);
    }

    int count() {
        int count = 1;
        for (Node child : children) {
            count += child.count();
        }
        return count;
    }

    /** Counts the nodes that have their attribute, which is read by its name. */
    int countAttributes() {
        byte[] value = attributes.get("k");
        int count = value != null && value[0] == 0 ? 1 : 0; // The number is written with its highest byte first.
        for (Node child : children) {
            count += child.countAttributes();
        }
        return count;
    }

    int childCount() {
        return children.length;
    }

    /** The tree with one more node behind the children of the node at the path. */
    Node appended(int[] path, int level, Node child) {
        Node[] copy;
        if (level == path.length) {
            copy = Arrays.copyOf(children, children.length + 1);
            copy[children.length] = child;
        } else {
            copy = children.clone();
            copy[path[level]] = copy[path[level]].appended(path, level + 1, child);
        }
        return new Node(attributes, copy);
    }

    /** The tree with another value of one attribute. */
    Node put(int[] path, int level, String name, byte[] value) {
        if (level == path.length) {
            Map<String, byte[]> copy = new HashMap<>(attributes);
            copy.put(name, value);
            return new Node(copy, children);
        }
        Node[] copy = children.clone();
        copy[path[level]] = copy[path[level]].put(path, level + 1, name, value);
        return new Node(attributes, copy);
    }

    /** Appends in place, to an unshared tree. */
    void appendHere(int[] path, Node child) {
        Node node = this;
        for (int at : path) {
            node = node.children[at];
        }
        node.children = Arrays.copyOf(node.children, node.children.length + 1);
        node.children[node.children.length - 1] = child;
    }

    /** The paths of all nodes of a shape, level by level. */
    static int[][] paths(int[] shape) {
        List<int[]> all = new ArrayList<>();
        all.add(new int[0]);
        int from = 0;
        for (int count : shape) {
            int to = all.size();
            for (int parent = from; parent < to; parent++) {
                for (int at = 0; at < count; at++) {
                    int[] above = all.get(parent);
                    int[] path = Arrays.copyOf(above, above.length + 1);
                    path[above.length] = at;
                    all.add(path);
                }
            }
            from = to;
        }
        return all.toArray(new int[0][]);
    }
}
