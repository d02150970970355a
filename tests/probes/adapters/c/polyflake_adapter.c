/* Adapts Polyflake for C to the duplicate probes. */
#include <inttypes.h>
#include <polyflake.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DONE = 0, REFUSED = 3, UNSUPPORTED = 4, MAX_PARTS = 64 };

/* The runner's request. */
static const char *situation;
static size_t n = 1;
static int parts = 1, behind_ms, tick_ms = 1, gate = -1;
static char **arguments; /* the generator's options: each a name, a null character and the value */

/* The IDs that one thread or process took, and the status of the last call. */
struct part {
  polyflake_snowflake *snowflake;
  uint64_t *ids;
  size_t taken;
  polyflake_status status;
  pthread_t thread;
};

static void *room(size_t items, size_t size) {
  void *memory = calloc(items, size);
  if (memory == NULL) {
    perror("calloc");
    exit(1);
  }
  return memory;
}

static const char *layout(void) {
  /* 64 IDs per tick, so that every language can use them up. */
  if (strcmp(situation, "exhaustion") == 0) {
    return "yitter";
  }
  return tick_ms == 1 ? "twitter" : tick_ms == 10 ? "sonyflake" : "cosid-second";
}

/* Returns true if the command line contains this generator option. */
static bool has(const char *name) {
  for (char **argument = arguments; *argument != NULL; argument++) {
    if (strcmp(*argument, name) == 0) {
      return true;
    }
  }
  return false;
}

/* Builds a generator, for node 7 or with a lease, using the options from the command line. */
static polyflake_status build(polyflake_snowflake **snowflake) {
  polyflake_options *options = polyflake_options_new();
  polyflake_status status = polyflake_options_set(options, "layout", layout(), NULL);
  if (status == POLYFLAKE_OK && !has("lease")) {
    status = polyflake_options_set(options, "node", "7", NULL);
  }
  if (status == POLYFLAKE_OK) { /* on a busy machine, a thread may wait a long time for its turn */
    status = polyflake_options_set(options, "max_wait_ms", "60000", NULL);
  }
  for (char **argument = arguments; *argument != NULL && status == POLYFLAKE_OK; argument++) {
    status = polyflake_options_set(options, *argument, *argument + strlen(*argument) + 1, NULL);
  }
  if (status == POLYFLAKE_OK) {
    status = polyflake_snowflake_new(options, snowflake, NULL);
  }
  polyflake_options_free(options);
  return status;
}

static struct part part_of(polyflake_snowflake *snowflake, size_t capacity) {
  struct part part = {.snowflake = snowflake, .ids = room(capacity, sizeof(uint64_t))};
  return part;
}

static void take(struct part *part, size_t count) {
  while (count-- > 0 && part->status == POLYFLAKE_OK) {
    part->status = polyflake_next_id(part->snowflake, &part->ids[part->taken], NULL);
    part->taken += part->status == POLYFLAKE_OK;
  }
}

static void *take_all(void *user) {
  struct part *part = user;
  if (part->snowflake == NULL) {
    part->status = build(&part->snowflake);
  }
  take(part, n);
  return NULL;
}

/* Prints with a single write, since other processes may print to the same file. */
static void print(int file, const char *text, size_t size) {
  if (write(file, text, size) != (ssize_t)size) {
    perror("write");
    exit(1);
  }
}

static int refuse(polyflake_status status) {
  char line[64];
  int size = snprintf(line, sizeof line, "refused: %s\n", polyflake_status_name(status));
  print(STDERR_FILENO, line, (size_t)size);
  return REFUSED;
}

static int finish(const struct part *part) {
  char *text = room(part->taken + 1, POLYFLAKE_ID_TEXT_SIZE + 1);
  size_t size = 0;
  for (size_t i = 0; i < part->taken; i++) {
    size += (size_t)sprintf(text + size, "%" PRIu64 "\n", part->ids[i]);
  }
  print(STDOUT_FILENO, text, size);
  free(text);
  return part->status == POLYFLAKE_OK ? DONE : refuse(part->status);
}

static int greater(int one, int other) {
  return one > other ? one : other;
}

/* Runs threads that share a generator, or that each have their own, for the same node. */
static int threads(polyflake_snowflake *shared) {
  struct part each[MAX_PARTS];
  int status = DONE;
  for (int i = 0; i < parts; i++) {
    each[i] = part_of(shared, n);
    if (pthread_create(&each[i].thread, NULL, take_all, &each[i]) != 0) {
      perror("pthread_create");
      exit(1);
    }
  }
  for (int i = 0; i < parts; i++) {
    pthread_join(each[i].thread, NULL);
    status = greater(status, finish(&each[i]));
  }
  return status;
}

/* The children use the parent's generator, or build their own for the same node. */
static int forked(polyflake_snowflake *inherited, polyflake_snowflake *built) {
  struct part part = part_of(inherited, n);
  int status = DONE;
  take(&part, 1);
  for (int i = 1; i < parts; i++) {
    pid_t child = fork();
    if (child < 0) {
      perror("fork");
      return 1;
    }
    if (child == 0) {
      struct part own = part_of(built, n);
      take_all(&own);
      _exit(finish(&own));
    }
  }
  take(&part, n - 1);
  for (int i = 1; i < parts; i++) {
    int ended;
    wait(&ended);
    status = greater(status, WIFEXITED(ended) ? WEXITSTATUS(ended) : 1);
  }
  return greater(status, finish(&part));
}

static int64_t monotonic_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* libfaketime steps this program's clock through a file. */
static int rollback(polyflake_snowflake *snowflake) {
  const char *path = getenv("FAKETIME_TIMESTAMP_FILE");
  if (path == NULL) {
    fputs("needs libfaketime, which steps this program's clock\n", stderr);
    return UNSUPPORTED;
  }
  struct part part = part_of(snowflake, 2 * n);
  int64_t until = monotonic_ms() + behind_ms;
  take(&part, n - 1);
  /* Wait, so that the step goes back to the time of the first IDs. */
  while (monotonic_ms() < until) {
    usleep(1000);
  }
  take(&part, 1);
  /* Do not truncate it: libfaketime ends the program if a thread reads the empty file. */
  FILE *clock = fopen(path, "r+");
  if (clock == NULL) {
    perror(path);
    return 1;
  }
  fprintf(clock, "-%d.%03d\n", behind_ms / 1000, behind_ms % 1000);
  fclose(clock);
  take(&part, n);
  return finish(&part);
}

/* Starts when the previous process is done, as a restarted program would. */
static int restart(void) {
  struct part part = part_of(NULL, n);
  char byte;
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) {
    return 1;
  }
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  take_all(&part);
  close(gate); /* now the next process starts */
  return finish(&part);
}

/* Builds a generator for each ID, as a function that handles a single request would. */
static int per_call(void) {
  struct part part = part_of(NULL, n);
  while (part.taken < n && part.status == POLYFLAKE_OK) {
    part.status = build(&part.snowflake);
    take(&part, 1);
    polyflake_snowflake_free(part.snowflake);
  }
  return finish(&part);
}

/* One of several processes that were not given a node. The runner kills it. */
static int fleet(void) {
  struct part part = part_of(NULL, n);
  char byte;
  if (!has("lease") && !has("node") && !has("state")) {
    fputs("processes that have no node of their own need a lease\n", stderr);
    return UNSUPPORTED;
  }
  take_all(&part);
  int status = finish(&part);
  while (status == DONE && read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return status;
}

static bool asked_for(const char *name) {
  return strcmp(situation, name) == 0;
}

static int run(void) {
  if (asked_for("restart")) {
    return restart();
  }
  if (asked_for("worker-threads")) {
    return threads(NULL);
  }
  if (asked_for("per-call")) {
    return per_call();
  }
  if (asked_for("fleet")) {
    return fleet();
  }
  if (asked_for("prefork") || asked_for("prefork-one-node")) {
    fputs("C has no prefork server; fork does what one would\n", stderr);
    return UNSUPPORTED;
  }
  polyflake_snowflake *snowflake;
  polyflake_status status = build(&snowflake);
  if (status != POLYFLAKE_OK) {
    return refuse(status);
  }
  if (asked_for("threads")) {
    return threads(snowflake);
  }
  if (asked_for("fork")) {
    return forked(snowflake, snowflake);
  }
  if (asked_for("fork-new")) {
    return forked(snowflake, NULL);
  }
  if (asked_for("rollback")) {
    return rollback(snowflake);
  }
  if (asked_for("exhaustion")) {
    struct part part = part_of(snowflake, n);
    take(&part, n);
    return finish(&part);
  }
  fprintf(stderr, "unknown situation: %s\n", situation);
  return UNSUPPORTED;
}

int main(int argc, char **argv) {
  static const char *const names[] = {"n", "parts", "behind_ms", "tick_ms", "gate"};
  long numbers[] = {1, 1, 0, 1, -1};
  if (argc < 2) {
    fputs("polyflake_adapter SITUATION [NAME=VALUE ...]\n", stderr);
    return 2;
  }
  situation = argv[1];
  arguments = argv + 2;
  char **kept = arguments;
  for (char **argument = arguments; *argument != NULL; argument++) {
    bool own = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      size_t length = strlen(names[i]);
      if (strncmp(*argument, names[i], length) == 0 && (*argument)[length] == '=') {
        numbers[i] = strtol(*argument + length + 1, NULL, 10);
        own = true;
      }
    }
    char *equals = strchr(*argument, '=');
    if (!own && equals != NULL) {
      *equals = '\0';
      *kept++ = *argument;
    }
  }
  *kept = NULL;
  n = (size_t)numbers[0];
  parts = (int)numbers[1];
  behind_ms = (int)numbers[2];
  tick_ms = (int)numbers[3];
  gate = (int)numbers[4];
  return run();
}
