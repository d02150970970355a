/* lease: tests leases from an SQLite file in a temporary folder, and processes that share it. To start
 * another process, the program runs itself with the name of a task. */
#include "check.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ADDRESS = 512 };

static const char *program;
static char folder[] = "/tmp/polyflake-lease-XXXXXX";

/* Returns the address of a test's own store. */
static const char *address(const char *name, const char *parameters) {
  static char text[ADDRESS];
  snprintf(text, sizeof text, "sqlite://%s/%s.db?ttl=10m&%s", folder, name, parameters);
  return text;
}

static polyflake_status lease(const char *address, polyflake_snowflake **ids, polyflake_detail *detail) {
  polyflake_options *options = polyflake_options_new();
  polyflake_status status = polyflake_options_set(options, "lease", address, detail);
  if (status == POLYFLAKE_OK) {
    status = polyflake_snowflake_new(options, ids, detail);
  }
  polyflake_options_free(options);
  return status;
}

static polyflake_snowflake *leased(const char *address) {
  polyflake_snowflake *ids = NULL;
  polyflake_detail detail = fresh_detail();
  if (lease(address, &ids, &detail) != POLYFLAKE_OK) {
    give_up(detail.message);
  }
  return ids;
}

static void close_and_free(polyflake_snowflake *ids) {
  polyflake_snowflake_close(ids);
  polyflake_snowflake_free(ids);
}

static polyflake_lease lease_of(const polyflake_snowflake *ids) {
  polyflake_lease lease;
  fill_with_sentinel(&lease, sizeof lease);
  lease.size = sizeof lease;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_lease(ids, &lease, NULL));
  return lease;
}

static uint64_t node_of(const polyflake_snowflake *ids) {
  uint64_t node = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_node(ids, &node, NULL));
  return node;
}

static uint64_t node_in(const polyflake_snowflake *ids, uint64_t id) {
  polyflake_decoded decoded;
  decoded.size = sizeof decoded;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_decode(polyflake_snowflake_layout(ids), id, &decoded, NULL));
  return decoded.node;
}

static uint64_t id_from(const polyflake_snowflake *ids) {
  uint64_t id = 0;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(ids, &id, NULL));
  return id;
}

/* Runs this program with two arguments, waits for it to exit, and keeps its output. Returns its exit
 * status. */
static int other_process(const char *what, const char *address, char *said, size_t size) {
  int ends[2], status = -1;
  size_t length = 0;
  fflush(stdout);
  if (pipe(ends) != 0) {
    give_up("no pipe");
  }
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(program, program, what, address, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  for (ssize_t got = 1; got > 0 && length < size - 1; length += (size_t)(got > 0 ? got : 0)) {
    got = read(ends[0], said + length, size - 1 - length);
  }
  said[length] = '\0';
  close(ends[0]);
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* The other process's task: prints its node and an ID, or the error. */
static int take(const char *address, int closes) {
  polyflake_snowflake *ids = NULL;
  polyflake_detail detail = fresh_detail();
  if (lease(address, &ids, &detail) != POLYFLAKE_OK) {
    puts(detail.message);
    return 1;
  }
  printf("%" PRIu64 " %" PRIu64 "\n", node_of(ids), id_from(ids));
  if (closes) {
    close_and_free(ids);
  }
  return 0;
}

static size_t threads(void) {
  size_t count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (const struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
    count += task->d_name[0] != '.';
  }
  if (tasks) {
    closedir(tasks);
  }
  return count;
}

static void two_share(void) {
  begin("leases", "two Snowflakes share one, and repeat nothing");
  const char *where = address("share", "nodes=3-3");
  polyflake_snowflake *one = leased(where), *two = leased(where);
  uint64_t ids[2000];
  for (size_t n = 0; n < 1000; n++) {
    ids[2 * n] = id_from(one);
    ids[2 * n + 1] = id_from(two);
    CHECK_NUMBER(3, node_in(one, ids[2 * n]));
  }
  CHECK_NUMBER(3, node_of(one));
  CHECK(!has_repeats(ids, 2000));

  begin("leases", "a Snowflake tells its lease");
  polyflake_lease lease = lease_of(one);
  char store[ADDRESS];
  snprintf(store, sizeof store, "sqlite://%s/share.db", folder);
  CHECK_NUMBER(3, lease.node);
  CHECK_NUMBER(POLYFLAKE_LEASE_STATE_HELD, (uint64_t)lease.state);
  CHECK_TEXT("held", polyflake_lease_state_name(lease.state));
  CHECK(lease.left_ms > 0 && lease.left_ms <= 601000);
  CHECK(lease.bound_ms > UINT64_C(1700000000000));
  CHECK_TEXT(store, lease.store);
  polyflake_stats stats;
  stats.size = sizeof stats;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_stats(one, &stats, NULL));
  CHECK_NUMBER(0, stats.lease_losses);

  begin("leases", "the words of a leased Snowflake have its node");
  polyflake_words words;
  words.size = sizeof words;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_words(one, &words, NULL));
  CHECK_NUMBER(UINT64_C(3) << 12, *words.node);
  CHECK(*words.cursor < **words.limit);

  begin("leases", "one goes on when the other is closed");
  polyflake_snowflake_close(one);
  CHECK_TEXT("closed", polyflake_lease_state_name(lease_of(one).state));
  CHECK_NUMBER(0, **words.limit);
  CHECK_TEXT("held", polyflake_lease_state_name(lease_of(two).state));
  CHECK_NUMBER(3, node_in(two, id_from(two)));
  close_and_free(two);
  polyflake_snowflake_free(one);
}

static void one_node_for_two_processes(void) {
  char said[1024];
  begin("leases", "another process finds no node, and is told who has it");
  const char *where = address("one", "nodes=0-0&wait=100ms&label=somebody");
  polyflake_snowflake *ids = leased(where);
  uint64_t before = id_from(ids);
  CHECK_NUMBER(1, (uint64_t)other_process("take", where, said, sizeof said));
  CHECK(strncmp(said, "lease_unavailable: ", 19) == 0);
  CHECK(strstr(said, "no node is free: all 1 that may be leased from sqlite:///") != NULL);
  CHECK(strstr(said, "node 0, held by `somebody`, becomes free first, in ") != NULL);

  begin("leases", "and has it at once when the last Snowflake is closed");
  close_and_free(ids);
  CHECK_NUMBER(0, (uint64_t)other_process("take", address("one", "nodes=0-0"), said, sizeof said));
  uint64_t node = 1, id = 0;
  CHECK_NUMBER(2, (uint64_t)sscanf(said, "%" SCNu64 " %" SCNu64, &node, &id));
  CHECK_NUMBER(0, node);
  CHECK(id > before);
}

static void forks(void) {
  begin("leases", "after a fork the child's are forked, and it can have its own");
  const char *where = address("fork", "nodes=4-5");
  polyflake_snowflake *ids = leased(where);
  const uint64_t node = node_of(ids);
  int status = -1;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    uint64_t id;
    polyflake_lease lease;
    lease.size = sizeof lease;
    if (polyflake_next_id(ids, &id, NULL) != POLYFLAKE_FORKED) {
      _exit(1);
    }
    if (polyflake_snowflake_lease(ids, &lease, NULL) != POLYFLAKE_FORKED) {
      _exit(2);
    }
    /* Neither call touches the parent's lease. */
    close_and_free(ids);
    polyflake_snowflake *own = leased(where);
    if (node_of(own) == node || polyflake_next_id(own, &id, NULL) != POLYFLAKE_OK) {
      _exit(3);
    }
    close_and_free(own);
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_NUMBER(0, (uint64_t)WEXITSTATUS(status));
  CHECK_NUMBER(node, node_in(ids, id_from(ids)));
  CHECK_TEXT("held", polyflake_lease_state_name(lease_of(ids).state));
  close_and_free(ids);
}

static void freed(void) {
  begin("leases", "a Snowflake that was freed keeps its lease for the next one");
  const char *where = address("freed", "nodes=6-900");
  polyflake_snowflake *ids = leased(where);
  const uint64_t node = node_of(ids);
  for (int n = 0; n < 10; n++) {
    polyflake_snowflake_free(ids);
    ids = leased(where);
    CHECK_NUMBER(node, node_of(ids));
    id_from(ids);
  }
  close_and_free(ids);
}

static void ends(void) {
  char said[1024];
  begin("leases", "a program that closes nothing ends");
  CHECK_NUMBER(0, (uint64_t)other_process("leave", address("ends", "nodes=0-0"), said, sizeof said));
  CHECK(strncmp(said, "0 ", 2) == 0);
}

/* Waits for this number of threads: one that was joined may still be listed for a moment. */
static void until_threads(size_t expected) {
  const struct timespec pause = {0, 10000000};
  for (int tries = 0; threads() != expected && tries < 6000; tries++) {
    nanosleep(&pause, NULL);
  }
  CHECK_NUMBER(expected, threads());
}

static void no_thread_is_left(void) {
  begin("leases", "no thread is left after the last close");
  until_threads(1);
  const char *where = address("threads", "wait=20s");
  polyflake_snowflake *one = leased(where), *two = leased(where);
  until_threads(2);
  close_and_free(one);
  until_threads(2);
  close_and_free(two);
  until_threads(1);
}

static void warnings(void) {
  char said[1024];
  begin("leases", "warnings go to stderr until a program has said who listens");
  const char *where = address("warned", "init=always");
  CHECK_NUMBER(0, (uint64_t)other_process("aloud", where, said, sizeof said));
  CHECK(strncmp(said, "polyflake: init=always is set for sqlite:///", 44) == 0);
  CHECK_NUMBER(0, (uint64_t)other_process("listen", where, said, sizeof said));
  CHECK(strstr(said, "polyflake") == NULL);
}

struct seen {
  pthread_mutex_t lock;
  int acquired, released, others;
  uint64_t node;
};

static void listen(void *user, const polyflake_lease_event *event) {
  struct seen *seen = user;
  pthread_mutex_lock(&seen->lock);
  if (strcmp(event->kind, "acquired") == 0) {
    seen->acquired++;
  } else if (strcmp(event->kind, "released") == 0) {
    seen->released++;
  } else {
    seen->others++;
  }
  seen->node = event->has_node ? event->node : SENTINEL_ID;
  CHECK_NUMBER(sizeof *event, event->size);
  CHECK(!event->is_warning);
  CHECK(strncmp(event->store, "sqlite:///", 10) == 0);
  CHECK(strstr(event->message, "node 2 is ") != NULL);
  pthread_mutex_unlock(&seen->lock);
}

static void listeners(void) {
  begin("leases", "a listener is told what happens");
  static struct seen seen = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0};
  const char *where = address("listener", "nodes=2-2");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(listen, &seen, NULL));
  close_and_free(leased(where));
  CHECK_NUMBER(1, (uint64_t)seen.acquired);
  CHECK_NUMBER(1, (uint64_t)seen.released);
  CHECK_NUMBER(2, seen.node);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(NULL, NULL, NULL));
  close_and_free(leased(where));
  CHECK_NUMBER(2, (uint64_t)(seen.acquired + seen.released + seen.others));
}

/* A listener that does not return until it is allowed to. */
struct slow {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int is_inside, may_end;
  const char *where;
};

static void listen_slowly(void *user, const polyflake_lease_event *event) {
  struct slow *slow = user;
  (void)event;
  pthread_mutex_lock(&slow->lock);
  slow->is_inside = 1;
  pthread_cond_broadcast(&slow->changed);
  while (!slow->may_end) {
    pthread_cond_wait(&slow->changed, &slow->lock);
  }
  slow->is_inside = 0;
  pthread_mutex_unlock(&slow->lock);
}

static void *opens(void *user) {
  const struct slow *slow = user;
  close_and_free(leased(slow->where));
  return NULL;
}

static void *ends_it(void *user) {
  struct slow *slow = user;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(NULL, NULL, NULL));
  pthread_mutex_lock(&slow->lock);
  CHECK_NUMBER(0, (uint64_t)slow->is_inside);
  pthread_mutex_unlock(&slow->lock);
  return NULL;
}

static void a_fork_amid_a_listener(void) {
  begin(
      "leases", "a listener that was replaced is not called any more, and a forked child waits for no call"
  );
  static struct slow slow = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, NULL};
  static char where[ADDRESS];
  snprintf(where, sizeof where, "%s", address("amid", "nodes=2-3"));
  slow.where = where;
  pthread_t opening, ending;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(listen_slowly, &slow, NULL));
  CHECK(pthread_create(&opening, NULL, opens, &slow) == 0);
  pthread_mutex_lock(&slow.lock);
  while (!slow.is_inside) {
    pthread_cond_wait(&slow.changed, &slow.lock);
  }
  pthread_mutex_unlock(&slow.lock);
  CHECK(pthread_create(&ending, NULL, ends_it, &slow) == 0);
  /* Gives the thread time to start waiting for the listener to return. If the thread is not waiting yet, the
   * test covers less. */
  nanosleep(&(struct timespec){0, 100000000}, NULL);
  int status = -1;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    polyflake_lease_record record;
    record.size = sizeof record;
    if (polyflake_set_lease_listener(NULL, NULL, NULL) != POLYFLAKE_OK) {
      _exit(1);
    }
    if (polyflake_next_lease_event(&record, NULL) != POLYFLAKE_OK) {
      _exit(2);
    }
    close_and_free(leased(where));
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_NUMBER(0, (uint64_t)WEXITSTATUS(status));
  pthread_mutex_lock(&slow.lock);
  slow.may_end = 1;
  pthread_cond_broadcast(&slow.changed);
  pthread_mutex_unlock(&slow.lock);
  CHECK(pthread_join(ending, NULL) == 0);
  CHECK(pthread_join(opening, NULL) == 0);
}

static void kept_events(void) {
  begin("leases", "events are kept once they were asked for, and told too");
  const char *where = address("kept", "nodes=2-2");
  static struct seen seen = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0};
  polyflake_lease_record record;
  record.size = sizeof record;
  close_and_free(leased(where));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_lease_event(&record, NULL));
  CHECK_TEXT("", record.kind);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(listen, &seen, NULL));
  close_and_free(leased(where));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(NULL, NULL, NULL));
  for (int n = 0; n < 2; n++) {
    CHECK_STATUS(POLYFLAKE_OK, polyflake_next_lease_event(&record, NULL));
    CHECK_TEXT(n == 0 ? "acquired" : "released", record.kind);
    CHECK_NUMBER(1, (uint64_t)record.has_node);
    CHECK_NUMBER(2, record.node);
    CHECK(!record.is_warning);
    CHECK(strstr(record.message, "node 2 is ") != NULL);
    CHECK(strstr(record.store, "/kept.db") != NULL);
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_lease_event(&record, NULL));
  CHECK_TEXT("", record.kind);
  CHECK_NUMBER(1, (uint64_t)seen.acquired);
  CHECK_NUMBER(1, (uint64_t)seen.released);

  begin("leases", "at most 100 events are kept");
  for (int n = 0; n < 60; n++) {
    close_and_free(leased(where));
  }
  int count = -1;
  do {
    CHECK_STATUS(POLYFLAKE_OK, polyflake_next_lease_event(&record, NULL));
    count++;
  } while (record.kind[0]);
  CHECK_NUMBER(100, (uint64_t)count);
}

static void *take_many(void *user) {
  uint64_t *ids = user;
  polyflake_snowflake *own = leased((const char *)(uintptr_t)ids[0]);
  for (size_t n = 0; n < 1000; n++) {
    if (polyflake_next_id(own, &ids[n], NULL) != POLYFLAKE_OK) {
      give_up("no ID");
    }
  }
  close_and_free(own);
  return NULL;
}

static void many_threads(void) {
  begin("leases", "threads that open and close Snowflakes on one address repeat nothing");
  static uint64_t ids[4000];
  pthread_t tasks[4];
  char where[ADDRESS];
  snprintf(where, sizeof where, "%s", address("many", "nodes=8-8"));
  for (size_t n = 0; n < 4; n++) {
    ids[1000 * n] = (uint64_t)(uintptr_t)where;
    if (pthread_create(&tasks[n], NULL, take_many, &ids[1000 * n]) != 0) {
      give_up("no thread");
    }
  }
  for (size_t n = 0; n < 4; n++) {
    pthread_join(tasks[n], NULL);
  }
  CHECK(!has_repeats(ids, 4000));
}

static void wrong_options(void) {
  static const struct {
    const char *address;
    polyflake_status status;
    const char *says;
  } wrong[] = {
      {"", POLYFLAKE_INVALID_OPTION, "lease is ``"},
      {"nothing", POLYFLAKE_INVALID_OPTION, "lease: "},
      {"gopher://host/0", POLYFLAKE_INVALID_OPTION, "no such kind of store"},
      {"sqlite://leases.db", POLYFLAKE_INVALID_OPTION, "whole path"},
      {"sqlite:///nowhere/at/all/leases.db?wait=0s", POLYFLAKE_LEASE_UNAVAILABLE, "/nowhere/at/all"},
      {"redis://u:geheim@127.0.0.1:1/0?wait=0s", POLYFLAKE_LEASE_UNAVAILABLE, "cannot be reached"},
  };
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    polyflake_snowflake *none = NULL;
    polyflake_detail detail = fresh_detail();
    begin("leases, wrong options", wrong[n].address);
    CHECK_STATUS(wrong[n].status, lease(wrong[n].address, &none, &detail));
    CHECK(none == NULL);
    CHECK(strncmp(detail.message, polyflake_status_name(wrong[n].status), 12) == 0);
    if (!strstr(detail.message, wrong[n].says)) {
      CHECK_TEXT(wrong[n].says, detail.message);
    }
    CHECK(strstr(detail.message, "geheim") == NULL);
  }
}

static void remove_folder(void) {
  DIR *files = opendir(folder);
  for (const struct dirent *file; files && (file = readdir(files)) != NULL;) {
    char path[ADDRESS];
    snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
    unlink(path);
  }
  if (files) {
    closedir(files);
  }
  rmdir(folder);
}

int main(int argc, char **argv) {
  program = argv[0];
  if (argc == 3 && strcmp(argv[1], "listen") == 0) {
    dup2(STDOUT_FILENO, STDERR_FILENO);
    CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(NULL, NULL, NULL));
  }
  if (argc == 3 && strcmp(argv[1], "aloud") == 0) {
    dup2(STDOUT_FILENO, STDERR_FILENO);
  }
  if (argc == 3) {
    return take(argv[2], strcmp(argv[1], "take") == 0);
  }
  if (!mkdtemp(folder)) {
    give_up("no folder");
  }
  two_share();
  one_node_for_two_processes();
  forks();
  freed();
  no_thread_is_left();
  warnings();
  listeners();
  a_fork_amid_a_listener();
  kept_events();
  many_threads();
  ends();
  wrong_options();
  remove_folder();
  return finish(21);
}
