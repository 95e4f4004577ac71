/* The runtime ends some thousand times while threads join each other. Then no thread of the system may be left: one that
   is in the middle of a join waits for whoever wakes it, with a whole core if that one waits for it. */
#include "check.h"
#include <dirent.h>
#include <unistd.h>

static unsigned random_below(unsigned bound) {
  static unsigned long count;
  unsigned long state = __atomic_add_fetch(&count, 0x9E3779B97F4A7C15ul, __ATOMIC_RELAXED);
  state = (state ^ state >> 30) * 0xbf58476d1ce4e5b9ul;
  return (unsigned)(state >> 33) % bound;
}

/* Starts threads in some depth, and joins the last ones, or all. */
static void *tree(void *argument) {
  long depth = (long)argument;
  if (depth == 0) return NULL;
  myth_thread_t threads[4];
  int count = 1 + random_below(4), left = random_below(3) == 0 ? random_below(count + 1) : 0;
  for (int i = 0; i < count; i++) threads[i] = myth_create(tree, (void *)(depth - 1));
  for (int i = count; i-- > left;) myth_join(threads[i], NULL);
  return NULL;
}

/* Whether a thread of the system is one that the whole program keeps, for reports. */
static int is_kept(const char *number) {
  char path[300], name[32] = "";
  snprintf(path, sizeof path, "/proc/self/task/%s/comm", number);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 1;
  const char *read = fgets(name, sizeof name, file);
  fclose(file);
  /* It has ended meanwhile. */
  if (read == NULL) return 1;
  return strcmp(name, "weald-reports\n") == 0 || strcmp(name, "weald-releases\n") == 0;
}

static int threads_of_the_system(void) {
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
    count += entry->d_name[0] != '.' && !is_kept(entry->d_name);
  closedir(tasks);
  return count;
}

int main(void) {
  struct timespec end = in_ms(4000);
  while (!has_passed(end)) {
    myth_globalattr_t attributes;
    myth_globalattr_init(&attributes);
    myth_globalattr_set_n_workers(&attributes, 1 + random_below(8));
    CHECK(myth_init_ex(&attributes) == 0);
    int count = random_below(40);
    for (int i = 0; i < count; i++) myth_create(tree, (void *)(long)random_below(5));
    if (random_below(3) == 0) usleep(random_below(500));
    for (int i = random_below(5); i-- > 0;) myth_yield();
    myth_fini();
  }
  struct timespec late = in_ms(60000);
  while (threads_of_the_system() > 1) {
    CHECK(!has_passed(late));
    usleep(1000);
  }
  return 0;
}
