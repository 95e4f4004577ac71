/* A thread whose creator computes until it has run: it is joined with a limit, or nobody joins it, while another thread
   yields in a loop. */
#include "check.h"

static void *same(void *argument) { return argument; }

/* What the creator passes on to the joiner, and whether that one runs and has joined. */
static myth_thread_t handed;
static int runs, has_joined;

static myth_thread_t take(void) {
  __atomic_store_n(&runs, 1, __ATOMIC_RELEASE);
  myth_thread_t thread;
  do thread = __atomic_load_n(&handed, __ATOMIC_ACQUIRE);
  while (thread == NULL);
  return thread;
}

static void *joins_until(void *argument) {
  struct timespec late = in_ms(60000);
  void *result;
  CHECK(myth_timedjoin(take(), &result, &late) == 0 && result == (void *)7);
  __atomic_store_n(&has_joined, 1, __ATOMIC_RELEASE);
  return argument;
}

static void *tries(void *argument) {
  struct timespec late = in_ms(60000);
  myth_thread_t thread = take();
  void *result;
  while (myth_tryjoin(thread, &result) == EBUSY) {
    CHECK(!has_passed(late));
    myth_yield();
  }
  CHECK(result == (void *)7);
  __atomic_store_n(&has_joined, 1, __ATOMIC_RELEASE);
  return argument;
}

static int has_run;
static void *notes(void *argument) {
  __atomic_store_n(&has_run, 1, __ATOMIC_RELEASE);
  return argument;
}

static void *yields(void *argument) {
  struct timespec late = in_ms(60000);
  __atomic_store_n(&runs, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&has_run, __ATOMIC_ACQUIRE)) {
    CHECK(!has_passed(late));
    myth_yield();
  }
  return argument;
}

static void compute_until(int *flag) {
  while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
  }
}

static void check(myth_func_t joins) {
  runs = has_joined = 0;
  handed = NULL;
  myth_thread_t joiner = myth_create(joins, NULL);
  compute_until(&runs);
  __atomic_store_n(&handed, myth_create(same, (void *)7), __ATOMIC_RELEASE);
  compute_until(&has_joined);
  CHECK(myth_join(joiner, NULL) == 0);
}

static void check_beside_yields(void) {
  runs = 0;
  myth_thread_t yielding = myth_create(yields, NULL);
  compute_until(&runs);
  myth_thread_t thread = myth_create(notes, NULL);
  compute_until(&has_run);
  CHECK(myth_join(thread, NULL) == 0 && myth_join(yielding, NULL) == 0);
}

int main(void) {
  CHECK(myth_init() == 0);
  check(joins_until);
  check(tries);
  check_beside_yields();
  myth_fini();
  return 0;
}
