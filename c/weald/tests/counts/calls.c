/* Calls of libweald, many of one kind, to be counted by callgrind: `calls WHAT N`. examples/calls.rs has the same calls
 * of the crate. What a call costs is the slope between two N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weald.h>

static void need(weald_code code) {
  if (code == WEALD_OK) return;
  fprintf(stderr, "%s\n", weald_last_error());
  exit(1);
}

static long n;
static const char *what;

static void messages(void) {
  weald_process self;
  need(weald_process_self(&self));
  for (long i = 0; i < n; i++) {
    weald_bytes message;
    need(weald_process_send(self, "hello", 5));
    need(weald_process_receive(WEALD_FOREVER, &message));
    weald_bytes_free(&message);
  }
}

static int32_t returns(void *context) {
  (void)context;
  return 0;
}

static void processes(void) {
  for (long i = 0; i < n; i++) {
    weald_process process;
    need(weald_process_spawn(NULL, returns, NULL, &process));
    need(weald_process_wait(process, WEALD_FOREVER, NULL));
    need(weald_release(process));
  }
}

static void *same(void *context) { return context; }

static void threads(void) {
  for (long i = 0; i < n; i++) {
    weald_thread thread;
    need(weald_thread_spawn(NULL, same, NULL, &thread));
    need(weald_thread_join(thread, WEALD_FOREVER, NULL));
  }
}

static void channels(void) {
  weald_channel channel;
  need(weald_channel_create(WEALD_UNBOUNDED, &channel));
  for (long i = 0; i < n; i++) {
    weald_bytes message;
    need(weald_channel_send(channel, "hello", 5, WEALD_FOREVER));
    need(weald_channel_receive(channel, WEALD_FOREVER, &message));
    weald_bytes_free(&message);
  }
}

static void selects(void) {
  weald_channel channels[2];
  need(weald_channel_create(WEALD_UNBOUNDED, &channels[0]));
  need(weald_channel_create(WEALD_UNBOUNDED, &channels[1]));
  for (long i = 0; i < n; i++) {
    weald_select_case cases[2];
    memset(cases, 0, sizeof cases);
    size_t chosen;
    for (int c = 0; c < 2; c++) {
      cases[c].kind = WEALD_CASE_RECEIVE;
      cases[c].channel = channels[c];
    }
    need(weald_channel_send(channels[i % 2], "hello", 5, WEALD_FOREVER));
    need(weald_select(cases, 2, WEALD_FOREVER, &chosen));
    weald_bytes_free(&cases[chosen].message);
  }
}

static void locks(void) {
  weald_mutex mutex;
  need(weald_mutex_create(&mutex));
  for (long i = 0; i < n; i++) {
    need(weald_mutex_lock(mutex, WEALD_FOREVER));
    need(weald_mutex_unlock(mutex));
  }
}

static void trees(int commits) {
  weald_forest forest;
  weald_tree tree;
  weald_view view;
  weald_node root;
  need(weald_forest_open(NULL, &forest));
  need(weald_forest_create(forest, "counts", &tree));
  need(weald_tree_view(tree, NULL, &view));
  need(weald_view_root(view, &root));
  for (long i = 0; i < (commits ? n : 1); i++) {
    weald_edit edit;
    need(weald_edit_begin(tree, 0, &edit));
    need(weald_edit_put(edit, root, "text", "hello", 5));
    need(weald_edit_commit(edit, WEALD_LEVEL_DEFAULT, NULL));
  }
  need(weald_tree_view(tree, NULL, &view));
  for (long i = 0; i < (commits ? 1 : n); i++) {
    weald_bytes value;
    need(weald_view_get(view, root, "text", &value));
    weald_bytes_free(&value);
  }
}

static int32_t counted(void *context) {
  (void)context;
  if (!strcmp(what, "messages")) messages();
  if (!strcmp(what, "processes")) processes();
  if (!strcmp(what, "threads")) threads();
  if (!strcmp(what, "channels")) channels();
  if (!strcmp(what, "selects")) selects();
  if (!strcmp(what, "locks")) locks();
  if (!strcmp(what, "reads")) trees(0);
  if (!strcmp(what, "commits")) trees(1);
  return 0;
}

int main(int arguments, char **argument) {
  if (arguments != 3) return 2;
  what = argument[1];
  n = atol(argument[2]);
  weald_runtime_options options = {sizeof options, 1, 0, NULL};
  weald_runtime runtime;
  need(weald_runtime_create(&options, &runtime));
  weald_spawn_options spawn = {sizeof spawn, runtime, 0, 0, NULL};
  weald_process process;
  need(weald_process_spawn(&spawn, counted, NULL, &process));
  need(weald_process_wait(process, WEALD_FOREVER, NULL));
  return 0;
}
