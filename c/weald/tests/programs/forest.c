/* Forests in memory and on disk: trees, edits, views of versions, conflicts, watches. */
#include "check.h"

static void value_is(weald_view view, weald_node node, const char *name, const char *expected) {
  weald_bytes value;
  DO(weald_view_get(view, node, name, &value));
  expect_bytes(&value, expected);
}

static weald_view view_of(weald_tree tree, const weald_tree_version *version) {
  weald_view view;
  DO(weald_tree_view(tree, version, &view));
  return view;
}

static weald_edit edit_of(weald_tree tree) {
  weald_edit edit;
  DO(weald_edit_begin(tree, 0, &edit));
  return edit;
}

/* Fills a tree, and returns the version. */
static weald_tree_version fill(weald_tree tree, weald_node *first, weald_node *second) {
  weald_edit edit = edit_of(tree);
  weald_node root, third;
  weald_tree_version version;
  DO(weald_edit_root(edit, &root));
  DO(weald_edit_add(edit, WEALD_LAST_IN, root, second));
  DO(weald_edit_add(edit, WEALD_FIRST_IN, root, first));
  DO(weald_edit_add(edit, WEALD_AFTER, *second, &third));
  DO(weald_edit_put(edit, *first, "text", "one", 3));
  DO(weald_edit_put(edit, *first, "empty", NULL, 0));
  DO(weald_edit_put(edit, *second, "text", "two", 3));
  weald_bytes value;
  DO(weald_edit_get(edit, *first, "text", &value));
  expect_bytes(&value, "one");
  DO(weald_edit_move(edit, third, WEALD_LAST_IN, *first));
  DO(weald_edit_commit(edit, WEALD_LEVEL_DEFAULT, &version));
  RETURNS(WEALD_HANDLE, weald_edit_commit(edit, WEALD_LEVEL_DEFAULT, &version));
  return version;
}

static void reads(weald_tree tree, weald_node first, weald_node second) {
  weald_view view = view_of(tree, NULL);
  weald_node root, node, children[3] = {0, 0, 77};
  size_t count;
  uint64_t length;
  weald_bytes names;
  DO(weald_view_length(view, &length));
  CHECK(length == 4);
  DO(weald_view_root(view, &root));
  DO(weald_view_parent(view, root, &node));
  CHECK(node == 0);
  DO(weald_view_parent(view, first, &node));
  CHECK(node == root);
  DO(weald_view_children(view, root, children, 3, &count));
  CHECK(count == 2 && children[0] == first && children[1] == second && children[2] == 77);
  children[1] = 0;
  DO(weald_view_children(view, root, children, 1, &count));
  CHECK(count == 2 && children[0] == first && children[1] == 0);
  DO(weald_view_children(view, second, NULL, 0, &count));
  CHECK(count == 0);
  DO(weald_view_child(view, root, 1, &node));
  CHECK(node == second);
  RETURNS(WEALD_MISSING, weald_view_child(view, root, 2, &node));
  value_is(view, first, "text", "one");
  value_is(view, first, "empty", "");
  RETURNS(WEALD_MISSING, weald_view_get(view, first, "none", &names));
  RETURNS(WEALD_MISSING, weald_view_get(view, 1000000, "text", &names));
  RETURNS(WEALD_MISSING, weald_view_get(view, 0, "text", &names));
  DO(weald_view_attributes(view, first, &names));
  CHECK(names.length == 11 && memcmp(names.data, "empty\0text", 11) == 0);
  weald_bytes_free(&names);
  DO(weald_release(view));
}

static void trees(weald_forest forest) {
  weald_tree tree, other;
  weald_bytes names;
  DO(weald_forest_create(forest, "notes", &tree));
  RETURNS(WEALD_TAKEN, weald_forest_create(forest, "notes", &other));
  RETURNS(WEALD_ARGUMENT, weald_forest_create(forest, "", &other));
  DO(weald_forest_create(forest, "later", &other));
  DO(weald_forest_names(forest, &names));
  expect_bytes(&names, "later\nnotes\n");
  DO(weald_forest_rename(forest, "later", "soon"));
  DO(weald_tree_name(other, &names));
  expect_bytes(&names, "soon");
  DO(weald_forest_delete(forest, "soon"));
  RETURNS(WEALD_MISSING, weald_forest_delete(forest, "soon"));
  RETURNS(WEALD_MISSING, weald_forest_get(forest, "soon", &tree));
  weald_edit edit = edit_of(other);
  weald_node node;
  DO(weald_edit_root(edit, &node));
  DO(weald_edit_put(edit, node, "a", "b", 1));
  RETURNS(WEALD_CLOSED, weald_edit_commit(edit, WEALD_LEVEL_DEFAULT, NULL));
  DO(weald_release(other));

  weald_watch watch;
  DO(weald_tree_watch(tree, NULL, &watch));
  weald_tree_version seen;
  RETURNS(WEALD_TIMED_OUT, weald_watch_next(watch, WEALD_AT_ONCE, &seen, NULL));
  weald_node first, second;
  weald_tree_version filled = fill(tree, &first, &second);
  weald_view view;
  DO(weald_watch_next(watch, WEALD_FOREVER, &seen, &view));
  CHECK(seen.number == filled.number && seen.incarnation == filled.incarnation);
  value_is(view, second, "text", "two");
  DO(weald_release(view));
  reads(tree, first, second);

  /* A newer version, and the older one. */
  edit = edit_of(tree);
  DO(weald_edit_delete(edit, second));
  DO(weald_edit_remove(edit, first, "empty"));
  RETURNS(WEALD_MISSING, weald_edit_remove(edit, first, "empty"));
  DO(weald_edit_commit(edit, WEALD_LEVEL_ACCEPTED, NULL));
  DO(weald_watch_next(watch, WEALD_FOREVER, NULL, NULL));
  weald_bytes none;
  view = view_of(tree, NULL);
  RETURNS(WEALD_MISSING, weald_view_get(view, second, "text", &none));
  DO(weald_release(view));
  view = view_of(tree, &filled);
  value_is(view, second, "text", "two");
  weald_tree_version version;
  DO(weald_view_version(view, &version));
  CHECK(version.number == filled.number);
  version.number += 1000;
  RETURNS(WEALD_MISSING, weald_tree_view(tree, &version, &other));

  /* Two edits from one version that conflict. */
  weald_edit later = edit_of(tree);
  DO(weald_edit_get(later, first, "text", &none));
  weald_bytes_free(&none);
  DO(weald_edit_put(later, first, "copy", "one", 3));
  edit = edit_of(tree);
  DO(weald_edit_put(edit, first, "text", "changed", 7));
  DO(weald_edit_commit(edit, WEALD_LEVEL_DEFAULT, NULL));
  RETURNS(WEALD_CONFLICT, weald_edit_commit(later, WEALD_LEVEL_DEFAULT, NULL));
  RETURNS(WEALD_HANDLE, weald_release(later));

  /* From the version of a view. */
  DO(weald_edit_begin(tree, view, &edit));
  DO(weald_edit_get(edit, second, "text", &none));
  expect_bytes(&none, "two");
  DO(weald_release(edit));
  DO(weald_release(view));

  /* Since a version. */
  DO(weald_release(watch));
  DO(weald_tree_watch(tree, &filled, &watch));
  DO(weald_watch_next(watch, WEALD_FOREVER, &seen, NULL));
  DO(weald_watch_next(watch, WEALD_FOREVER, &seen, NULL));
  RETURNS(WEALD_TIMED_OUT, weald_watch_next(watch, 1 * MS, &seen, NULL));
  DO(weald_forest_delete(forest, "notes"));
  RETURNS(WEALD_CLOSED, weald_watch_next(watch, WEALD_FOREVER, &seen, NULL));
  DO(weald_release(watch));
  DO(weald_release(tree));
}

static void refusals(weald_forest forest) {
  weald_tree tree, other;
  DO(weald_forest_create(forest, "refusals", &tree));
  DO(weald_forest_create(forest, "others", &other));
  weald_node root, child;
  weald_edit edit = edit_of(tree);
  weald_view view = view_of(other, NULL);
  weald_bytes bytes;
  DO(weald_edit_root(edit, &root));
  RETURNS(WEALD_REFUSED, weald_edit_delete(edit, root));
  RETURNS(WEALD_REFUSED, weald_edit_add(edit, WEALD_BEFORE, root, &child));
  RETURNS(WEALD_ARGUMENT, weald_edit_add(edit, 9, root, &child));
  RETURNS(WEALD_MISSING, weald_edit_add(edit, WEALD_LAST_IN, 0, &child));
  DO(weald_edit_add(edit, WEALD_LAST_IN, root, &child));
  RETURNS(WEALD_REFUSED, weald_edit_move(edit, child, WEALD_LAST_IN, child));
  RETURNS(WEALD_NULL, weald_edit_add(edit, WEALD_LAST_IN, root, NULL));
  RETURNS(WEALD_NULL, weald_edit_put(edit, root, NULL, "", 0));
  RETURNS(WEALD_NULL, weald_edit_put(edit, root, "a", NULL, 1));
  RETURNS(WEALD_ARGUMENT, weald_edit_put(edit, root, "\xff", "", 0));
  RETURNS(WEALD_MISSING, weald_edit_get(edit, root, "none", &bytes));
  RETURNS(WEALD_NULL, weald_edit_get(edit, root, "none", NULL));
  RETURNS(WEALD_NULL, weald_edit_root(edit, NULL));
  RETURNS(WEALD_ARGUMENT, weald_edit_commit(edit, 9, NULL));
  RETURNS(WEALD_ARGUMENT, weald_edit_begin(tree, view, &edit));
  RETURNS(WEALD_HANDLE, weald_edit_begin(tree, 77, &edit));
  RETURNS(WEALD_HANDLE, weald_edit_begin(0, 0, &edit));
  RETURNS(WEALD_NULL, weald_edit_begin(tree, 0, NULL));
  DO(weald_release(edit));
  RETURNS(WEALD_HANDLE, weald_edit_root(edit, &root));
  RETURNS(WEALD_NULL, weald_forest_open(NULL, NULL));
  RETURNS(WEALD_ARGUMENT, weald_forest_open("\xff", &forest));
  RETURNS(WEALD_NULL, weald_forest_create(forest, NULL, &tree));
  RETURNS(WEALD_NULL, weald_forest_create(forest, "x", NULL));
  RETURNS(WEALD_NULL, weald_forest_names(forest, NULL));
  RETURNS(WEALD_NULL, weald_forest_rename(forest, "others", NULL));
  RETURNS(WEALD_MISSING, weald_forest_rename(forest, "nobody", "somebody"));
  RETURNS(WEALD_HANDLE, weald_forest_names(tree, &bytes));
  RETURNS(WEALD_HANDLE, weald_tree_name(forest, &bytes));
  RETURNS(WEALD_NULL, weald_tree_view(tree, NULL, NULL));
  RETURNS(WEALD_NULL, weald_tree_watch(tree, NULL, NULL));
  RETURNS(WEALD_HANDLE, weald_watch_next(tree, 0, NULL, NULL));
  RETURNS(WEALD_NULL, weald_view_children(view, root, NULL, 1, NULL));
  RETURNS(WEALD_NULL, weald_view_length(view, NULL));
  DO(weald_release(view));
  DO(weald_release(tree));
  DO(weald_release(other));
}

struct author {
  weald_tree tree;
  weald_channel begins;
  char made[16];
};

/* Commits until it is cancelled, and counts. */
static int32_t commits(void *context) {
  struct author *author = context;
  event_happens(author->begins);
  for (int n = 1;; n++) {
    char count[16];
    weald_node root;
    weald_edit edit = edit_of(author->tree);
    DO(weald_edit_root(edit, &root));
    snprintf(count, sizeof count, "%d", n);
    DO(weald_edit_put(edit, root, "count", count, strlen(count)));
    weald_code code = weald_edit_commit(edit, WEALD_LEVEL_DURABLE, NULL);
    if (code == WEALD_CANCELLED) {
      /* It has done nothing, and taken nothing. */
      DO(weald_release(edit));
      return 0;
    }
    CHECK(code == WEALD_OK);
    memcpy(author->made, count, sizeof count);
  }
}

/* A commit whose author is cancelled meanwhile is made, and its author knows. */
static void cancelled_authors(weald_forest forest) {
  for (int round = 0; round < 10; round++) {
    struct author author = {0, event_create(), ""};
    weald_process process;
    weald_exit ended;
    DO(weald_forest_create(forest, "counted", &author.tree));
    DO(weald_process_spawn(NULL, commits, &author, &process));
    event_wait(author.begins);
    DO(weald_sleep(1 * MS));
    DO(weald_process_cancel(process));
    DO(weald_process_wait(process, WEALD_FOREVER, &ended));
    CHECK(ended.kind == WEALD_EXIT_CANCELLED);
    weald_view view = view_of(author.tree, NULL);
    weald_node root;
    DO(weald_view_root(view, &root));
    if (author.made[0] != 0) value_is(view, root, "count", author.made);
    DO(weald_release(view));
    DO(weald_forest_delete(forest, "counted"));
    DO(weald_release(author.tree));
    DO(weald_release(author.begins));
    DO(weald_release(process));
  }
}

static void on_disk(void) {
  char directory[] = "/tmp/weald-forest-XXXXXX";
  CHECK(mkdtemp(directory) != NULL);
  weald_forest forest, again;
  weald_tree tree;
  weald_node first, second;
  DO(weald_forest_open(directory, &forest));
  RETURNS(WEALD_SYSTEM, weald_forest_open(directory, &again));
  DO(weald_forest_create(forest, "notes", &tree));
  fill(tree, &first, &second);
  DO(weald_release(tree));
  DO(weald_forest_close(forest));
  RETURNS(WEALD_HANDLE, weald_forest_close(forest));
  DO(weald_forest_open(directory, &forest));
  DO(weald_forest_get(forest, "notes", &tree));
  reads(tree, first, second);
  DO(weald_release(tree));
  cancelled_authors(forest);
  DO(weald_forest_close(forest));
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", directory);
  CHECK(system(command) == 0);
}

static void test(void) {
  weald_forest forest;
  DO(weald_forest_open(NULL, &forest));
  trees(forest);
  refusals(forest);
  DO(weald_forest_close(forest));
  on_disk();
}
