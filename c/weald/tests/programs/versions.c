/* Versions of trees that stay: history, tags, restoring, undo, indexes; edits that look around; forests of the past. */
#include "check.h"

static weald_edit edit_of(weald_tree tree) {
  weald_edit edit;
  DO(weald_edit_begin(tree, 0, &edit));
  return edit;
}

static weald_view view_of(weald_tree tree) {
  weald_view view;
  DO(weald_tree_view(tree, NULL, &view));
  return view;
}

static weald_tree_version commit(weald_edit edit) {
  weald_tree_version version;
  DO(weald_edit_commit(edit, WEALD_LEVEL_DEFAULT, &version));
  return version;
}

static void put(weald_edit edit, weald_node node, const char *name, const char *value) {
  DO(weald_edit_put(edit, node, name, value, strlen(value)));
}

static weald_tree_version put_alone(weald_tree tree, weald_node node, const char *value) {
  weald_edit edit = edit_of(tree);
  put(edit, node, "text", value);
  return commit(edit);
}

static void text_is(weald_view view, weald_node node, const char *expected) {
  weald_bytes value;
  DO(weald_view_get(view, node, "text", &value));
  expect_bytes(&value, expected);
}

static void newest_is(weald_tree tree, weald_node node, const char *expected) {
  weald_view view = view_of(tree);
  text_is(view, node, expected);
  DO(weald_release(view));
}

static int is_same(weald_tree_version one, weald_tree_version other) {
  return one.incarnation == other.incarnation && one.number == other.number;
}

static void histories(weald_forest forest) {
  weald_tree tree;
  weald_node root, node;
  weald_view view;
  weald_bytes tags;
  size_t count;
  DO(weald_forest_create(forest, "history", &tree));
  weald_edit edit = edit_of(tree);
  DO(weald_edit_root(edit, &root));
  DO(weald_edit_add(edit, WEALD_LAST_IN, root, &node));
  put(edit, node, "text", "one");
  weald_tree_version one = commit(edit);
  weald_tree_version two = put_alone(tree, node, "two");
  put_alone(tree, root, "another node");

  weald_tree_version found[8];
  DO(weald_tree_versions(tree, found, 8, &count));
  CHECK(count == 4 && is_same(found[1], one) && is_same(found[2], two));
  DO(weald_tree_versions(tree, NULL, 0, &count));
  CHECK(count == 4);
  DO(weald_tree_history(tree, node, found, 8, &count));
  CHECK(count == 2 && is_same(found[0], two) && is_same(found[1], one));

  weald_tree_version made, redone;
  DO(weald_tree_restore(tree, &one, &made));
  newest_is(tree, node, "one");
  /* An undo of the restoring, and a redo. */
  DO(weald_tree_revert(tree, &made, &edit));
  made = commit(edit);
  newest_is(tree, node, "two");
  DO(weald_tree_revert(tree, &made, &edit));
  redone = commit(edit);
  newest_is(tree, node, "one");
  CHECK(redone.number > made.number);

  DO(weald_tree_tag(tree, "second", &two));
  DO(weald_tree_tag(tree, "latest", NULL));
  DO(weald_tree_tags(tree, &tags));
  expect_bytes(&tags, "latest\nsecond\n");
  DO(weald_tree_tagged(tree, "second", &view));
  text_is(view, node, "two");
  int64_t time;
  DO(weald_view_time(view, &time));
  CHECK(time > 1700000000 * SECOND);
  DO(weald_release(view));
  DO(weald_tree_untag(tree, "second"));
  RETURNS(WEALD_MISSING, weald_tree_tagged(tree, "second", &view));

  RETURNS(WEALD_ARGUMENT, weald_tree_tag(tree, "", NULL));
  two.number += 1000;
  RETURNS(WEALD_MISSING, weald_tree_tag(tree, "none", &two));
  RETURNS(WEALD_MISSING, weald_tree_restore(tree, &two, NULL));
  RETURNS(WEALD_MISSING, weald_tree_revert(tree, &two, &edit));
  RETURNS(WEALD_NULL, weald_tree_restore(tree, NULL, NULL));
  RETURNS(WEALD_NULL, weald_tree_revert(tree, NULL, &edit));
  RETURNS(WEALD_NULL, weald_tree_versions(tree, NULL, 1, &count));
  RETURNS(WEALD_MISSING, weald_tree_history(tree, 0, NULL, 0, &count));
  DO(weald_release(tree));
}

/* Finds by a query on "name", in a view and in an edit. */
static void finds(weald_tree tree, weald_query query, size_t expected, const weald_node *nodes) {
  weald_node found[4];
  size_t count;
  query.size = sizeof query;
  query.attribute = "name";
  weald_view view = view_of(tree);
  DO(weald_view_find(view, &query, found, 4, &count));
  CHECK(count == expected && memcmp(found, nodes, expected * sizeof *nodes) == 0);
  DO(weald_view_find(view, &query, NULL, 0, &count));
  CHECK(count == expected);
  DO(weald_release(view));
  weald_edit edit = edit_of(tree);
  DO(weald_edit_find(edit, &query, found, 4, &count));
  CHECK(count == expected && memcmp(found, nodes, expected * sizeof *nodes) == 0);
  DO(weald_release(edit));
}

static weald_query query(int32_t kind, const char *value, const char *end) {
  weald_query query;
  memset(&query, 0, sizeof query);
  query.kind = kind;
  query.value = value;
  query.value_length = strlen(value);
  query.end = end;
  query.end_length = end == NULL ? 0 : strlen(end);
  return query;
}

static void searches(weald_forest forest) {
  weald_tree tree;
  weald_node root, nodes[3];
  DO(weald_forest_create(forest, "names", &tree));
  weald_edit edit = edit_of(tree);
  DO(weald_edit_root(edit, &root));
  const char *names[3] = {"ada", "adam", "grace"};
  for (int n = 0; n < 3; n++) {
    DO(weald_edit_add(edit, WEALD_LAST_IN, n == 1 ? nodes[0] : root, &nodes[n]));
    put(edit, nodes[n], "name", names[n]);
  }
  commit(edit);
  for (int round = 0; round < 3; round++) {
    finds(tree, query(WEALD_FIND_EQUAL, "ada", NULL), 1, nodes);
    finds(tree, query(WEALD_FIND_PREFIX, "ada", NULL), 2, nodes);
    finds(tree, query(WEALD_FIND_RANGE, "adam", NULL), 2, nodes + 1);
    finds(tree, query(WEALD_FIND_RANGE, "", "grace"), 2, nodes);
    weald_query backwards = query(WEALD_FIND_PREFIX, "", NULL);
    backwards.reverse = 1;
    backwards.limit = 1;
    finds(tree, backwards, 1, nodes + 2);
    weald_query under = query(WEALD_FIND_PREFIX, "", NULL);
    under.under = nodes[0];
    finds(tree, under, 2, nodes);
    if (round == 0) DO(weald_tree_add_index(tree, "name"));
    if (round == 1) DO(weald_tree_drop_index(tree, "name"));
  }
  weald_view view = view_of(tree);
  weald_query wrong = query(9, "", NULL);
  size_t count;
  RETURNS(WEALD_ARGUMENT, weald_view_find(view, &wrong, NULL, 0, &count));
  wrong.size = sizeof wrong;
  RETURNS(WEALD_NULL, weald_view_find(view, &wrong, NULL, 0, &count));
  wrong.attribute = "name";
  RETURNS(WEALD_ARGUMENT, weald_view_find(view, &wrong, NULL, 0, &count));
  RETURNS(WEALD_NULL, weald_view_find(view, NULL, NULL, 0, &count));
  DO(weald_release(view));
  DO(weald_release(tree));
}

static void walks(weald_forest forest) {
  weald_tree tree;
  weald_node root, first, second, found[3];
  size_t count;
  DO(weald_forest_create(forest, "walks", &tree));
  weald_edit edit = edit_of(tree);
  DO(weald_edit_root(edit, &root));
  DO(weald_edit_add(edit, WEALD_LAST_IN, root, &first));
  DO(weald_edit_add(edit, WEALD_LAST_IN, root, &second));
  DO(weald_edit_children(edit, root, found, 3, &count));
  CHECK(count == 2 && found[0] == first && found[1] == second);
  found[1] = 0;
  DO(weald_edit_children(edit, root, found, 1, &count));
  CHECK(count == 2 && found[1] == 0);
  DO(weald_edit_parent(edit, first, found));
  CHECK(found[0] == root);
  DO(weald_edit_parent(edit, root, found));
  CHECK(found[0] == 0);
  DO(weald_edit_delete(edit, first));
  RETURNS(WEALD_MISSING, weald_edit_parent(edit, first, found));
  RETURNS(WEALD_MISSING, weald_edit_children(edit, first, NULL, 0, &count));
  DO(weald_release(edit));
  DO(weald_release(tree));
}

static void with_options(void) {
  weald_forest_options options;
  memset(&options, 0, sizeof options);
  weald_forest forest;
  weald_tree tree;
  size_t count;
  RETURNS(WEALD_ARGUMENT, weald_forest_open_with(NULL, &options, &forest));
  options.size = sizeof options;
  options.level = 9;
  RETURNS(WEALD_ARGUMENT, weald_forest_open_with(NULL, &options, &forest));
  options.level = WEALD_LEVEL_DURABLE;
  RETURNS(WEALD_ARGUMENT, weald_forest_open_with(NULL, &options, &forest));
  options.level = WEALD_LEVEL_ACCEPTED;
  options.keep = 2;
  DO(weald_forest_open_with(NULL, &options, &forest));
  DO(weald_forest_create(forest, "short", &tree));
  weald_view view = view_of(tree);
  weald_node root;
  DO(weald_view_root(view, &root));
  weald_tree_version version;
  DO(weald_view_version(view, &version));
  for (int n = 0; n < 5; n++) put_alone(tree, root, n % 2 ? "odd" : "even");
  DO(weald_tree_versions(tree, NULL, 0, &count));
  CHECK(count == 2);
  weald_forest past;
  RETURNS(WEALD_ARGUMENT, weald_forest_at(forest, &version, &past));
  DO(weald_release(view));
  DO(weald_release(tree));
  DO(weald_forest_close(forest));
}

static void past_on_disk(void) {
  char directory[] = "/tmp/weald-past-XXXXXX";
  CHECK(mkdtemp(directory) != NULL);
  weald_forest_options options = {sizeof options, 1, WEALD_LEVEL_BUFFERED};
  weald_forest forest, past;
  weald_tree tree, old;
  weald_view view;
  weald_node root;
  DO(weald_forest_open_with(directory, &options, &forest));
  DO(weald_forest_create(forest, "notes", &tree));
  view = view_of(tree);
  DO(weald_view_root(view, &root));
  DO(weald_release(view));
  weald_tree_version first = put_alone(tree, root, "first");
  put_alone(tree, root, "second");
  RETURNS(WEALD_MISSING, weald_tree_view(tree, &first, &view));
  DO(weald_forest_rename(forest, "notes", "renamed"));
  DO(weald_forest_at(forest, &first, &past));
  RETURNS(WEALD_MISSING, weald_forest_get(past, "renamed", &old));
  DO(weald_forest_get(past, "notes", &old));
  newest_is(old, root, "first");
  newest_is(tree, root, "second");
  weald_edit edit = edit_of(old);
  put(edit, root, "text", "changed");
  CHECK(weald_edit_commit(edit, WEALD_LEVEL_DEFAULT, NULL) != WEALD_OK);
  DO(weald_release(old));
  DO(weald_forest_close(past));
  first.number += 1000;
  RETURNS(WEALD_MISSING, weald_forest_at(forest, &first, &past));
  RETURNS(WEALD_NULL, weald_forest_at(forest, NULL, &past));
  RETURNS(WEALD_NULL, weald_forest_at(forest, &first, NULL));
  DO(weald_release(tree));
  DO(weald_forest_close(forest));
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", directory);
  CHECK(system(command) == 0);
}

static void test(void) {
  weald_forest forest;
  DO(weald_forest_open(NULL, &forest));
  histories(forest);
  searches(forest);
  walks(forest);
  DO(weald_forest_close(forest));
  with_options();
  past_on_disk();
}
