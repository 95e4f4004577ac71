/* Threads: create, join in its three forms, detach, exit, identity, yields, many at once, failures. */
#include "check.h"

static void *same(void *argument) { return argument; }

static void *sum_to(void *argument) {
  long n = (long)argument;
  if (n == 0) return NULL;
  myth_thread_t below = myth_create(sum_to, (void *)(n - 1));
  void *sum;
  CHECK(below != NULL && myth_join(below, &sum) == 0);
  return (void *)((long)sum + n);
}

static void *exits(void *argument) {
  myth_exit(argument);
  abort();
}

static myth_uncond_t go;
static void *waits(void *argument) {
  CHECK(myth_uncond_wait(&go) == 0);
  return argument;
}

static myth_thread_t own_id;
static void *knows_itself(void *argument) {
  (void)argument;
  CHECK(myth_equal(myth_self(), own_id));
  CHECK(myth_is_myth_worker() == 1);
  CHECK(myth_join(myth_self(), NULL) == EDEADLK);
  return NULL;
}

static int detached_ended;
static void *detaches_itself(void *argument) {
  (void)argument;
  CHECK(myth_detach(myth_self()) == 0);
  CHECK(myth_detach(myth_self()) == EINVAL);
  myth_yield();
  __atomic_store_n(&detached_ended, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void *yields(void *argument) {
  for (int i = 0; i < 200; i++) {
    for (int option = 0; option <= 4; option++) myth_yield_ex(option);
    CHECK(myth_sched_yield() == 0);
  }
  return argument;
}

static void *square(void *argument) {
  long n = *(long *)argument;
  if (n % 3 == 0) myth_yield();
  return (void *)(n * n);
}

static int cubed;
static void *cubes(void *argument) {
  long n = *(long *)argument;
  /* The helpers are still at work when their creator waits for them. */
  for (int i = 0; i < 20; i++) myth_yield();
  __atomic_add_fetch(&cubed, 1, __ATOMIC_RELAXED);
  return (void *)(n * n * n);
}

static void *negate(void *argument) { return (void *)-*(long *)argument; }

int main(void) {
  void *result = NULL;
  CHECK(myth_init() == 0);
  CHECK(myth_get_num_workers() >= 1 && myth_getconcurrency() == myth_get_num_workers());

  myth_thread_t thread = myth_create(same, (void *)7);
  CHECK(thread != NULL && myth_join(thread, &result) == 0 && result == (void *)7);
  thread = myth_create(same, NULL);
  CHECK(myth_join(thread, NULL) == 0);
  thread = myth_create(sum_to, (void *)200);
  CHECK(myth_join(thread, &result) == 0 && result == (void *)20100);
  thread = myth_create(exits, (void *)8);
  CHECK(myth_join(thread, &result) == 0 && result == (void *)8);

  /* Identity. */
  CHECK(myth_self() != NULL && myth_equal(myth_self(), myth_self()));
  CHECK(myth_create_ex(&own_id, NULL, knows_itself, NULL) == 0);
  CHECK(!myth_equal(own_id, myth_self()));
  CHECK(myth_join(own_id, NULL) == 0);
  CHECK(myth_join(myth_self(), NULL) == EDEADLK);

  /* Failures are error codes. */
  CHECK(myth_create(NULL, NULL) == NULL);
  CHECK(myth_create_ex(&thread, NULL, NULL, NULL) == EINVAL);
  CHECK(myth_join(NULL, NULL) == EINVAL && myth_detach(NULL) == EINVAL && myth_cancel(NULL) == EINVAL);
  myth_thread_attr_t huge;
  CHECK(myth_thread_attr_init(&huge) == 0);
  CHECK(myth_thread_attr_setstacksize(&huge, (size_t)1 << 40) == 0);
  CHECK(myth_create_ex(&thread, &huge, same, NULL) == EAGAIN && thread == NULL);

  /* A join that does not wait, and one with a deadline. */
  thread = myth_create(waits, (void *)9);
  CHECK(myth_tryjoin(thread, &result) == EBUSY);
  struct timespec soon = in_ms(20);
  CHECK(myth_timedjoin(thread, &result, &soon) == EBUSY && has_passed(soon));
  CHECK(myth_uncond_signal(&go) == 0);
  struct timespec late = in_ms(60000);
  CHECK(myth_timedjoin(thread, &result, &late) == 0 && result == (void *)9);
  thread = myth_create(waits, (void *)10);
  CHECK(myth_uncond_signal(&go) == 0);
  while (myth_tryjoin(thread, &result) == EBUSY) myth_yield();
  CHECK(result == (void *)10);
  CHECK(myth_timedjoin(thread, NULL, NULL) == EINVAL);

  /* Detached: from inside, from outside, from the start. */
  CHECK(myth_create(detaches_itself, NULL) != NULL);
  while (!__atomic_load_n(&detached_ended, __ATOMIC_ACQUIRE)) myth_yield();
  thread = myth_create(waits, NULL);
  CHECK(myth_detach(thread) == 0);
  CHECK(myth_uncond_signal(&go) == 0);
  myth_thread_attr_t detached;
  CHECK(myth_thread_attr_init(&detached) == 0 && myth_thread_attr_setdetachstate(&detached, 1) == 0);
  CHECK(myth_create_ex(NULL, &detached, same, NULL) == 0);

  /* Yields of each kind, among several. */
  myth_thread_t yielding[8];
  for (long i = 0; i < 8; i++) yielding[i] = myth_create(yields, (void *)i);
  yields(NULL);
  for (long i = 0; i < 8; i++) CHECK(myth_join(yielding[i], &result) == 0 && result == (void *)i);

  /* Many at once, also with results and identifiers apart from each other. */
  enum { MANY = 1000 };
  static struct { long argument; void *result; myth_thread_t id; } row[MANY];
  for (long i = 0; i < MANY; i++) row[i].argument = i;
  CHECK(myth_create_join_many_ex(&row[0].id, NULL, square, &row[0].argument, &row[0].result, sizeof row[0], 0,
                                 sizeof row[0], sizeof row[0], MANY) == 0);
  for (long i = 0; i < MANY; i++) CHECK(row[i].result == (void *)(i * i) && row[i].id != NULL);
  myth_func_t functions[2] = { square, negate };
  void *results[2];
  long arguments[2] = { 5, 6 };
  CHECK(myth_create_join_various_ex(NULL, NULL, functions, arguments, results, 0, 0, sizeof functions[0],
                                    sizeof arguments[0], sizeof results[0], 2) == 0);
  CHECK(results[0] == (void *)25 && results[1] == (void *)-6);
  CHECK(myth_create_join_many_ex(NULL, NULL, square, arguments, NULL, 0, 0, sizeof arguments[0], 0, 2) == 0);
  CHECK(myth_create_join_many_ex(NULL, NULL, square, NULL, NULL, 0, 0, 0, 0, 0) == 0);
  /* All are waited for, also if their attributes are those of detached threads. */
  CHECK(myth_create_join_many_ex(NULL, &detached, cubes, &row[0].argument, &row[0].result, 0, 0, sizeof row[0],
                                 sizeof row[0], MANY) == 0);
  CHECK(cubed == MANY);
  for (long i = 0; i < MANY; i++) CHECK(row[i].result == (void *)(i * i * i));
  CHECK(myth_create_join_many_ex(NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 1) == EINVAL);
  CHECK(myth_create_join_various_ex(NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 1) == EINVAL);
  myth_fini();
  return 0;
}
