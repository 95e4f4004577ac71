/* Units that have waited, for a debugger to stop in: a thread or a process, as the argument says. */
#define OWN_MAIN
#include "check.h"

/* No call may be a tail call, and nothing is known of what is passed: all frames are there, with any compiler. */
#define NO_TAIL_CALL __asm__ volatile("")

static volatile int one = 1;

__attribute__((noinline)) static int innermost(int n) {
  NO_TAIL_CALL;
  return n + 1;
}

__attribute__((noinline)) static int middle(int n) {
  int result = innermost(n);
  NO_TAIL_CALL;
  return result + 1;
}

static void *function_of_thread(void *context) {
  DO(weald_sleep(1 * MS));
  CHECK(middle(one) == 3);
  return context;
}

static int32_t function_of_process(void *context) {
  (void)context;
  DO(weald_sleep(1 * MS));
  int result = middle(one);
  NO_TAIL_CALL;
  return result;
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
