/* reload LIBRARY COPY: tests that a library which is loaded, closed and loaded again keeps the process's
 * cursors, so that no ID is repeated. PHP, for example, closes a library along with the last object that uses
 * it. COPY is a second copy of the library, with its own cursors; each of the two detects the other. */
#include "check.h"

#include <dlfcn.h>
#include <string.h>

struct library {
  void *handle;
  polyflake_options *(*options_new)(void);
  void (*options_free)(polyflake_options *options);
  polyflake_status (*options_set
  )(polyflake_options *options, const char *name, const char *value, polyflake_detail *detail);
  polyflake_status (*snowflake_new
  )(const polyflake_options *options, polyflake_snowflake **snowflake, polyflake_detail *detail);
  void (*snowflake_free)(polyflake_snowflake *snowflake);
  polyflake_status (*next_id)(const polyflake_snowflake *snowflake, uint64_t *id, polyflake_detail *detail);
  const char *(*status_name)(polyflake_status status);
  const char *(*copies_warning)(void);
};

static const char *path;
static struct library library;

/* For check.c: this program is not linked with the library, so it calls the one it loaded. */
const char *polyflake_status_name(polyflake_status status) {
  return library.status_name(status);
}

/* C cannot convert dlsym's void * to a function pointer; POSIX guarantees the same representation. */
static void find(const char *name, void *function) {
  void *symbol = dlsym(library.handle, name);
  if (!symbol) {
    give_up(dlerror());
  }
  memcpy(function, &symbol, sizeof symbol);
}

static void load(void) {
  library.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library.handle) {
    give_up(dlerror());
  }
  find("polyflake_options_new", &library.options_new);
  find("polyflake_options_free", &library.options_free);
  find("polyflake_options_set", &library.options_set);
  find("polyflake_snowflake_new", &library.snowflake_new);
  find("polyflake_snowflake_free", &library.snowflake_free);
  find("polyflake_next_id", &library.next_id);
  find("polyflake_status_name", &library.status_name);
  find("polyflake_copies_warning", &library.copies_warning);
}

static polyflake_status make(const char *clock, const char *max_ahead_ms, polyflake_snowflake **snowflake) {
  polyflake_options *options = library.options_new();
  /* Uses a different node for each clock, because each node has only one cursor. */
  CHECK_STATUS(POLYFLAKE_OK, library.options_set(options, "node", clock[1] == 'y' ? "31" : "32", NULL));
  CHECK_STATUS(POLYFLAKE_OK, library.options_set(options, "clock", clock, NULL));
  CHECK_STATUS(POLYFLAKE_OK, library.options_set(options, "max_ahead_ms", max_ahead_ms, NULL));
  polyflake_status status = library.snowflake_new(options, snowflake, NULL);
  library.options_free(options);
  return status;
}

/* Loads the library, takes an ID from a new Snowflake, frees everything, and closes the library. */
static uint64_t id_of_a_fresh_load(const char *clock) {
  uint64_t id = 0;
  polyflake_snowflake *snowflake = NULL;
  load();
  CHECK_STATUS(POLYFLAKE_OK, make(clock, "3", &snowflake));
  if (!snowflake) {
    give_up("no Snowflake");
  }
  CHECK_STATUS(POLYFLAKE_OK, library.next_id(snowflake, &id, NULL));
  library.snowflake_free(snowflake);
  CHECK_NUMBER(0, (uint64_t)dlclose(library.handle));
  return id;
}

static void reload(const char *clock) {
  begin(clock, "each ID after a reload is greater than the one before");
  uint64_t last = 0;
  for (int round = 0; round < 20; round++) {
    uint64_t id = id_of_a_fresh_load(clock);
    CHECK(id > last);
    last = id;
  }

  begin(clock, "the cursor is the one from before the reload: other bounds are an error");
  polyflake_snowflake *none = NULL;
  load();
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, make(clock, "4", &none));
  CHECK(none == NULL);
  CHECK_NUMBER(0, (uint64_t)dlclose(library.handle));
}

static void stays_loaded(void) {
  begin("dlclose", "unloads nothing");
  void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  CHECK(handle != NULL);
  if (handle) {
    dlclose(handle);
  }
}

static void sees_copies(const char *copy) {
  begin("copies", "one copy is nothing to warn of");
  load();
  const char *(*of_first)(void) = library.copies_warning;
  CHECK(of_first() == NULL);

  begin("copies", "each of two warns of the other");
  const char *first = path;
  path = copy;
  load();
  for (int n = 0; n < 2; n++) {
    const char *warning = n == 0 ? of_first() : library.copies_warning();
    CHECK(warning && strstr(warning, copy) && strstr(warning, first));
    CHECK(warning == (n == 0 ? of_first() : library.copies_warning()));
  }
}

int main(int argc, char **argv) {
  path = argc > 1 ? argv[1] : "libpolyflake.so.0";
  reload("system");
  reload("steady");
  stays_loaded();
  if (argc > 2) {
    sees_copies(argv[2]);
  }
  return finish(argc > 2 ? 7 : 5);
}
