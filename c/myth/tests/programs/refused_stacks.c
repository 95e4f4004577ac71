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
static char has_begun[THREADS];

static void *waits(void *argument) {
  __atomic_store_n(&has_begun[(long)argument], 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
  CHECK(myth_mutex_lock(&mutex) == 0);
  while (!is_open) CHECK(myth_cond_wait(&opened, &mutex) == 0);
  CHECK(myth_mutex_unlock(&mutex) == 0);
  return argument;
}

/* The processor time of the program, in milliseconds. */
static long processor_ms(void) {
  struct timespec used;
  CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0);
  return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* One that has no stack, if there is any: the oldest, which main joins last. */
static void look_for_one_without_a_stack(void) {
  long oldest = 0;
  while (oldest < THREADS && __atomic_load_n(&has_begun[oldest], __ATOMIC_RELAXED)) oldest++;
  if (oldest == THREADS) return;
  void *result;
  CHECK(myth_tryjoin(threads[oldest], &result) == EBUSY);
  struct timespec soon = in_ms(300);
  long before = processor_ms();
  CHECK(myth_timedjoin(threads[oldest], &result, &soon) == EBUSY);
  /* A joiner that looked again and again would need all of it. */
  CHECK(processor_ms() - before < 200);
}

static int number_begun(void) { return __atomic_load_n(&begun, __ATOMIC_RELAXED); }

static void *opens(void *argument) {
  /* Those that have a stack have begun, when none has in a row of turns. */
  for (int before = -1, turns = 0; turns < 100; turns++) {
    if (before != number_begun()) turns = 0;
    before = number_begun();
    myth_usleep(100);
  }
  look_for_one_without_a_stack();
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
