/* MYTH_BIND_WORKERS with MYTH_CPU_LIST: whatever a worker runs, a thread that begins or one that goes on, runs on the
 * worker's core. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

enum { THREADS = 20, YIELDS = 200, MOST_WORKERS = 8 };

static int cores[CPU_SETSIZE], core_count;
static int is_seen[MOST_WORKERS];

static int are_all_seen(void) {
  for (int worker = 0; worker < myth_get_num_workers(); worker++)
    if (!__atomic_load_n(&is_seen[worker], __ATOMIC_RELAXED)) return 0;
  return 1;
}

static void check_core(void) {
  cpu_set_t set;
  int worker = myth_get_worker_num();
  /* With AddressSanitizer `main` is no thread of the library. */
  if (worker < 0) return;
  CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
  CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET(cores[worker % core_count], &set));
  __atomic_store_n(&is_seen[worker], 1, __ATOMIC_RELAXED);
}

static void *yields(void *argument) {
  for (int i = 0; i < YIELDS || !are_all_seen(); i++) {
    check_core();
    myth_yield();
  }
  return argument;
}

int main(void) {
  cpu_set_t usable;
  CHECK(sched_getaffinity(0, sizeof usable, &usable) == 0);
  /* Backwards, so that it is not the order that the system's numbers have. */
  char list[16 * CPU_SETSIZE] = "";
  for (int core = CPU_SETSIZE - 1; core >= 0; core--) {
    if (!CPU_ISSET(core, &usable)) continue;
    sprintf(list + strlen(list), core_count ? ",%d" : "%d", core);
    cores[core_count++] = core;
  }
  CHECK(setenv("MYTH_BIND_WORKERS", "1", 1) == 0 && setenv("MYTH_CPU_LIST", list, 1) == 0);
  CHECK(myth_init() == 0 && myth_get_num_workers() <= MOST_WORKERS);
  myth_thread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) threads[i] = myth_create(yields, NULL);
  for (int i = 0; i < THREADS; i++) {
    check_core();
    CHECK(myth_join(threads[i], NULL) == 0);
  }
  myth_fini();
  return 0;
}
