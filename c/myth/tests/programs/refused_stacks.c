/* More threads than the system has stacks for: those that get none begin when others have ended, and until then the rest
   goes on as if they were not there. All of them are joined, also one that has no stack, and with a limit. */
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

enum { THREADS = 12000, ROOM = 700 << 20 };

static myth_thread_t threads[THREADS];
static myth_mutex_t mutex = MYTH_MUTEX_INITIALIZER;
static myth_cond_t opened = MYTH_COND_INITIALIZER;
static int is_open, begun;

static void *waits(void *argument) {
  __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
  CHECK(myth_mutex_lock(&mutex) == 0);
  while (!is_open) CHECK(myth_cond_wait(&opened, &mutex) == 0);
  CHECK(myth_mutex_unlock(&mutex) == 0);
  return argument;
}

static int number_begun(void) { return __atomic_load_n(&begun, __ATOMIC_RELAXED); }

static void *opens(void *argument) {
  /* Those that have a stack have begun, when none has in a row of turns. */
  for (int before = -1, turns = 0; turns < 100; turns++) {
    if (before != number_begun()) turns = 0;
    before = number_begun();
    myth_usleep(100);
  }
  int has_all = number_begun() == THREADS;
  void *result;
  CHECK(has_all || myth_tryjoin(threads[THREADS - 1], &result) == EBUSY);
  struct timespec soon = in_ms(5);
  CHECK(has_all || myth_timedjoin(threads[THREADS - 1], &result, &soon) == EBUSY);
  CHECK(myth_mutex_lock(&mutex) == 0);
  is_open = 1;
  CHECK(myth_cond_broadcast(&opened) == 0);
  CHECK(myth_mutex_unlock(&mutex) == 0);
  return argument;
}

int main(void) {
  /* It takes less than a second. */
  alarm(60);
  CHECK(myth_init() == 0);
  myth_thread_t opener = myth_create(opens, NULL);
  /* It has its stack. */
  myth_yield();
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
  FILE *used = fopen("/proc/self/statm", "r");
  long pages;
  CHECK(used != NULL && fscanf(used, "%ld", &pages) == 1 && fclose(used) == 0);
  limit.rlim_cur = pages * sysconf(_SC_PAGESIZE) + ROOM;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  for (long i = 0; i < THREADS; i++) {
    threads[i] = myth_create(waits, (void *)i);
    CHECK(threads[i] != NULL);
  }
  /* The last one first: it has no stack when its joiner begins to wait. */
  for (long i = THREADS - 1; i >= 0; i--) {
    void *result;
    CHECK(myth_join(threads[i], &result) == 0 && result == (void *)i);
  }
  CHECK(number_begun() == THREADS);
  CHECK(myth_join(opener, NULL) == 0);
  myth_fini();
  return 0;
}
