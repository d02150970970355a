/* counter: tests counters in a Redis server, which this program starts in a temporary folder, and processes
 * that share them. To start another process, the program runs itself with the name of a task. */
#include "check.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ADDRESS = 512 };

static const char *program;
static char folder[] = "/tmp/polyflake-counter-XXXXXX";
static char port[8];
static char address[ADDRESS];
static pid_t server;

/* ---- the server ---- */

static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static struct sockaddr_in loopback(int number) {
  struct sockaddr_in where;
  memset(&where, 0, sizeof where);
  where.sin_family = AF_INET;
  where.sin_port = htons((uint16_t)number);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return where;
}

// Finds a free port below the range for outgoing connections, so it is still free when the server restarts.
static void find_port(void) {
  for (int tries = 0; tries < 2768; tries++) {
    int number = 30000 + (getpid() + tries) % 2768;
    struct sockaddr_in where = loopback(number);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int is_free = listener >= 0 && bind(listener, (struct sockaddr *)&where, sizeof where) == 0;
    close(listener);
    if (is_free) {
      snprintf(port, sizeof port, "%d", number);
      return;
    }
  }
  give_up("no port");
}

static void stop_server(void) {
  if (server > 0) {
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    server = 0;
  }
}

static void start_server(void) {
  fflush(stdout);
  server = fork();
  if (server == 0) {
    /* The server exits when this program does, even if this program is killed. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!freopen("/dev/null", "w", stdout)) {
      _exit(126);
    }
    execlp(
        "redis-server",
        "redis-server",
        "--port",
        port,
        "--bind",
        "127.0.0.1",
        "--dir",
        folder,
        "--save",
        "",
        "--appendonly",
        "yes",
        /* By default, an acknowledged write may not be in the file yet when the server is killed. */
        "--appendfsync",
        "always",
        (char *)NULL
    );
    _exit(127);
  }
  struct sockaddr_in where = loopback(atoi(port));
  for (int tries = 0; tries < 3000; tries++) {
    int client = socket(AF_INET, SOCK_STREAM, 0);
    int connected = connect(client, (struct sockaddr *)&where, sizeof where) == 0;
    close(client);
    if (connected) {
      return;
    }
    sleep_ms(10);
  }
  give_up("redis-server did not start");
}

static void remove_files(const char *of) {
  DIR *files = opendir(of);
  for (const struct dirent *file; files && (file = readdir(files)) != NULL;) {
    char path[ADDRESS];
    snprintf(path, sizeof path, "%s/%s", of, file->d_name);
    unlink(path);
  }
  if (files) {
    closedir(files);
  }
  rmdir(of);
}

static void clean_up(void) {
  char within[ADDRESS];
  stop_server();
  snprintf(within, sizeof within, "%s/appendonlydir", folder);
  remove_files(within);
  remove_files(folder);
}

/* ---- counters ---- */

/* The options of a counter: its name, then pairs of names and values, then NULL. */
static polyflake_status
open_with(polyflake_counter **counter, polyflake_detail *detail, const char *name, const char *const *pairs) {
  polyflake_options *options = polyflake_options_new();
  polyflake_status status = polyflake_options_set(options, "name", name, detail);
  for (; status == POLYFLAKE_OK && *pairs; pairs += 2) {
    status = polyflake_options_set(options, pairs[0], pairs[1], detail);
  }
  if (status == POLYFLAKE_OK) {
    status = polyflake_counter_open(options, counter, detail);
  }
  polyflake_options_free(options);
  return status;
}

static polyflake_counter *opened(const char *name, const char *option, const char *value) {
  polyflake_counter *counter = NULL;
  polyflake_detail detail = fresh_detail();
  // On a busy machine, the store may take seconds to answer.
  const char *const pairs[] = {"max_wait_ms", "60000", "store", address, option, value, NULL};
  if (open_with(&counter, &detail, name, pairs) != POLYFLAKE_OK) {
    give_up(detail.message);
  }
  return counter;
}

static void close_and_free(polyflake_counter *counter) {
  polyflake_counter_close(counter);
  polyflake_counter_free(counter);
}

static uint64_t next(const polyflake_counter *counter) {
  uint64_t number = 0;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_next_id(counter, &number, NULL));
  return number;
}

static uint64_t peeked(const polyflake_counter *counter) {
  uint64_t number = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_peek(counter, &number, NULL));
  return number;
}

static polyflake_counter_counts counts_of(const polyflake_counter *counter) {
  polyflake_counter_counts counts;
  fill_with_sentinel(&counts, sizeof counts);
  counts.size = sizeof counts;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_stats(counter, &counts, NULL));
  return counts;
}

/* ---- the tests ---- */

static void numbers(void) {
  uint64_t number = 0, many[500];
  polyflake_detail detail = fresh_detail();
  begin("counters", "count from 1");
  polyflake_counter *orders = opened("orders", NULL, NULL);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_next_id(orders, &number, &detail));
  CHECK_NUMBER(1, number);
  CHECK(is_untouched(&detail));
  CHECK_NUMBER(2, polyflake_counter_next_id_or_zero(orders));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_try_next_id(orders, &number, NULL));
  CHECK_NUMBER(3, number);
  CHECK_NUMBER(4, polyflake_counter_try_next_id_or_zero(orders));
  CHECK_TEXT("orders", polyflake_counter_name(orders));

  begin("counters", "of one name share what is in hand");
  polyflake_counter *same = opened("orders", NULL, NULL);
  CHECK_NUMBER(5, next(same));
  CHECK_NUMBER(6, next(orders));
  close_and_free(same);
  CHECK_NUMBER(7, next(orders));

  begin("counters", "fill an array");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_fill(orders, 500, many, NULL));
  for (size_t n = 0; n < 500; n++) {
    CHECK_NUMBER(8 + n, many[n]);
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_fill(orders, 0, NULL, NULL));
  CHECK_NUMBER(508, next(orders));

  begin("counters", "give a block of numbers that follow each other");
  uint64_t first = 0;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_next_block(orders, 2000, &first, NULL));
  CHECK(first > 508);
  uint64_t after = next(orders);
  CHECK(after > 508 && (after < first || after >= first + 2000));

  begin("counters", "tell what they count");
  polyflake_counter_counts counts = counts_of(orders);
  CHECK(counts.in_hand > 0);
  CHECK(counts.step >= 100 && counts.step <= 1000000);
  CHECK(counts.segments >= 2);
  CHECK(counts.waits < 1000);
  CHECK(counts.skipped < 1000);
  close_and_free(orders);

  begin("counters", "go on without a gap after the last is closed");
  orders = opened("reopened", "step", "50");
  for (uint64_t n = 1; n <= 3; n++) {
    CHECK_NUMBER(n, next(orders));
  }
  close_and_free(orders);
  orders = opened("reopened", "step", "50");
  number = next(orders);
  /* Only the unused part of the last segment is returned, and another may have been fetched before it. */
  CHECK(number >= 4 && number <= 51);
  close_and_free(orders);

  begin("counters", "begin where they are told to");
  orders = opened("invoices", "start", "1000");
  CHECK_NUMBER(1000, next(orders));
  close_and_free(orders);
}

static void one_by_one(void) {
  begin("counters", "with a step of 1, ask the store for each");
  uint64_t number = SENTINEL_ID;
  polyflake_detail detail = fresh_detail();
  polyflake_counter *counter = opened("one", "step", "1");
  for (uint64_t n = 1; n <= 20; n++) {
    CHECK_NUMBER(n, next(counter));
    CHECK_NUMBER(n, peeked(counter));
  }
  CHECK_NUMBER(21, polyflake_counter_next_id_or_zero(counter));
  CHECK_STATUS(POLYFLAKE_COUNTER_UNAVAILABLE, polyflake_counter_try_next_id(counter, &number, &detail));
  CHECK_NUMBER(SENTINEL_ID, number);
  CHECK(strncmp(detail.message, "counter_unavailable: ", 21) == 0);
  CHECK_NUMBER(0, polyflake_counter_try_next_id_or_zero(counter));
  CHECK_NUMBER(0, counts_of(counter).in_hand);
  CHECK_NUMBER(1, counts_of(counter).step);
  close_and_free(counter);
}

static void on_the_store(void) {
  begin("counters", "peek, raise and remove");
  int existed = 5;
  polyflake_detail detail = fresh_detail();
  polyflake_counter *counter = opened("mended", "step", "10");
  CHECK_NUMBER(1, next(counter));
  CHECK(peeked(counter) >= 10);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_raise(counter, 5000, NULL));
  CHECK(peeked(counter) >= 5000);
  CHECK(next(counter) > 5000);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_raise(counter, 7, NULL));
  CHECK(next(counter) > 5001);
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_raise(counter, 0, &detail));
  CHECK(strstr(detail.message, "number is 0") != NULL);
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_raise(counter, UINT64_C(1) << 63, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_counter_remove(counter, &existed, NULL));
  CHECK_NUMBER(1, (uint64_t)existed);
  CHECK_NUMBER(0, polyflake_counter_next_id_or_zero(counter));
  close_and_free(counter);
  counter = opened("mended", "step", "10");
  CHECK_NUMBER(1, next(counter));
  close_and_free(counter);
}

static void closed(void) {
  begin("counters", "that are closed say so");
  uint64_t number = SENTINEL_ID;
  int existed = 5;
  polyflake_counter_counts counts;
  fill_with_sentinel(&counts, sizeof counts);
  counts.size = sizeof counts;
  polyflake_counter *counter = opened("closed", NULL, NULL);
  CHECK_NUMBER(1, next(counter));
  polyflake_counter_close(counter);
  polyflake_counter_close(counter);
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_counter_next_id(counter, &number, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_counter_try_next_id(counter, &number, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_counter_fill(counter, 1, &number, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_counter_next_block(counter, 1, &number, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_counter_peek(counter, &number, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_counter_raise(counter, 1, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_counter_remove(counter, &existed, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_counter_stats(counter, &counts, NULL));
  CHECK_NUMBER(0, polyflake_counter_next_id_or_zero(counter));
  CHECK_NUMBER(0, polyflake_counter_try_next_id_or_zero(counter));
  CHECK_TEXT("closed", polyflake_counter_name(counter));
  CHECK_NUMBER(SENTINEL_ID, number);
  CHECK_NUMBER(5, (uint64_t)existed);
  CHECK(is_sentinel((char *)&counts + sizeof counts.size, sizeof counts - sizeof counts.size));
  polyflake_counter_free(counter);
}

static void misused(void) {
  polyflake_counter *counter = opened("misused", NULL, NULL);
  polyflake_options *options = polyflake_options_new();
  polyflake_counter_counts counts;
  uint64_t number = SENTINEL_ID;
#define CHECK_NULL(what, call)                                                                               \
  do {                                                                                                       \
    polyflake_detail detail = fresh_detail();                                                                \
    begin("NULL, with a counter", #call);                                                                    \
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, call);                                                            \
    CHECK(strstr(detail.message, what " is NULL") != NULL);                                                  \
  } while (0)
  CHECK_NULL("counter", polyflake_counter_open(options, NULL, &detail));
  CHECK_NULL("number", polyflake_counter_next_id(counter, NULL, &detail));
  CHECK_NULL("number", polyflake_counter_try_next_id(counter, NULL, &detail));
  CHECK_NULL("numbers", polyflake_counter_fill(counter, 1, NULL, &detail));
  CHECK_NULL("first", polyflake_counter_next_block(counter, 1, NULL, &detail));
  CHECK_NULL("number", polyflake_counter_peek(counter, NULL, &detail));
  CHECK_NULL("existed", polyflake_counter_remove(counter, NULL, &detail));
  CHECK_NULL("struct", polyflake_counter_stats(counter, NULL, &detail));
  polyflake_options_free(options);

  begin("counters", "check sizes");
  static const int64_t wrong[] = {0, -1, INT64_MIN, POLYFLAKE_MAX_BATCH + 1, INT64_MAX};
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_next_block(counter, wrong[n], &number, NULL));
  }
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_fill(counter, SIZE_MAX / 8, &number, NULL));
  static const size_t sizes[] = {0, sizeof(size_t), sizeof counts - sizeof(uint64_t), sizeof counts - 1};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    fill_with_sentinel(&counts, sizeof counts);
    counts.size = sizes[n];
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_stats(counter, &counts, NULL));
    CHECK(is_sentinel((char *)&counts + sizeof counts.size, sizeof counts - sizeof counts.size));
  }
  CHECK_NUMBER(SENTINEL_ID, number);
  begin("counters", "failed calls took no number and removed nothing");
  CHECK_NUMBER(1, next(counter));
  close_and_free(counter);
}

static void wrong_options(void) {
  static char long_name[1001];
  memset(long_name, 'n', sizeof long_name - 1);
  const struct {
    const char *counter, *option, *value, *says;
  } wrong[] = {
      {"wrong", "step", "0", "step is 0"},
      {"wrong", "step", "1099511627776", "step is 1099511627776"},
      {"wrong", "step", "many", "step is "},
      {"wrong", "start", "0", "start is 0"},
      {"wrong", "start", "9223372036854775808", "start is 9223372036854775808"},
      {"wrong", "max_wait_ms", "-1", "max_wait_ms is -1"},
      {"wrong", "node", "7", "there is no option"},
      {"wrong", "store", "gopher://host/0", "store: "},
      {"wrong", "store", "", "store: "},
      {"", NULL, NULL, "0 characters"},
      {long_name, NULL, NULL, "1000 characters"},
      {"a\nb", NULL, NULL, "control character"},
      {"\xff", NULL, NULL, "not UTF-8"},
      {"wrong", "step", "\xff", "not UTF-8"},
      {"wrong", "\xff", "1", "there is no option"},
      {"wrong", "redis://user:secret@host/0", "store", "there is no option `redis://…`"},
      {"wrong", "step", "redis://user:secret@host/0", "step is redis://…;"},
  };
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    polyflake_counter *none = NULL;
    polyflake_detail detail = fresh_detail();
    const char *const pairs[] = {"store", address, wrong[n].option, wrong[n].value, NULL};
    begin("counters, wrong options", wrong[n].says);
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, open_with(&none, &detail, wrong[n].counter, pairs));
    CHECK(none == NULL);
    CHECK(strncmp(detail.message, "invalid_option: ", 16) == 0);
    if (!strstr(detail.message, wrong[n].says)) {
      CHECK_TEXT(wrong[n].says, detail.message);
    }
  }
  polyflake_counter *none = NULL;
  polyflake_detail detail = fresh_detail();
  static const char *const nothing[] = {NULL};
  begin("counters, wrong options", "no store, and no name");
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, open_with(&none, &detail, "wrong", nothing));
  CHECK(strstr(detail.message, "store is missing") != NULL);
  polyflake_options *options = polyflake_options_new();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "store", address, NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_open(options, &none, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_bytes(options, "name", "a\0b", 3, NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_open(options, &none, &detail));
  CHECK(strstr(detail.message, "control character") != NULL);
  polyflake_options_free(options);

  begin("counters, wrong options", "those of a Snowflake");
  polyflake_layout *layout = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_parse("twitter", &layout, NULL));
  for (int n = 0; n < 3; n++) {
    options = polyflake_options_new();
    polyflake_options_set(options, "name", "wrong", NULL);
    polyflake_options_set(options, "store", address, NULL);
    if (n == 0)
      polyflake_options_set_node_field(options, "worker", "7", NULL);
    if (n == 1)
      polyflake_options_set_layout(options, layout, NULL);
    if (n == 2)
      polyflake_options_set_clock(options, NULL, NULL, NULL);
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_open(options, &none, &detail));
    CHECK(strstr(detail.message, "there is no option") != NULL);
    polyflake_options_free(options);
  }
  polyflake_layout_free(layout);

  begin("counters, wrong options", "another step than this process uses");
  polyflake_counter *counter = opened("stepped", "step", "10");
  const char *const other_step[] = {"store", address, "step", "20", NULL};
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, open_with(&none, &detail, "stepped", other_step));
  CHECK(strstr(detail.message, "step=10") != NULL && strstr(detail.message, "step=20") != NULL);
  close_and_free(counter);

  begin("counters, wrong options", "an address where nobody answers, without its secret");
  static const char *const nowhere[] = {
      "store", "redis://u:geheim@127.0.0.1:1/0", "max_wait_ms", "100", NULL};
  CHECK_STATUS(POLYFLAKE_COUNTER_UNAVAILABLE, open_with(&none, &detail, "wrong", nowhere));
  CHECK(strstr(detail.message, "127.0.0.1:1") != NULL);
  CHECK(strstr(detail.message, "geheim") == NULL);
  CHECK(none == NULL);
}

static void several_stores(void) {
  begin("counters", "in two stores, give each number once, and no blocks");
  char other[ADDRESS];
  uint64_t many[200];
  polyflake_counter *counter = NULL;
  polyflake_detail detail = fresh_detail();
  snprintf(other, sizeof other, "redis://127.0.0.1:%s/1", port);
  const char *const pairs[] = {"max_wait_ms", "60000", "store", address, "store", other, NULL};
  if (open_with(&counter, &detail, "two", pairs) != POLYFLAKE_OK) {
    give_up(detail.message);
  }
  for (size_t n = 0; n < 200; n++) {
    many[n] = next(counter);
  }
  CHECK(!has_repeats(many, 200));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_next_block(counter, 5, &many[0], &detail));
  CHECK(strstr(detail.message, "several stores") != NULL);
  close_and_free(counter);
}

static void *take_many(void *user) {
  uint64_t *many = user;
  polyflake_counter *own = opened("threads", "step", "100");
  for (size_t n = 0; n < 5000; n++) {
    if (polyflake_counter_next_id(own, &many[n], NULL) != POLYFLAKE_OK) {
      give_up("no number");
    }
    if (n > 0 && many[n] <= many[n - 1]) {
      give_up("not increasing");
    }
  }
  close_and_free(own);
  return NULL;
}

static void many_threads(void) {
  begin("counters", "give threads increasing numbers, each once");
  static uint64_t many[20000];
  pthread_t tasks[4];
  for (size_t n = 0; n < 4; n++) {
    if (pthread_create(&tasks[n], NULL, take_many, &many[5000 * n]) != 0) {
      give_up("no thread");
    }
  }
  for (size_t n = 0; n < 4; n++) {
    pthread_join(tasks[n], NULL);
  }
  CHECK(!has_repeats(many, 20000));
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

/* Waits for this number of threads: one that was joined may still be listed for a moment. */
static void until_threads(size_t expected) {
  for (int tries = 0; threads() != expected && tries < 6000; tries++) {
    sleep_ms(10);
  }
  CHECK_NUMBER(expected, threads());
}

static void freed(void) {
  begin("counters", "that are freed keep what is in hand for the next one");
  polyflake_counter *counter = opened("freed", "step", "1000");
  for (uint64_t n = 1; n <= 20; n++) {
    CHECK_NUMBER(n, next(counter));
    polyflake_counter_free(counter);
    counter = opened("freed", "step", "1000");
  }
  CHECK(counts_of(counter).segments <= 2);
  close_and_free(counter);

  begin("counters", "leave no thread after the last close");
  until_threads(1);
  polyflake_counter *one = opened("left", NULL, NULL), *two = opened("left", NULL, NULL);
  until_threads(2);
  close_and_free(one);
  until_threads(2);
  close_and_free(two);
  until_threads(1);
}

static void forks(void) {
  begin("counters", "after a fork, the child's gets numbers of its own");
  polyflake_counter *counter = opened("forked", "step", "50");
  uint64_t all[2000];
  int ends[2], status = -1;
  all[0] = next(counter);
  fflush(stdout);
  if (pipe(ends) != 0) {
    give_up("no pipe");
  }
  pid_t child = fork();
  if (child == 0) {
    uint64_t own[1000];
    for (size_t n = 0; n < 1000; n++) {
      if (polyflake_counter_next_id(counter, &own[n], NULL) != POLYFLAKE_OK) {
        _exit(1);
      }
    }
    if (write(ends[1], own, sizeof own) != (ssize_t)sizeof own) {
      _exit(2);
    }
    close_and_free(counter);
    _exit(0);
  }
  for (size_t n = 1; n < 1000; n++) {
    all[n] = next(counter);
  }
  close(ends[1]);
  char *to = (char *)&all[1000];
  const char *end = (const char *)&all[2000];
  for (ssize_t got = 1; got > 0 && to<end; to += got> 0 ? got : 0) {
    got = read(ends[0], to, (size_t)(end - to));
  }
  close(ends[0]);
  CHECK(to == end);
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_NUMBER(0, (uint64_t)WEXITSTATUS(status));
  CHECK(!has_repeats(all, 2000));
  close_and_free(counter);
}

struct seen {
  pthread_mutex_t lock;
  int unreachable, reachable, with_node;
};

static void listen_to(void *user, const polyflake_lease_event *event) {
  struct seen *seen = user;
  pthread_mutex_lock(&seen->lock);
  seen->unreachable += strcmp(event->kind, "store_unreachable") == 0;
  seen->reachable += strcmp(event->kind, "store_reachable") == 0;
  seen->with_node += event->has_node;
  pthread_mutex_unlock(&seen->lock);
}

static void store_down(void) {
  static struct seen seen = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0};
  uint64_t number = SENTINEL_ID;
  polyflake_detail detail = fresh_detail();
  begin("counters", "go on from what is in hand while the store is down");
  const char *const one_by_one[] = {"store", address, "step", "1", "max_wait_ms", "200", NULL};
  polyflake_counter *counter = NULL, *kept = opened("kept", "step", "1000");
  polyflake_counter *patient = opened("down", "step", "1");
  const uint64_t last = next(patient);
  /* Opens at once, because the other one is open. */
  if (open_with(&counter, &detail, "down", one_by_one) != POLYFLAKE_OK) {
    give_up(detail.message);
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(listen_to, &seen, NULL));
  CHECK_NUMBER(1, next(kept));
  stop_server();
  for (uint64_t n = 2; n <= 100; n++) {
    CHECK_NUMBER(n, next(kept));
  }

  begin("counters", "are unavailable when the store is down, and recover by themselves");
  CHECK_STATUS(POLYFLAKE_COUNTER_UNAVAILABLE, polyflake_counter_next_id(counter, &number, &detail));
  CHECK_NUMBER(SENTINEL_ID, number);
  CHECK(strncmp(detail.message, "counter_unavailable: ", 21) == 0);
  CHECK_NUMBER(0, polyflake_counter_next_id_or_zero(counter));
  start_server();
  for (int tries = 0; tries < 300 && number == SENTINEL_ID; tries++) {
    polyflake_counter_next_id(counter, &number, &detail);
  }
  CHECK(number > last && number != SENTINEL_ID);
  CHECK(next(patient) > number);
  close_and_free(patient);
  close_and_free(counter);
  close_and_free(kept);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(NULL, NULL, NULL));

  begin("counters", "tell the listener, without a node");
  CHECK(seen.unreachable > 0);
  CHECK(seen.reachable > 0);
  CHECK_NUMBER(0, (uint64_t)seen.with_node);
}

/* The other process's task: takes a number, prints it, and exits without closing anything. */
static int leave(const char *store) {
  snprintf(address, sizeof address, "%s", store);
  printf("%" PRIu64 "\n", next(opened("ends", NULL, NULL)));
  return 0;
}

static void ends(void) {
  begin("counters", "a program that closes nothing ends");
  int status = -1;
  uint64_t number = 0;
  polyflake_counter *counter = opened("ends", NULL, NULL);
  CHECK_NUMBER(1, next(counter));
  int ends[2];
  fflush(stdout);
  if (pipe(ends) != 0) {
    give_up("no pipe");
  }
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(program, program, "leave", address, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  FILE *said = fdopen(ends[0], "r");
  CHECK(said && fscanf(said, "%" SCNu64, &number) == 1);
  if (said) {
    fclose(said);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(number > 100);
  CHECK_NUMBER(2, next(counter));
  close_and_free(counter);
}

int main(int argc, char **argv) {
  program = argv[0];
  if (argc == 3) {
    return leave(argv[2]);
  }
  if (!mkdtemp(folder)) {
    give_up("no folder");
  }
  atexit(clean_up);
  find_port();
  snprintf(address, sizeof address, "redis://127.0.0.1:%s/0", port);
  start_server();
  numbers();
  one_by_one();
  on_the_store();
  closed();
  misused();
  wrong_options();
  several_stores();
  many_threads();
  freed();
  forks();
  ends();
  store_down();
  return finish(41);
}
