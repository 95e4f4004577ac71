/* Units that have waited, for a debugger to stop in: a thread or a process, as the argument says. */
#define OWN_MAIN
#include "check.h"

__attribute__((noinline)) static int innermost(int n) { return n + 1; }

__attribute__((noinline)) static int middle(int n) { return innermost(n) + 1; }

static void *function_of_thread(void *context) {
  DO(weald_sleep(1 * MS));
  CHECK(middle(1) == 3);
  return context;
}

static int32_t function_of_process(void *context) {
  (void)context;
  DO(weald_sleep(1 * MS));
  return middle(1);
}

/* For main itself. */
static void test(void) {}

int main(int arguments, char **argument) {
  CHECK(arguments == 2);
  is_in_unit = 0;
  run_test(NULL);
  if (strcmp(argument[1], "function_of_thread") == 0) {
    weald_thread thread;
    DO(weald_thread_spawn(NULL, function_of_thread, NULL, &thread));
    DO(weald_thread_join(thread, WEALD_FOREVER, NULL));
    return 0;
  }
  weald_process process;
  weald_exit ended;
  DO(weald_process_spawn(NULL, function_of_process, NULL, &process));
  DO(weald_process_wait(process, WEALD_FOREVER, &ended));
  CHECK(ended.code == 3);
  return 0;
}
