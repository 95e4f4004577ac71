/* What the program's first call of all begins for its main thread holds for what that thread then is. */
#include "check.h"

static void *same(void *argument) { return argument; }

static void starts(void) {
  myth_thread_t thread = myth_create(same, NULL);
  CHECK(thread != NULL && myth_join(thread, NULL) == 0);
}

static void locks(int kind) {
  myth_mutexattr_t type;
  myth_mutex_t mutex;
  CHECK(myth_mutexattr_init(&type) == 0 && myth_mutexattr_settype(&type, kind) == 0);
  CHECK(myth_mutex_init(&mutex, &type) == 0 && myth_mutex_lock(&mutex) == 0);
  starts();
  CHECK(myth_mutex_unlock(&mutex) == 0 && myth_mutex_unlock(&mutex) == EPERM);
}

int main(int arguments, char **argument) {
  CHECK(arguments == 2);
  const char *first = argument[1];
  if (strcmp(first, "recursive") == 0) locks(MYTH_MUTEX_RECURSIVE);
  if (strcmp(first, "errorcheck") == 0) locks(MYTH_MUTEX_ERRORCHECK);
  if (strcmp(first, "cancel") == 0) {
    int before = -1;
    CHECK(myth_setcancelstate(MYTH_CANCEL_DISABLE, NULL) == 0);
    starts();
    CHECK(myth_setcancelstate(MYTH_CANCEL_ENABLE, &before) == 0 && before == MYTH_CANCEL_DISABLE);
  }
  if (strcmp(first, "worker") == 0) {
    /* AddressSanitizer keeps main on its OS thread. */
    CHECK(myth_get_worker_num() >= 0 || getenv("ASAN_OPTIONS"));
  }
  return 0;
}
