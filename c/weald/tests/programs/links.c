/* Links, trapped exits and monitors: of processes in a unit, and of those with an OS thread of their own. */
#include "check.h"

/* How the processes of this round run: 0 or WEALD_OWN_THREAD. */
static uint32_t flags;

static weald_process spawn(uint32_t more, weald_process_function function, void *context) {
  weald_spawn_options options = {sizeof options, 0, 0, flags | more, NULL};
  weald_process process;
  DO(weald_process_spawn(&options, function, context, &process));
  return process;
}

static weald_exit end_of(weald_process process) {
  weald_exit exit;
  DO(weald_process_wait(process, WEALD_FOREVER, &exit));
  DO(weald_release(process));
  return exit;
}

/* Waits for a message, and returns its number as its code. */
static int32_t returns_what_it_receives(void *context) {
  (void)context;
  weald_bytes message;
  weald_code code = weald_process_receive(WEALD_FOREVER, &message);
  if (code == WEALD_CANCELLED) return 0;
  CHECK(code == WEALD_OK);
  int32_t number = atoi((const char *)message.data);
  weald_bytes_free(&message);
  return number;
}

/* A notice behind the text `own`. */
static weald_notice receive_notice(const char *own) {
  weald_bytes message;
  weald_notice notice;
  DO(weald_process_receive(WEALD_FOREVER, &message));
  CHECK(message.length == strlen(own) + sizeof notice && memcmp(message.data, own, strlen(own)) == 0);
  memcpy(&notice, message.data + strlen(own), sizeof notice);
  weald_bytes_free(&message);
  return notice;
}

static uint64_t number_of(weald_process process) {
  uint64_t number;
  DO(weald_process_number(process, &number));
  CHECK(number != 0);
  return number;
}

/* What a process is told of, and tells. */
struct round {
  weald_channel is_linked;
  weald_process other;
};

static int32_t links_and_waits(void *context) {
  struct round *round = context;
  DO(weald_process_link(round->other));
  DO(weald_process_link(round->other));
  event_happens(round->is_linked);
  weald_bytes none;
  RETURNS(WEALD_CANCELLED, weald_process_receive(WEALD_FOREVER, &none));
  return 0;
}

static int32_t links_and_returns(void *context) {
  struct round *round = context;
  DO(weald_process_link(round->other));
  return 7;
}

static int32_t links_no_more(void *context) {
  struct round *round = context;
  DO(weald_process_link(round->other));
  DO(weald_process_unlink(round->other));
  return 7;
}

static void processes_end_together(void) {
  /* A code other than zero, or a cancel, ends the other. */
  for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
    struct round round = {event_create(), spawn(0, returns_what_it_receives, NULL)};
    weald_process linked = spawn(0, links_and_waits, &round);
    event_wait(round.is_linked);
    if (is_cancelled) DO(weald_process_cancel(round.other));
    else DO(weald_process_send(round.other, "7", 1));
    CHECK(end_of(linked).kind == WEALD_EXIT_CANCELLED);
    weald_exit exit = end_of(round.other);
    CHECK(is_cancelled ? exit.kind == WEALD_EXIT_CANCELLED : exit.kind == WEALD_EXIT_RETURNED && exit.code == 7);
    DO(weald_release(round.is_linked));
  }
  /* The other way round. */
  struct round round = {0, spawn(0, returns_what_it_receives, NULL)};
  weald_exit exit = end_of(spawn(0, links_and_returns, &round));
  CHECK(exit.kind == WEALD_EXIT_RETURNED && exit.code == 7);
  CHECK(end_of(round.other).kind == WEALD_EXIT_CANCELLED);
  /* A link that was removed. */
  round.other = spawn(0, returns_what_it_receives, NULL);
  CHECK(end_of(spawn(0, links_no_more, &round)).code == 7);
  DO(weald_process_send(round.other, "8", 1));
  CHECK(end_of(round.other).code == 8);
}

static int32_t traps(void *context) {
  (void)context;
  DO(weald_process_trap_exits("exit:", 5));
  weald_process child = spawn(WEALD_LINKED, returns_what_it_receives, NULL);
  DO(weald_process_send(child, "9", 1));
  weald_notice notice = receive_notice("exit:");
  CHECK(notice.process == number_of(child));
  CHECK(notice.exit.kind == WEALD_EXIT_RETURNED && notice.exit.code == 9);
  DO(weald_release(child));
  child = spawn(WEALD_LINKED, returns_what_it_receives, NULL);
  DO(weald_process_send(child, "0", 1));
  notice = receive_notice("exit:");
  CHECK(notice.exit.kind == WEALD_EXIT_RETURNED && notice.exit.code == 0);
  /* A process that has ended. */
  DO(weald_process_link(child));
  notice = receive_notice("exit:");
  CHECK(notice.process == number_of(child) && notice.exit.kind == WEALD_EXIT_UNKNOWN);
  DO(weald_release(child));
  child = spawn(WEALD_LINKED, returns_what_it_receives, NULL);
  DO(weald_process_cancel(child));
  CHECK(receive_notice("exit:").exit.kind == WEALD_EXIT_CANCELLED);
  DO(weald_release(child));
  DO(weald_process_untrap_exits());
  child = spawn(WEALD_LINKED, returns_what_it_receives, NULL);
  DO(weald_process_cancel(child));
  DO(weald_release(child));
  weald_bytes none;
  RETURNS(WEALD_CANCELLED, weald_process_receive(WEALD_FOREVER, &none));
  return 0;
}

static int32_t watches(void *context) {
  weald_process child = spawn(0, returns_what_it_receives, NULL);
  weald_monitor first, second;
  DO(weald_process_monitor(child, "a", 1, &first));
  DO(weald_process_monitor(child, NULL, 0, &second));
  DO(weald_process_monitor(child, "c", 1, NULL));
  DO(weald_process_demonitor(second));
  RETURNS(WEALD_HANDLE, weald_process_demonitor(second));
  DO(weald_process_send(child, "5", 1));
  int seen[2] = {0, 0};
  for (int n = 0; n < 2; n++) {
    weald_bytes message;
    weald_notice notice;
    DO(weald_process_receive(WEALD_FOREVER, &message));
    CHECK(message.length == 1 + sizeof notice);
    memcpy(&notice, message.data + 1, sizeof notice);
    CHECK(notice.process == number_of(child));
    CHECK(notice.exit.kind == WEALD_EXIT_RETURNED && notice.exit.code == 5);
    seen[message.data[0] == 'c'] = 1;
    weald_bytes_free(&message);
  }
  CHECK(seen[0] && seen[1]);
  weald_bytes none;
  RETURNS(WEALD_TIMED_OUT, weald_process_receive(0, &none));
  /* It has ended: the notice comes at once, and knows how. */
  DO(weald_process_monitor(child, "late", 4, NULL));
  CHECK(receive_notice("late").exit.code == 5);
  *(weald_monitor *)context = first;
  DO(weald_release(child));
  return 0;
}

static int32_t ends_a_foreign_monitor(void *context) {
  RETURNS(WEALD_ARGUMENT, weald_process_demonitor(*(weald_monitor *)context));
  return 0;
}

static void monitors(void) {
  weald_monitor monitor;
  weald_process process = spawn(0, watches, &monitor);
  CHECK(end_of(process).kind == WEALD_EXIT_RETURNED);
  CHECK(end_of(spawn(0, ends_a_foreign_monitor, &monitor)).kind == WEALD_EXIT_RETURNED);
  DO(weald_release(monitor));
}

/* Cancelled by the link, at once or soon. */
static int32_t links_too_late(void *context) {
  (void)weald_process_link(*(weald_process *)context);
  weald_bytes none;
  RETURNS(WEALD_CANCELLED, weald_process_receive(WEALD_FOREVER, &none));
  return 0;
}

/* A process that a link has cancelled has not returned what the other end of that link has. */
static int32_t hears_of_ends_that_links_made(void *context) {
  (void)context;
  DO(weald_process_trap_exits("exit:", 5));
  for (int is_late = 0; is_late < 2; is_late++) {
    struct round round = {event_create(), spawn(0, returns_what_it_receives, NULL)};
    weald_process middle;
    if (is_late) {
      DO(weald_process_send(round.other, "7", 1));
      DO(weald_process_wait(round.other, WEALD_FOREVER, NULL));
      middle = spawn(WEALD_LINKED, links_too_late, &round.other);
    } else {
      middle = spawn(WEALD_LINKED, links_and_waits, &round);
      event_wait(round.is_linked);
      DO(weald_process_send(round.other, "7", 1));
    }
    weald_notice notice = receive_notice("exit:");
    CHECK(notice.process == number_of(middle));
    CHECK(notice.exit.kind == WEALD_EXIT_CANCELLED && notice.exit.code == 0);
    CHECK(end_of(middle).kind == WEALD_EXIT_CANCELLED);
    CHECK(end_of(round.other).code == 7);
    DO(weald_release(round.is_linked));
  }
  return 0;
}

/* Whenever the link comes, before the other one returns, while it does, or afterwards, it cancels. */
static void links_meet_returns(void) {
  for (int n = 0; n < 500; n++) {
    weald_process other = spawn(0, returns_what_it_receives, NULL);
    weald_process linked = spawn(0, links_too_late, &other);
    DO(weald_process_send(other, "7", 1));
    CHECK(end_of(linked).kind == WEALD_EXIT_CANCELLED);
    CHECK(end_of(other).code == 7);
  }
}

/* A linked process that could not be spawned has not ended, so its caller goes on. */
static int32_t spawns_what_has_no_room(void *context) {
  (void)context;
  uint32_t both = WEALD_LINKED | WEALD_OWN_THREAD;
  weald_spawn_options options = {sizeof options, 0, (size_t)1 << 50, both, NULL};
  weald_process process;
  RETURNS(WEALD_NO_ROOM, weald_process_spawn(&options, returns_what_it_receives, NULL, &process));
  /* Processes that were spawned later have ended, so an end of that one would have been told. */
  for (int n = 0; n < 20; n++) {
    weald_process later = spawn(0, returns_what_it_receives, NULL);
    DO(weald_process_send(later, "0", 1));
    CHECK(end_of(later).kind == WEALD_EXIT_RETURNED);
  }
  DO(weald_check_cancel());
  return 4;
}

static void errors(void) {
  weald_process process = spawn(0, returns_what_it_receives, NULL);
  RETURNS(WEALD_NO_PROCESS, weald_process_link(process));
  RETURNS(WEALD_NO_PROCESS, weald_process_unlink(process));
  RETURNS(WEALD_NO_PROCESS, weald_process_trap_exits(NULL, 0));
  RETURNS(WEALD_NO_PROCESS, weald_process_untrap_exits());
  RETURNS(WEALD_NO_PROCESS, weald_process_monitor(process, NULL, 0, NULL));
  RETURNS(WEALD_NO_PROCESS, weald_process_demonitor(process));
  RETURNS(WEALD_NULL, weald_process_number(process, NULL));
  RETURNS(WEALD_HANDLE, weald_process_link(0));
  RETURNS(WEALD_NULL, weald_process_trap_exits(NULL, 1));
  weald_spawn_options options = {sizeof options, 0, 0, WEALD_LINKED, NULL};
  weald_process other;
  RETURNS(WEALD_NO_PROCESS, weald_process_spawn(&options, returns_what_it_receives, NULL, &other));
  options.flags = 4;
  RETURNS(WEALD_ARGUMENT, weald_process_spawn(&options, returns_what_it_receives, NULL, &other));
  DO(weald_process_send(process, "3", 1));
  CHECK(end_of(process).code == 3);
}

static void test(void) {
  for (int round = 0; round < 2; round++) {
    flags = round == 0 ? 0 : WEALD_OWN_THREAD;
    processes_end_together();
    CHECK(end_of(spawn(0, traps, NULL)).kind == WEALD_EXIT_CANCELLED);
    CHECK(end_of(spawn(0, hears_of_ends_that_links_made, NULL)).kind == WEALD_EXIT_RETURNED);
    links_meet_returns();
    CHECK(end_of(spawn(0, spawns_what_has_no_room, NULL)).code == 4);
    monitors();
    errors();
  }
}
