/* threads [IDS_PER_THREAD]: tests four threads that share one Snowflake, or several Snowflakes on one
 * node. */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, BATCH = 1000 };

/* The greatest ID that any call has returned. */
static uint64_t greatest;

struct task {
  pthread_t thread;
  const polyflake_snowflake *snowflake;
  size_t n;
  uint64_t *ids;
  polyflake_status status;
  /* How many IDs were not greater than all IDs returned before their call began. */
  size_t out_of_order;
};

static void start(pthread_t *thread, void *(*run)(void *), void *task) {
  if (pthread_create(thread, NULL, run, task) != 0) {
    give_up("no thread");
  }
}

static void join(struct task tasks[THREADS], polyflake_status expected) {
  for (size_t t = 0; t < THREADS; t++) {
    pthread_join(tasks[t].thread, NULL);
    CHECK_STATUS(expected, tasks[t].status);
  }
}

static void returned(uint64_t id) {
  uint64_t seen = __atomic_load_n(&greatest, __ATOMIC_SEQ_CST);
  while (seen < id &&
         !__atomic_compare_exchange_n(&greatest, &seen, id, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
}

/* Takes the first half as single IDs, and the second in batches. */
static void *take(void *user) {
  struct task *task = user;
  size_t done = 0;
  while (done < task->n && task->status == POLYFLAKE_OK) {
    size_t left = task->n - done;
    size_t now = done < task->n / 2 ? 1 : left < BATCH ? left : BATCH;
    uint64_t before = __atomic_load_n(&greatest, __ATOMIC_SEQ_CST);
    task->status = now == 1 ? polyflake_next_id(task->snowflake, &task->ids[done], NULL)
                            : polyflake_fill(task->snowflake, now, &task->ids[done], NULL);
    if (task->status == POLYFLAKE_OK) {
      task->out_of_order += task->ids[done] <= before;
      returned(task->ids[done + now - 1]);
    }
    done += now;
  }
  return NULL;
}

static polyflake_snowflake *
snowflake_of(const char *layout, const char *node, polyflake_clock clock, void *user) {
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *snowflake = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "layout", layout, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", node, NULL));
  /* On a busy machine, a thread may have to wait for a long time. */
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "max_wait_ms", "600000", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_clock(options, clock, user, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_new(options, &snowflake, NULL));
  polyflake_options_free(options);
  if (!snowflake) {
    give_up("no Snowflake");
  }
  return snowflake;
}

/* Sorts ids, and returns 0 if any tick has more IDs than the sequence can number. */
static int within_capacity(uint64_t *ids, size_t n, const polyflake_snowflake *snowflake) {
  polyflake_layout_info info;
  info.size = sizeof info;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_properties(polyflake_snowflake_layout(snowflake), &info, NULL));
  CHECK(!has_repeats(ids, n));
  uint64_t in_tick = 0;
  for (size_t i = 0; i < n; i++) {
    int same_tick = i > 0 && ids[i] >> info.timestamp_shift == ids[i - 1] >> info.timestamp_shift;
    in_tick = same_tick ? in_tick + 1 : 1;
    if (in_tick > info.ids_per_tick) {
      return 0;
    }
  }
  return 1;
}

/* Thread n takes its IDs from snowflakes[n]. */
static void run(polyflake_snowflake *const snowflakes[THREADS], size_t n) {
  struct task tasks[THREADS];
  uint64_t *ids = malloc(THREADS * n * sizeof *ids);
  if (!ids) {
    give_up("no memory");
  }
  greatest = 0;
  memset(tasks, 0, sizeof tasks);
  for (size_t t = 0; t < THREADS; t++) {
    tasks[t].snowflake = snowflakes[t];
    tasks[t].n = n;
    tasks[t].ids = ids + t * n;
    start(&tasks[t].thread, take, &tasks[t]);
  }
  join(tasks, POLYFLAKE_OK);
  for (size_t t = 0; t < THREADS; t++) {
    CHECK_NUMBER(0, tasks[t].out_of_order);
    size_t not_increasing = 0;
    for (size_t i = 1; i < n; i++) {
      not_increasing += tasks[t].ids[i] <= tasks[t].ids[i - 1];
    }
    CHECK_NUMBER(0, not_increasing);
  }
  CHECK(within_capacity(ids, THREADS * n, snowflakes[0]));
  free(ids);
}

static void one_snowflake(const char *clock_name, polyflake_clock clock, void *user, size_t n) {
  begin("four threads on one Snowflake", clock_name);
  polyflake_snowflake *snowflake = snowflake_of("twitter", "21", clock, user);
  polyflake_snowflake *const all[THREADS] = {snowflake, snowflake, snowflake, snowflake};
  run(all, n);
  polyflake_snowflake_free(snowflake);
}

/* Advances by 1 ms every 16 readings, no matter which thread reads it. */
static int counting_clock(void *user, int64_t *unix_ms) {
  *unix_ms = INT64_C(1700000000000) + __atomic_fetch_add((int64_t *)user, 1, __ATOMIC_RELAXED) / 16;
  return 0;
}

static void one_node(size_t n) {
  begin("four threads", "each with its own Snowflake, all on one node");
  /* leaf's IDs have the same bits as twitter's, so they could be equal too. */
  static const char *const layouts[THREADS] = {"twitter", "leaf", "twitter", "leaf"};
  polyflake_snowflake *snowflakes[THREADS];
  for (size_t t = 0; t < THREADS; t++) {
    snowflakes[t] = snowflake_of(layouts[t], "22", NULL, NULL);
  }
  run(snowflakes, n);
  for (size_t t = 0; t < THREADS; t++) {
    polyflake_snowflake_free(snowflakes[t]);
  }
}

static void shared_cursor(void) {
  begin("one thread", "Snowflakes on one node share the cursor, even after one is freed and another made");
  uint64_t last = 0;
  polyflake_snowflake *kept = snowflake_of("twitter", "23", NULL, NULL);
  for (int round = 0; round < 100; round++) {
    uint64_t from_kept = 0, from_new = 0;
    polyflake_snowflake *made = snowflake_of(round % 2 ? "twitter" : "leaf", "23", NULL, NULL);
    CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(kept, &from_kept, NULL));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(made, &from_new, NULL));
    CHECK(last < from_kept && from_kept < from_new);
    last = from_new;
    polyflake_snowflake_free(made);
  }
  polyflake_snowflake_free(kept);

  begin("one thread", "other bounds on an existing cursor are an error");
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *none = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "23", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "max_ahead_ms", "1", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_snowflake_new(options, &none, NULL));
  CHECK(none == NULL);
  polyflake_options_free(options);
}

static void *make_and_take(void *user) {
  struct task *task = user;
  for (size_t i = 0; i < task->n && task->status == POLYFLAKE_OK; i++) {
    polyflake_options *options = polyflake_options_new();
    polyflake_snowflake *snowflake = NULL;
    polyflake_options_set(options, "node", "24", NULL);
    polyflake_options_set(options, "max_wait_ms", "600000", NULL);
    task->status = polyflake_snowflake_new(options, &snowflake, NULL);
    polyflake_options_free(options);
    if (task->status == POLYFLAKE_OK) {
      task->status = polyflake_next_id(snowflake, &task->ids[i], NULL);
    }
    polyflake_snowflake_free(snowflake);
  }
  return NULL;
}

static void made_by_each_thread(size_t n) {
  begin("four threads", "create a Snowflake for every ID");
  struct task tasks[THREADS];
  uint64_t *ids = calloc(THREADS * n, sizeof *ids);
  if (!ids) {
    give_up("no memory");
  }
  memset(tasks, 0, sizeof tasks);
  for (size_t t = 0; t < THREADS; t++) {
    tasks[t].n = n;
    tasks[t].ids = ids + t * n;
    start(&tasks[t].thread, make_and_take, &tasks[t]);
  }
  join(tasks, POLYFLAKE_OK);
  CHECK(!has_repeats(ids, THREADS * n));
  free(ids);
}

enum { RACED_NODES = 200, FIRST_RACED_NODE = 100 };

static pthread_barrier_t starting_line;

/* Creates the first Snowflake of each node at the same moment as the other threads, and takes an ID. */
static void *make_at_once(void *user) {
  struct task *task = user;
  for (int n = 0; n < RACED_NODES; n++) {
    char node[16];
    polyflake_options *options = polyflake_options_new();
    polyflake_snowflake *snowflake = NULL;
    snprintf(node, sizeof node, "%d", FIRST_RACED_NODE + n);
    polyflake_options_set(options, "node", node, NULL);
    polyflake_options_set(options, "max_wait_ms", "600000", NULL);
    pthread_barrier_wait(&starting_line);
    polyflake_status status = polyflake_snowflake_new(options, &snowflake, NULL);
    if (status == POLYFLAKE_OK) {
      status = polyflake_next_id(snowflake, &task->ids[n], NULL);
    }
    if (status != POLYFLAKE_OK) {
      task->status = status;
    }
    polyflake_snowflake_free(snowflake);
    polyflake_options_free(options);
  }
  return NULL;
}

static void made_at_once(void) {
  begin("four threads", "create the first Snowflake of a node at the same moment");
  struct task tasks[THREADS];
  static uint64_t ids[THREADS * RACED_NODES];
  memset(tasks, 0, sizeof tasks);
  pthread_barrier_init(&starting_line, NULL, THREADS);
  for (size_t t = 0; t < THREADS; t++) {
    tasks[t].ids = ids + t * RACED_NODES;
    start(&tasks[t].thread, make_at_once, &tasks[t]);
  }
  join(tasks, POLYFLAKE_OK);
  pthread_barrier_destroy(&starting_line);
  CHECK(!has_repeats(ids, THREADS * RACED_NODES));
}

static void *decode_all(void *user) {
  struct task *task = user;
  const polyflake_layout *layout = polyflake_snowflake_layout(task->snowflake);
  for (uint64_t id = 1; id <= task->n && task->status == POLYFLAKE_OK; id++) {
    polyflake_decoded decoded;
    decoded.size = sizeof decoded;
    task->status = polyflake_layout_decode(layout, id << 22 | 7, &decoded, NULL);
    task->out_of_order += decoded.ticks != id || decoded.sequence != 7;
  }
  return NULL;
}

static void one_layout(size_t n) {
  begin("four threads", "decode with one layout");
  polyflake_snowflake *snowflake = snowflake_of("twitter", "25", NULL, NULL);
  struct task tasks[THREADS];
  memset(tasks, 0, sizeof tasks);
  for (size_t t = 0; t < THREADS; t++) {
    tasks[t].snowflake = snowflake;
    tasks[t].n = n;
    start(&tasks[t].thread, decode_all, &tasks[t]);
  }
  join(tasks, POLYFLAKE_OK);
  for (size_t t = 0; t < THREADS; t++) {
    CHECK_NUMBER(0, tasks[t].out_of_order);
  }
  polyflake_snowflake_free(snowflake);
}

/* Waits for the next tick, which comes in a hundred years, until the Snowflake is closed. */
static void *wait_until_closed(void *user) {
  struct task *task = user;
  uint64_t ids[2];
  switch (task->n) {
  case 0:
    task->status = polyflake_next_id(task->snowflake, ids, NULL);
    break;
  case 1:
    task->status = polyflake_fill(task->snowflake, 2, ids, NULL);
    break;
  default:
    task->status = polyflake_next_id_or_zero(task->snowflake) == 0 ? POLYFLAKE_CLOSED : POLYFLAKE_OK;
  }
  return NULL;
}

static void closed_amid_waits(void) {
  begin("four threads", "stop waiting when the Snowflake is closed");
  /* A new cursor treats the tick in which it is created as used up. */
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *snowflake = NULL;
  polyflake_options_set(options, "layout", "timestamp:8|node:4|sequence:1@0/3155760000s", NULL);
  polyflake_options_set(options, "node", "1", NULL);
  polyflake_options_set(options, "max_wait_ms", "600000", NULL);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_new(options, &snowflake, NULL));
  polyflake_options_free(options);
  struct task tasks[THREADS];
  polyflake_stats stats;
  stats.size = sizeof stats;
  memset(tasks, 0, sizeof tasks);
  for (size_t t = 0; t < THREADS; t++) {
    tasks[t].snowflake = snowflake;
    tasks[t].n = t;
    start(&tasks[t].thread, wait_until_closed, &tasks[t]);
  }
  /* A loop without a pause could keep the threads from starting: valgrind runs one at a time. */
  do {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_stats(snowflake, &stats, NULL));
  } while (stats.waits < THREADS);
  polyflake_snowflake_close(snowflake);
  join(tasks, POLYFLAKE_CLOSED);
  uint64_t id;
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_next_id(snowflake, &id, NULL));
  polyflake_snowflake_free(snowflake);
}

enum { MANY = 32 };

/* How many extra seconds the test runs if a thread has received too few IDs. On a busy machine, a thread may
 * start late, or not run for a while. A starved thread never catches up. */
enum { PATIENCE = 60 };

struct asking {
  pthread_t thread;
  const polyflake_snowflake *snowflake;
  const int *is_over;
  size_t got;
  polyflake_status status;
};

static void *ask(void *user) {
  struct asking *asking = user;
  uint64_t id;
  while (asking->status == POLYFLAKE_OK && !__atomic_load_n(asking->is_over, __ATOMIC_RELAXED)) {
    asking->status = polyflake_next_id(asking->snowflake, &id, NULL);
    __atomic_fetch_add(&asking->got, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

/* Returns whether each thread has at least a quarter of an even share. */
static int is_even(const struct asking asking[MANY]) {
  size_t all = 0, least = SIZE_MAX;
  for (size_t n = 0; n < MANY; n++) {
    size_t got = __atomic_load_n(&asking[n].got, __ATOMIC_RELAXED);
    all += got;
    least = got < least ? got : least;
  }
  return all > 0 && least * 4 >= all / MANY;
}

/* Even when many threads ask for more IDs than the layout can supply, no call fails and no thread starves. */
static void over_asked(const char *layout, int seconds) {
  static struct asking asking[MANY];
  int is_over = 0;
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *snowflake = NULL;
  begin("over-asked", layout);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "layout", layout, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "60", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "max_wait_ms", "600000", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_new(options, &snowflake, NULL));
  polyflake_options_free(options);
  for (size_t n = 0; n < MANY; n++) {
    asking[n] = (struct asking){.snowflake = snowflake, .is_over = &is_over, .status = POLYFLAKE_OK};
    start(&asking[n].thread, ask, &asking[n]);
  }
  for (int passed = 0; passed < seconds || (!is_even(asking) && passed < seconds + PATIENCE); passed++) {
    sleep(1);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (size_t n = 0; n < MANY; n++) {
    pthread_join(asking[n].thread, NULL);
    CHECK_STATUS(POLYFLAKE_OK, asking[n].status);
  }
  CHECK(is_even(asking));
  polyflake_snowflake_free(snowflake);
}

int main(int argc, char **argv) {
  size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 500000;
  int64_t readings = 0;
  if (n < 10) {
    give_up("usage: threads [IDS_PER_THREAD, at least 10]");
  }
  one_snowflake("the system clock", NULL, NULL, n);
  one_snowflake("the caller's clock", counting_clock, &readings, n);
  one_node(n);
  made_at_once();
  made_by_each_thread(n / 10);
  one_layout(n / 10);
  shared_cursor();
  closed_amid_waits();
  /* Tested only if threads run in parallel. Under valgrind, they run one at a time, and n is small. */
  if (n >= 100000) {
    /* The thread that runs first in a tick gets most of it, which evens out over a thousand ticks. */
    over_asked("twitter", 1);
    over_asked("sonyflake", 10);
    over_asked("yitter", 1);
  }
  return finish(9);
}
