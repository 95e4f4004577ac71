/* A thread of the system joins a thread whose creation has not returned: with one worker it runs inside of it. With more,
 * main and that thread would hold two of them, and none might be left for the deadline. */
#include "check.h"
#include <pthread.h>

static myth_thread_t created;
static int may_be_joined, may_end;

static void *computes(void *argument) {
  __atomic_store_n(&may_be_joined, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE)) usleep(100);
  return argument;
}

static void *joins(void *argument) {
  while (!__atomic_load_n(&may_be_joined, __ATOMIC_ACQUIRE)) usleep(100);
  void *result = NULL;
  struct timespec soon = in_ms(20), late = in_ms(60000);
  CHECK(myth_tryjoin(created, &result) == EBUSY);
  CHECK(myth_timedjoin(created, &result, &soon) == EBUSY && has_passed(soon));
  __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
  CHECK(myth_timedjoin(created, &result, &late) == 0 && result == (void *)11);
  return argument;
}

int main(void) {
  CHECK(myth_init() == 0);
  if (myth_get_num_workers() != 1 || !myth_is_myth_worker()) return 0;
  pthread_t joiner;
  CHECK(pthread_create(&joiner, NULL, joins, NULL) == 0);
  CHECK(myth_create_ex(&created, NULL, computes, (void *)11) == 0);
  CHECK(pthread_join(joiner, NULL) == 0);
  return 0;
}
