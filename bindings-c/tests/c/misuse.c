/* Mistakes that a C program can make. Each incorrect call returns an error status and writes no output. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t NOW = INT64_C(1656432460105);

/* The time that a test's clock writes, and its return value. */
struct clock_answer {
  int64_t unix_ms, step;
  int result;
};

static int answer(void *user, int64_t *unix_ms) {
  struct clock_answer *clock = user;
  *unix_ms = clock->unix_ms;
  clock->unix_ms += clock->step;
  return clock->result;
}

static int writes_nothing(void *user, int64_t *unix_ms) {
  (void)user;
  (void)unix_ms;
  return 0;
}

static polyflake_options *options_with_clock(struct clock_answer *clock) {
  polyflake_options *options = polyflake_options_new();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "7", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_clock(options, answer, clock, NULL));
  return options;
}

static polyflake_snowflake *made_from(polyflake_options *options) {
  polyflake_snowflake *snowflake = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_new(options, &snowflake, NULL));
  if (!snowflake) {
    give_up("no Snowflake");
  }
  return snowflake;
}

static polyflake_snowflake *snowflake_with_clock(struct clock_answer *clock) {
  polyflake_options *options = options_with_clock(clock);
  polyflake_snowflake *snowflake = made_from(options);
  polyflake_options_free(options);
  return snowflake;
}

static polyflake_snowflake *snowflake_of_node(const char *node) {
  polyflake_options *options = polyflake_options_new();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", node, NULL));
  polyflake_snowflake *snowflake = made_from(options);
  polyflake_options_free(options);
  return snowflake;
}

static polyflake_layout *parsed(const char *text) {
  polyflake_layout *layout = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_parse(text, &layout, NULL));
  if (!layout) {
    give_up("no layout");
  }
  return layout;
}

/* Returns whether a string is UTF-8, as bindings in other languages expect. */
static int is_utf8(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at) {
    int more = *at < 0x80 ? 0 : *at >= 0xf0 && *at < 0xf5 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc2 ? 1 : -1;
    if (more < 0 || *at >= 0xf5) {
      return 0;
    }
    for (at++; more > 0; more--, at++) {
      if ((*at & 0xc0) != 0x80) {
        return 0;
      }
    }
  }
  return 1;
}

/* ---- NULL ---- */

/* A call with NULL returns invalid_option, and the message names the argument that is NULL. */
#define CHECK_NULL(what, call)                                                                               \
  do {                                                                                                       \
    polyflake_detail detail = fresh_detail();                                                                \
    begin("NULL", #call);                                                                                    \
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, call);                                                            \
    CHECK(strncmp(detail.message, "invalid_option: ", 16) == 0);                                             \
    CHECK(strstr(detail.message, what " is NULL") != NULL);                                                  \
    CHECK_NUMBER(0, detail.behind_ms);                                                                       \
    CHECK_NUMBER(0, detail.retry_after_ms);                                                                  \
  } while (0)

/* The same call, without a detail. */
#define CHECK_NULL_BARE(call)                                                                                \
  do {                                                                                                       \
    begin("NULL, no detail", #call);                                                                         \
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, call);                                                            \
  } while (0)

static void null_layouts(void) {
  polyflake_layout *layout = parsed("twitter"), *none = NULL;
  polyflake_layout_info info;
  polyflake_field field;
  polyflake_decoded decoded;
  char text[POLYFLAKE_LAYOUT_TEXT_SIZE];
  uint64_t id = SENTINEL_ID;
  info.size = sizeof info;
  field.size = sizeof field;
  decoded.size = sizeof decoded;
  fill_with_sentinel(text, sizeof text);

  CHECK_NULL("text", polyflake_layout_parse(NULL, &none, &detail));
  CHECK_NULL("layout", polyflake_layout_parse("twitter", NULL, &detail));
  CHECK_NULL("layout", polyflake_layout_text(NULL, text, sizeof text, &detail));
  CHECK_NULL("text", polyflake_layout_text(layout, NULL, sizeof text, &detail));
  CHECK_NULL("layout", polyflake_layout_properties(NULL, &info, &detail));
  CHECK_NULL("struct", polyflake_layout_properties(layout, NULL, &detail));
  CHECK_NULL("layout", polyflake_layout_field(NULL, 0, &field, &detail));
  CHECK_NULL("struct", polyflake_layout_field(layout, 0, NULL, &detail));
  CHECK_NULL("layout", polyflake_layout_decode(NULL, 1, &decoded, &detail));
  CHECK_NULL("struct", polyflake_layout_decode(layout, 1, NULL, &detail));
  CHECK_NULL("layout", polyflake_layout_decode_field(NULL, 1, "worker", &id, &detail));
  CHECK_NULL("name", polyflake_layout_decode_field(layout, 1, NULL, &id, &detail));
  CHECK_NULL("value", polyflake_layout_decode_field(layout, 1, "worker", NULL, &detail));
  CHECK_NULL("layout", polyflake_layout_min_id(NULL, NOW, 0, &id, &detail));
  CHECK_NULL("id", polyflake_layout_min_id(layout, NOW, 0, NULL, &detail));
  CHECK_NULL("layout", polyflake_layout_max_id(NULL, NOW, 0, &id, &detail));
  CHECK_NULL("id", polyflake_layout_max_id(layout, NOW, 0, NULL, &detail));

  CHECK_NULL_BARE(polyflake_layout_parse(NULL, &none, NULL));
  CHECK_NULL_BARE(polyflake_layout_parse(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_layout_text(NULL, NULL, 0, NULL));
  CHECK_NULL_BARE(polyflake_layout_properties(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_layout_field(NULL, 0, NULL, NULL));
  CHECK_NULL_BARE(polyflake_layout_decode(NULL, 1, NULL, NULL));
  CHECK_NULL_BARE(polyflake_layout_decode_field(NULL, 1, NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_layout_min_id(NULL, NOW, 0, NULL, NULL));
  CHECK_NULL_BARE(polyflake_layout_max_id(NULL, NOW, 0, NULL, NULL));

  begin("NULL", "no layout call wrote an output");
  CHECK(none == NULL);
  CHECK_NUMBER(SENTINEL_ID, id);
  CHECK(is_sentinel(text, sizeof text));
  polyflake_layout_free(layout);
}

static void null_options(void) {
  polyflake_options *options = polyflake_options_new();
  polyflake_layout *layout = parsed("twitter");
  CHECK_NULL("options", polyflake_options_set(NULL, "node", "7", &detail));
  CHECK_NULL("name", polyflake_options_set(options, NULL, "7", &detail));
  CHECK_NULL("value", polyflake_options_set(options, "node", NULL, &detail));
  CHECK_NULL("options", polyflake_options_set_node_field(NULL, "worker", "7", &detail));
  CHECK_NULL("field", polyflake_options_set_node_field(options, NULL, "7", &detail));
  CHECK_NULL("value", polyflake_options_set_node_field(options, "worker", NULL, &detail));
  CHECK_NULL("options", polyflake_options_set_layout(NULL, layout, &detail));
  CHECK_NULL("layout", polyflake_options_set_layout(options, NULL, &detail));
  CHECK_NULL("options", polyflake_options_set_clock(NULL, answer, NULL, &detail));

  CHECK_NULL_BARE(polyflake_options_set(NULL, "node", "7", NULL));
  CHECK_NULL_BARE(polyflake_options_set(options, NULL, "7", NULL));
  CHECK_NULL_BARE(polyflake_options_set(options, "node", NULL, NULL));
  CHECK_NULL_BARE(polyflake_options_set(NULL, NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_options_set_node_field(NULL, NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_options_set_layout(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_options_set_clock(NULL, NULL, NULL, NULL));
  CHECK_NULL("options", polyflake_options_set_bytes(NULL, "node", "7", 1, &detail));
  CHECK_NULL("name", polyflake_options_set_bytes(options, NULL, "7", 1, &detail));
  CHECK_NULL("value", polyflake_options_set_bytes(options, "node", NULL, 0, &detail));
  CHECK_NULL_BARE(polyflake_options_set_bytes(NULL, NULL, NULL, 0, NULL));
  uint64_t id = SENTINEL_ID;
  CHECK_NULL("options", polyflake_options_compose(NULL, NOW, 0, &id, &detail));
  CHECK_NULL("id", polyflake_options_compose(options, NOW, 0, NULL, &detail));
  CHECK_NULL_BARE(polyflake_options_compose(NULL, NOW, 0, NULL, NULL));
  CHECK_NUMBER(SENTINEL_ID, id);
  CHECK_NULL("path", polyflake_reset_state(NULL, 0, &detail));
  CHECK_NULL_BARE(polyflake_reset_state(NULL, 0, NULL));
  polyflake_layout_free(layout);
  polyflake_options_free(options);
}

static void null_snowflakes(void) {
  struct clock_answer clock = {NOW, 0, 0};
  polyflake_options *options = options_with_clock(&clock);
  polyflake_snowflake *snowflake = made_from(options), *none = NULL;
  uint64_t id = SENTINEL_ID, ids[4];
  polyflake_stats stats;
  stats.size = sizeof stats;
  polyflake_words words;
  words.size = sizeof words;
  polyflake_lease lease;
  lease.size = sizeof lease;
  fill_with_sentinel(ids, sizeof ids);

  CHECK_NULL("options", polyflake_snowflake_new(NULL, &none, &detail));
  CHECK_NULL("snowflake", polyflake_snowflake_new(options, NULL, &detail));
  CHECK_NULL("snowflake", polyflake_next_id(NULL, &id, &detail));
  CHECK_NULL("id", polyflake_next_id(snowflake, NULL, &detail));
  CHECK_NULL("snowflake", polyflake_try_next_id(NULL, &id, &detail));
  CHECK_NULL("id", polyflake_try_next_id(snowflake, NULL, &detail));
  CHECK_NULL("snowflake", polyflake_fill(NULL, 4, ids, &detail));
  CHECK_NULL("ids", polyflake_fill(snowflake, 4, NULL, &detail));
  CHECK_NULL("snowflake", polyflake_fill(NULL, 0, NULL, &detail));
  size_t filled = 77;
  CHECK_NULL("snowflake", polyflake_next_id_now(NULL, &id, &detail));
  CHECK_NULL("id", polyflake_next_id_now(snowflake, NULL, &detail));
  CHECK_NULL("snowflake", polyflake_fill_now(NULL, 4, ids, &filled, &detail));
  CHECK_NULL("ids", polyflake_fill_now(snowflake, 4, NULL, &filled, &detail));
  CHECK_NULL("filled", polyflake_fill_now(snowflake, 4, ids, NULL, &detail));
  uint32_t max_wait_ms = 78;
  CHECK_NULL("snowflake", polyflake_snowflake_max_wait_ms(NULL, &max_wait_ms, &detail));
  CHECK_NULL("max_wait_ms", polyflake_snowflake_max_wait_ms(snowflake, NULL, &detail));
  CHECK(max_wait_ms == 78);
  polyflake_waiting *waiting = NULL;
  uint64_t pause_ns = SENTINEL_ID;
  CHECK_NULL("snowflake", polyflake_waiting_new(NULL, &waiting, &detail));
  CHECK_NULL("waiting", polyflake_waiting_new(snowflake, NULL, &detail));
  CHECK_NULL("waiting", polyflake_waiting_poll(NULL, 0, 4, ids, &filled, &pause_ns, &detail));
  CHECK(waiting == NULL);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_new(snowflake, &waiting, NULL));
  CHECK_NULL("ids", polyflake_waiting_poll(waiting, 0, 4, NULL, &filled, &pause_ns, &detail));
  CHECK_NULL("filled", polyflake_waiting_poll(waiting, 0, 4, ids, NULL, &pause_ns, &detail));
  CHECK_NULL("pause_ns", polyflake_waiting_poll(waiting, 0, 4, ids, &filled, NULL, &detail));
  polyflake_waiting_free(waiting);
  CHECK(filled == 77);
  CHECK_NUMBER(SENTINEL_ID, pause_ns);
  CHECK_NULL("snowflake", polyflake_snowflake_node(NULL, &id, &detail));
  CHECK_NULL("node", polyflake_snowflake_node(snowflake, NULL, &detail));
  CHECK_NULL("snowflake", polyflake_snowflake_stats(NULL, &stats, &detail));
  CHECK_NULL("struct", polyflake_snowflake_stats(snowflake, NULL, &detail));
  CHECK_NULL("snowflake", polyflake_snowflake_words(NULL, &words, &detail));
  CHECK_NULL("snowflake", polyflake_snowflake_lease(NULL, &lease, &detail));
  CHECK_NULL("struct", polyflake_snowflake_lease(snowflake, NULL, &detail));

  CHECK_NULL_BARE(polyflake_snowflake_new(NULL, &none, NULL));
  CHECK_NULL_BARE(polyflake_snowflake_new(options, NULL, NULL));
  CHECK_NULL_BARE(polyflake_snowflake_new(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_next_id(NULL, &id, NULL));
  CHECK_NULL_BARE(polyflake_next_id(snowflake, NULL, NULL));
  CHECK_NULL_BARE(polyflake_next_id(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_try_next_id(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_fill(NULL, 4, NULL, NULL));
  CHECK_NULL_BARE(polyflake_snowflake_node(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_snowflake_stats(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_snowflake_words(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_snowflake_lease(NULL, NULL, NULL));
  CHECK_NULL("struct", polyflake_next_lease_event(NULL, &detail));
  CHECK_NULL_BARE(polyflake_next_lease_event(NULL, NULL));

  begin("NULL", "no Snowflake call wrote an output");
  CHECK(none == NULL);
  CHECK_NUMBER(SENTINEL_ID, id);
  CHECK(is_sentinel(ids, sizeof ids));
  CHECK(polyflake_snowflake_layout(NULL) == NULL);

  begin("NULL", "no failed call took an ID");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_stats(snowflake, &stats, NULL));
  CHECK(stats.last_issued_ms == -1);
  polyflake_snowflake_free(snowflake);
  polyflake_options_free(options);
}

static void null_counters(void) {
  polyflake_options *options = polyflake_options_new();
  polyflake_counter *none = NULL;
  polyflake_counter_counts counts;
  uint64_t number = SENTINEL_ID, numbers[4];
  int existed = 5;
  fill_with_sentinel(numbers, sizeof numbers);
  fill_with_sentinel(&counts, sizeof counts);
  counts.size = sizeof counts;

  CHECK_NULL("options", polyflake_counter_open(NULL, &none, &detail));
  CHECK_NULL("counter", polyflake_counter_open(options, NULL, &detail));
  CHECK_NULL("counter", polyflake_counter_next_id(NULL, &number, &detail));
  CHECK_NULL("counter", polyflake_counter_try_next_id(NULL, &number, &detail));
  CHECK_NULL("counter", polyflake_counter_fill(NULL, 4, numbers, &detail));
  CHECK_NULL("counter", polyflake_counter_fill(NULL, 0, NULL, &detail));
  CHECK_NULL("counter", polyflake_counter_next_block(NULL, 4, &number, &detail));
  CHECK_NULL("counter", polyflake_counter_peek(NULL, &number, &detail));
  CHECK_NULL("counter", polyflake_counter_raise(NULL, 1, &detail));
  CHECK_NULL("counter", polyflake_counter_remove(NULL, &existed, &detail));
  CHECK_NULL("counter", polyflake_counter_stats(NULL, &counts, &detail));

  CHECK_NULL_BARE(polyflake_counter_open(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_counter_next_id(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_counter_try_next_id(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_counter_fill(NULL, 4, NULL, NULL));
  CHECK_NULL_BARE(polyflake_counter_next_block(NULL, 0, NULL, NULL));
  CHECK_NULL_BARE(polyflake_counter_peek(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_counter_raise(NULL, 0, NULL));
  CHECK_NULL_BARE(polyflake_counter_remove(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_counter_stats(NULL, NULL, NULL));

  begin("NULL", "no counter call wrote an output");
  CHECK(none == NULL);
  CHECK_NUMBER(SENTINEL_ID, number);
  CHECK(is_sentinel(numbers, sizeof numbers));
  CHECK(is_sentinel((char *)&counts + sizeof counts.size, sizeof counts - sizeof counts.size));
  CHECK(existed == 5);
  CHECK(polyflake_counter_name(NULL) == NULL);
  CHECK_NUMBER(0, polyflake_counter_next_id_or_zero(NULL));
  CHECK_NUMBER(0, polyflake_counter_try_next_id_or_zero(NULL));

  begin("counters", "that cannot be are no output");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "name", "orders", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_counter_open(options, &none, NULL));
  CHECK(none == NULL);
  polyflake_options_free(options);
}

static void null_sequences(void) {
  polyflake_options *options = polyflake_options_new();
  polyflake_sequences *none = NULL;
  polyflake_sequences_counts counts;
  const polyflake_key key = {POLYFLAKE_KEY_TEXT, 0, "alice", 5};
  uint64_t number = SENTINEL_ID;
  fill_with_sentinel(&counts, sizeof counts);
  counts.size = sizeof counts;

  CHECK_NULL("options", polyflake_sequences_open(NULL, &none, &detail));
  CHECK_NULL("sequences", polyflake_sequences_open(options, NULL, &detail));
  CHECK_NULL("sequences", polyflake_sequences_next_id(NULL, &key, &number, &detail));
  CHECK_NULL("sequences", polyflake_sequences_try_next_id(NULL, &key, &number, &detail));
  CHECK_NULL("sequences", polyflake_sequences_next_ids(NULL, &key, 1, &number, &detail));
  CHECK_NULL("sequences", polyflake_sequences_next_ids(NULL, NULL, 0, NULL, &detail));
  CHECK_NULL("sequences", polyflake_sequences_stats(NULL, &counts, &detail));

  CHECK_NULL_BARE(polyflake_sequences_open(NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_sequences_next_id(NULL, NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_sequences_try_next_id(NULL, NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_sequences_next_ids(NULL, NULL, 1, NULL, NULL));
  CHECK_NULL_BARE(polyflake_sequences_stats(NULL, NULL, NULL));

  begin("NULL", "no call of sequences wrote an output");
  CHECK(none == NULL);
  CHECK_NUMBER(SENTINEL_ID, number);
  CHECK(is_sentinel((char *)&counts + sizeof counts.size, sizeof counts - sizeof counts.size));
  CHECK(polyflake_sequences_name(NULL) == NULL);

  begin("sequences", "that cannot be are no output");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "name", "inbox", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_sequences_open(options, &none, NULL));
  CHECK(none == NULL);
  polyflake_options_free(options);
}

static void null_texts(void) {
  char text[POLYFLAKE_ID_TEXT_SIZE];
  uint64_t id = SENTINEL_ID;
  fill_with_sentinel(text, sizeof text);
  CHECK_NULL("format", polyflake_id_write(1, NULL, text, sizeof text, &detail));
  CHECK_NULL("text", polyflake_id_write(1, "hex", NULL, sizeof text, &detail));
  CHECK_NULL("text", polyflake_id_read(NULL, "hex", &id, &detail));
  CHECK_NULL("format", polyflake_id_read("1", NULL, &id, &detail));
  CHECK_NULL("id", polyflake_id_read("1", "hex", NULL, &detail));
  int64_t number = 5;
  CHECK_NULL("number", polyflake_id_signed(1, NULL, &detail));
  CHECK_NULL_BARE(polyflake_id_signed(UINT64_MAX, NULL, NULL));
  begin("signed IDs", "up to 63 bits");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_id_signed(INT64_MAX, &number, NULL));
  CHECK(number == INT64_MAX);
  CHECK_STATUS(POLYFLAKE_INVALID_ID, polyflake_id_signed((uint64_t)INT64_MAX + 1, &number, NULL));
  CHECK(number == INT64_MAX);
  CHECK_NULL_BARE(polyflake_id_write(1, NULL, NULL, 0, NULL));
  CHECK_NULL_BARE(polyflake_id_read(NULL, NULL, NULL, NULL));
  begin("NULL", "no text call wrote an output");
  CHECK(is_sentinel(text, sizeof text));
  CHECK_NUMBER(SENTINEL_ID, id);
}

static const char PUBLIC_KEY[] = "pfk_10kvEGTqNtUTXFUlMnM4wIa";

static polyflake_public_ids *orders(void) {
  polyflake_public_ids *ids = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_public_ids_new(PUBLIC_KEY, "order", &ids, NULL));
  if (!ids) {
    give_up("no public IDs");
  }
  return ids;
}

static void null_public_ids(void) {
  char text[POLYFLAKE_PUBLIC_ID_SIZE];
  uint64_t id = SENTINEL_ID;
  polyflake_public_ids *ids = orders(), *none = NULL;
  fill_with_sentinel(text, sizeof text);
  CHECK_NULL("keys", polyflake_public_ids_new(NULL, "order", &none, &detail));
  CHECK_NULL("prefix", polyflake_public_ids_new(PUBLIC_KEY, NULL, &none, &detail));
  CHECK_NULL("ids", polyflake_public_ids_new(PUBLIC_KEY, "order", NULL, &detail));
  CHECK_NULL("ids", polyflake_public_ids_encode(NULL, 1, text, sizeof text, &detail));
  CHECK_NULL("text", polyflake_public_ids_encode(ids, 1, NULL, sizeof text, &detail));
  CHECK_NULL("ids", polyflake_public_ids_decode(NULL, "1", &id, &detail));
  CHECK_NULL("text", polyflake_public_ids_decode(ids, NULL, &id, &detail));
  CHECK_NULL("id", polyflake_public_ids_decode(ids, "1", NULL, &detail));
  CHECK_NULL("text", polyflake_public_key_generate(0, NULL, sizeof text, &detail));
  CHECK_NULL_BARE(polyflake_public_ids_new(NULL, NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_public_ids_encode(NULL, 1, NULL, 0, NULL));
  CHECK_NULL_BARE(polyflake_public_ids_decode(NULL, NULL, NULL, NULL));
  CHECK_NULL_BARE(polyflake_public_key_generate(0, NULL, 0, NULL));
  begin("NULL", "no call of public IDs wrote an output");
  CHECK(none == NULL);
  CHECK(is_sentinel(text, sizeof text));
  CHECK_NUMBER(SENTINEL_ID, id);
  polyflake_public_ids_free(ids);
}

static void public_keys(void) {
  begin("public keys", "are made, read, and unlike each other");
  char key[POLYFLAKE_PUBLIC_KEY_SIZE], other[POLYFLAKE_PUBLIC_KEY_SIZE];
  CHECK_STATUS(POLYFLAKE_OK, polyflake_public_key_generate(61, key, sizeof key, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_public_key_generate(61, other, sizeof other, NULL));
  CHECK(strncmp(key, "pfk_z", 5) == 0 && strlen(key) + 1 == sizeof key);
  CHECK(strcmp(key, other) != 0);
  polyflake_public_ids *ids = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_public_ids_new(key, "", &ids, NULL));
  polyflake_public_ids_free(ids);
  begin("public keys", "have a number from 0 to 61");
  fill_with_sentinel(key, sizeof key);
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_public_key_generate(62, key, sizeof key, NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_public_key_generate(61, key, sizeof key - 1, NULL));
  CHECK(is_sentinel(key, sizeof key));
}

static void null_frees(void) {
  begin("NULL", "is accepted by every _free and by _close; polyflake_next_id_or_zero returns 0");
  polyflake_snowflake_close(NULL);
  CHECK_NUMBER(0, polyflake_next_id_or_zero(NULL));
  polyflake_layout_free(NULL);
  polyflake_options_free(NULL);
  polyflake_snowflake_free(NULL);
  polyflake_waiting_free(NULL);
  polyflake_counter_close(NULL);
  polyflake_counter_free(NULL);
  polyflake_sequences_close(NULL);
  polyflake_sequences_free(NULL);
  polyflake_public_ids_free(NULL);
}

/* ---- structs that begin with their size ---- */

/* Larger than any of the structs, as a struct in a later header may be. */
union any_struct {
  size_t size;
  polyflake_layout_info info;
  polyflake_field field;
  polyflake_decoded decoded;
  polyflake_stats stats;
  polyflake_words words;
  polyflake_lease lease;
  polyflake_lease_record record;
  unsigned char bytes[1024];
};

struct subjects {
  polyflake_layout *layout;
  polyflake_snowflake *snowflake, *on_system_clock;
};

static polyflake_status
fill_info(const struct subjects *of, polyflake_detail *detail, union any_struct *out) {
  return polyflake_layout_properties(of->layout, &out->info, detail);
}

static polyflake_status
fill_field(const struct subjects *of, polyflake_detail *detail, union any_struct *out) {
  return polyflake_layout_field(of->layout, 1, &out->field, detail);
}

static polyflake_status
fill_decoded(const struct subjects *of, polyflake_detail *detail, union any_struct *out) {
  return polyflake_layout_decode(of->layout, UINT64_C(1541815603606036480), &out->decoded, detail);
}

static polyflake_status
fill_stats(const struct subjects *of, polyflake_detail *detail, union any_struct *out) {
  return polyflake_snowflake_stats(of->snowflake, &out->stats, detail);
}

static polyflake_status
fill_words(const struct subjects *of, polyflake_detail *detail, union any_struct *out) {
  return polyflake_snowflake_words(of->on_system_clock, &out->words, detail);
}

static polyflake_status
fill_lease(const struct subjects *of, polyflake_detail *detail, union any_struct *out) {
  return polyflake_snowflake_lease(of->snowflake, &out->lease, detail);
}

static polyflake_status
fill_record(const struct subjects *of, polyflake_detail *detail, union any_struct *out) {
  (void)of;
  return polyflake_next_lease_event(&out->record, detail);
}

static void sized_structs(void) {
  static const struct {
    const char *name;
    size_t size;
    /* The length in the first release. */
    size_t first;
    polyflake_status (*fill)(const struct subjects *of, polyflake_detail *detail, union any_struct *out);
  } structs[] = {
      {"polyflake_layout_info", sizeof(polyflake_layout_info), sizeof(polyflake_layout_info), fill_info},
      {"polyflake_field", sizeof(polyflake_field), sizeof(polyflake_field), fill_field},
      {"polyflake_decoded", sizeof(polyflake_decoded), sizeof(polyflake_decoded), fill_decoded},
      {"polyflake_stats", sizeof(polyflake_stats), offsetof(polyflake_stats, lease_losses), fill_stats},
      {"polyflake_words", sizeof(polyflake_words), sizeof(polyflake_words), fill_words},
      {"polyflake_lease", sizeof(polyflake_lease), sizeof(polyflake_lease), fill_lease},
      {"polyflake_lease_record", sizeof(polyflake_lease_record), sizeof(polyflake_lease_record), fill_record},
  };
  struct clock_answer clock = {NOW, 0, 0};
  struct subjects of = {parsed("twitter"), snowflake_with_clock(&clock), snowflake_of_node("513")};
  for (size_t n = 0; n < sizeof structs / sizeof *structs; n++) {
    /* One byte less than the size is not tried, because it might leave out only padding. */
    const size_t rejected[] = {0, 1, sizeof(size_t), structs[n].first - sizeof(uint64_t)};
    union any_struct out;
    const size_t rest = sizeof out - sizeof out.size;

    begin("a struct size that is too small", structs[n].name);
    for (size_t i = 0; i < sizeof rejected / sizeof *rejected; i++) {
      polyflake_detail detail = fresh_detail();
      fill_with_sentinel(&out, sizeof out);
      out.size = rejected[i];
      CHECK_STATUS(POLYFLAKE_INVALID_OPTION, structs[n].fill(&of, &detail, &out));
      CHECK_NUMBER(rejected[i], out.size);
      CHECK(is_sentinel(&out.bytes[sizeof out.size], rest));
      CHECK(strstr(detail.message, "size") != NULL);
    }

    begin("the right struct size, and a larger one", structs[n].name);
    const size_t taken[] = {structs[n].size, structs[n].size + 1, sizeof out};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
      fill_with_sentinel(&out, sizeof out);
      out.size = taken[i];
      CHECK_STATUS(POLYFLAKE_OK, structs[n].fill(&of, NULL, &out));
      CHECK_NUMBER(taken[i], out.size);
      CHECK(!is_sentinel(&out.bytes[sizeof out.size], sizeof(uint64_t)));
      CHECK(is_sentinel(&out.bytes[structs[n].size], sizeof out - structs[n].size));
    }
  }
  polyflake_layout_free(of.layout);
  polyflake_snowflake_free(of.snowflake);
  polyflake_snowflake_free(of.on_system_clock);
}

static uint64_t id_of(const polyflake_words *words, uint64_t taken) {
  const uint64_t sequence = taken & ((UINT64_C(1) << words->sequence_bits) - 1);
  return (taken >> words->sequence_bits) << words->timestamp_shift | sequence << words->sequence_shift |
         *words->node;
}

static void words(void) {
  polyflake_snowflake *snowflake = snowflake_of_node("514");
  polyflake_words words;
  words.size = sizeof words;
  uint64_t id = 0;

  begin("words", "lead to the IDs");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_words(snowflake, &words, NULL));
  CHECK_NUMBER(0, **words.limit);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &id, NULL));
  uint64_t last = *words.cursor;
  CHECK_NUMBER(id, id_of(&words, last));
  CHECK(last < **words.limit);

  begin("words", "an ID taken by them is not repeated");
  CHECK(__atomic_compare_exchange_n(words.cursor, &last, last + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &id, NULL));
  CHECK(id > id_of(&words, last + 1));

  begin("words", "nothing may be taken by them after polyflake_snowflake_close");
  polyflake_snowflake_close(snowflake);
  CHECK_NUMBER(0, **words.limit);
  polyflake_snowflake_free(snowflake);

  begin("words", "only the system clock has them");
  struct clock_answer clock = {NOW, 0, 0};
  snowflake = snowflake_with_clock(&clock);
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_snowflake_words(snowflake, &words, NULL));
  polyflake_snowflake_free(snowflake);
}

static void details(void) {
  polyflake_layout *layout = NULL;
  const size_t too_small[] = {0, 1, sizeof(size_t), sizeof(polyflake_detail) - 1};
  begin("detail", "if it is too small, the status is the same and nothing is written");
  for (size_t n = 0; n < sizeof too_small / sizeof *too_small; n++) {
    polyflake_detail detail = fresh_detail(), before;
    detail.size = too_small[n];
    before = detail;
    CHECK_STATUS(POLYFLAKE_UNKNOWN_LAYOUT, polyflake_layout_parse("twiter", &layout, &detail));
    CHECK(memcmp(&before, &detail, sizeof detail) == 0);
  }

  begin("detail", "if it is larger, what this library knows is written");
  union {
    polyflake_detail detail;
    unsigned char bytes[1024];
  } large;
  fill_with_sentinel(&large, sizeof large);
  large.detail.size = sizeof large;
  CHECK_STATUS(POLYFLAKE_UNKNOWN_LAYOUT, polyflake_layout_parse("twiter", &layout, &large.detail));
  CHECK_NUMBER(sizeof large, large.detail.size);
  CHECK(strstr(large.detail.message, "twitter") != NULL);
  CHECK(is_sentinel(&large.bytes[sizeof large.detail], sizeof large - sizeof large.detail));

  begin("detail", "the message is NUL-terminated UTF-8, however long the value");
  static char value[8001];
  for (size_t shift = 0; shift < 4; shift++) {
    /* Two-byte letters at every offset, so that careless truncation would split a letter. */
    memset(value, 'x', shift);
    for (size_t n = shift; n + 2 < sizeof value; n += 2) {
      memcpy(value + n, "\xc3\xa9", 3);
    }
    polyflake_detail detail = fresh_detail();
    CHECK_STATUS(POLYFLAKE_UNKNOWN_LAYOUT, polyflake_layout_parse(value, &layout, &detail));
    CHECK(memchr(detail.message, '\0', sizeof detail.message) != NULL);
    CHECK(is_utf8(detail.message));
  }

  begin("detail", "is not written on success");
  polyflake_detail detail = fresh_detail();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_parse("twitter", &layout, &detail));
  CHECK(is_untouched(&detail));
  polyflake_layout_free(layout);
}

/* ---- options ---- */

static uint64_t node_of(const polyflake_snowflake *snowflake) {
  uint64_t node = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_node(snowflake, &node, NULL));
  return node;
}

static void check_node(uint64_t expected, polyflake_options *options) {
  polyflake_snowflake *snowflake = made_from(options);
  CHECK_NUMBER(expected, node_of(snowflake));
  polyflake_snowflake_free(snowflake);
}

static void options_twice(void) {
  struct clock_answer clock = {NOW, 0, 0};
  polyflake_options *options = options_with_clock(&clock);
  begin("options", "a later value replaces an earlier one");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "8", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "9", NULL));
  check_node(9, options);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "layout", "leaf", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "layout", "twitter", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "datacenter=1,worker=7", NULL));
  check_node(39, options);

  begin("options", "a node field discards a whole node, and a whole node discards the fields");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "9", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_node_field(options, "datacenter", "1", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_node_field(options, "worker", "2", NULL));
  check_node(34, options);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "9", NULL));
  check_node(9, options);

  begin("options", "an invalid value leaves the earlier one in place");
  CHECK_STATUS(POLYFLAKE_UNKNOWN_LAYOUT, polyflake_options_set(options, "layout", "twiter", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_LAYOUT, polyflake_options_set(options, "layout", "a:1@0/1ms", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_set(options, "max_wait_ms", "-1", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_set(options, "clock", "sundial", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_set(options, "sequence_start", "one", NULL));
  check_node(9, options);
  polyflake_options_free(options);
}

static void state_files(void) {
  char path[] = "/tmp/polyflake-XXXXXX";
  struct clock_answer clock = {NOW, 0, 0};
  polyflake_detail detail = fresh_detail();
  polyflake_options *options = options_with_clock(&clock);
  uint64_t first = 0;
  uint64_t second = 0;

  begin("state files", "an invalid path");
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_set(options, "state", "", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_set_bytes(options, "state", "x", 0, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_bytes(options, "state", "/tmp/\0x", 7, NULL));
  polyflake_snowflake *none = NULL;
  CHECK_STATUS(POLYFLAKE_STATE_FILE, polyflake_snowflake_new(options, &none, NULL));
  CHECK_STATUS(POLYFLAKE_STATE_FILE, polyflake_reset_state("/tmp/\0x", 7, NULL));

  begin("state files", "any other file is an error, and is left unchanged");
  int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "state", path, NULL));
  CHECK_STATUS(POLYFLAKE_STATE_FILE, polyflake_snowflake_new(options, &none, &detail));
  CHECK(none == NULL);
  CHECK(strstr(detail.message, "0 bytes") != NULL);
  CHECK_STATUS(POLYFLAKE_STATE_FILE, polyflake_reset_state(path, strlen(path), NULL));
  CHECK_NUMBER(0, (uint64_t)unlink(path));

  begin("state files", "the cursor outlives the Snowflakes that use it");
  polyflake_snowflake *snowflake = made_from(options);
  clock.unix_ms += 10000; /* past where the new file's cursor starts */
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &first, NULL));
  polyflake_snowflake_free(snowflake);
  snowflake = made_from(options);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &second, NULL));
  CHECK_NUMBER(first + 1, second);
  polyflake_snowflake_free(snowflake);

  begin("state files", "a reset leaves a cursor that is not ahead of the clock");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_reset_state(path, strlen(path), NULL));
  snowflake = made_from(options);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &first, NULL));
  CHECK_NUMBER(second + 1, first);
  polyflake_snowflake_free(snowflake);
  polyflake_options_free(options);
  unlink(path);
}

/* Paths are bytes. Tries one that is not UTF-8, and one with U+FFFD, which replaces invalid UTF-8. */
static void state_paths(void) {
  static const char *const names[] = {"caf\xff", "caf\xef\xbf\xbd"};
  begin("state files", "a path may be any bytes");
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    char path[] = "/tmp/polyflake-XXXXXX/12345678", node[2] = {(char)('1' + n), '\0'};
    char *folder_end = strrchr(path, '/');
    *folder_end = '\0';
    CHECK(mkdtemp(path) == path);
    char folder[sizeof path];
    strcpy(folder, path);
    *folder_end = '/';
    strcpy(folder_end + 1, names[n]);
    polyflake_options *options = polyflake_options_new();
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", node, NULL));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "state", path, NULL));
    polyflake_snowflake_free(made_from(options));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_reset_state(path, strlen(path), NULL));
    polyflake_options_free(options);
    CHECK_NUMBER(0, (uint64_t)unlink(path));
    CHECK_NUMBER(0, (uint64_t)rmdir(folder));
  }
}

static void composed(void) {
  uint64_t id = SENTINEL_ID;
  polyflake_options *options = polyflake_options_new();
  begin("composing", "uses the layout and node of the options, whole or by field");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "378", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_compose(options, NOW, 0, &id, NULL));
  CHECK_NUMBER(UINT64_C(1541815603606036480), id);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_node_field(options, "worker", "26", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_NODE, polyflake_options_compose(options, NOW, 0, &id, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_node_field(options, "datacenter", "11", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_compose(options, NOW, 1, &id, NULL));
  CHECK_NUMBER(UINT64_C(1541815603606036481), id);

  begin("composing", "the name of a field cannot inject other fields");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "1", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_node_field(options, "datacenter=1,worker", "7", NULL));
  polyflake_detail detail = fresh_detail();
  CHECK_STATUS(POLYFLAKE_INVALID_NODE, polyflake_options_compose(options, NOW, 0, &id, &detail));
  CHECK(strstr(detail.message, "`datacenter=1,worker`") != NULL);

  begin("composing", "values that do not fit the layout");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "1", NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_compose(options, NOW, 4096, &id, NULL));
  CHECK_STATUS(POLYFLAKE_TIME_OUT_OF_RANGE, polyflake_options_compose(options, -1, 0, &id, NULL));
  CHECK_NUMBER(UINT64_C(1541815603606036481), id);
  polyflake_options_free(options);
}

static void options_unknown(void) {
  static const char *const names[] = {"", "Node", "nodes", "maxWaitMs", "node ", "state\n", "\xff", "store"};
  polyflake_snowflake *none = NULL;
  uint64_t id = SENTINEL_ID;
  begin("options", "a name that no Snowflake has is refused when one is made");
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    polyflake_options *options = polyflake_options_new();
    polyflake_detail detail = fresh_detail();
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, names[n], "7", NULL));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "7", NULL));
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_snowflake_new(options, &none, &detail));
    CHECK(strstr(detail.message, "max_wait_ms") != NULL);
    CHECK(is_utf8(detail.message));
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_compose(options, NOW, 0, &id, NULL));
    polyflake_options_free(options);
  }
  CHECK_NUMBER(SENTINEL_ID, id);
  polyflake_options *options = polyflake_options_new();
  begin("options", "the node is required");
  CHECK_STATUS(POLYFLAKE_INVALID_NODE, polyflake_snowflake_new(options, &none, NULL));
  CHECK(none == NULL);
  polyflake_options_free(options);
}

static void lifetimes(void) {
  struct clock_answer clock = {NOW, 0, 0};
  begin("lifetimes", "a Snowflake outlives its options, and options outlive their layout");
  polyflake_options *options = options_with_clock(&clock);
  polyflake_layout *layout = parsed("sonyflake");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_layout(options, layout, NULL));
  polyflake_layout_free(layout);
  polyflake_snowflake *first = made_from(options), *second = made_from(options);
  polyflake_options_free(options);
  uint64_t id = SENTINEL_ID, same = SENTINEL_ID;
  char text[POLYFLAKE_LAYOUT_TEXT_SIZE];
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(first, &id, NULL));
  polyflake_snowflake_free(first);
  /* With a custom clock, each Snowflake has its own cursor. */
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(second, &same, NULL));
  CHECK_NUMBER(id, same);
  CHECK_STATUS(
      POLYFLAKE_OK, polyflake_layout_text(polyflake_snowflake_layout(second), text, sizeof text, NULL)
  );
  CHECK_TEXT("timestamp:39|sequence:8|machine:16@1409529600000/10ms", text);
  polyflake_snowflake_free(second);
}

/* ---- texts ---- */

static void invalid_utf8(void) {
  static const char *const texts[] = {"\xff", "twitter\xff", "\xc3\x28", "\xed\xa0\x80", "\xf4\x90\x80\x80"};
  struct clock_answer clock = {NOW, 0, 0};
  polyflake_layout *layout = parsed("twitter"), *none = NULL;
  for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
    const char *text = texts[n];
    polyflake_options *options = options_with_clock(&clock);
    polyflake_snowflake *no_snowflake = NULL;
    polyflake_detail detail = fresh_detail();
    uint64_t id = SENTINEL_ID;
    char room[POLYFLAKE_ID_TEXT_SIZE];
    fill_with_sentinel(room, sizeof room);

    begin("invalid UTF-8", "as a layout, an option's value");
    CHECK_STATUS(POLYFLAKE_UNKNOWN_LAYOUT, polyflake_layout_parse(text, &none, &detail));
    CHECK(is_utf8(detail.message));
    CHECK_STATUS(POLYFLAKE_UNKNOWN_LAYOUT, polyflake_options_set(options, "layout", text, NULL));
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_set(options, "max_wait_ms", text, NULL));
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_options_set(options, "clock", text, NULL));

    begin("invalid UTF-8", "as a node, its field, its value");
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", text, NULL));
    CHECK_STATUS(POLYFLAKE_INVALID_NODE, polyflake_snowflake_new(options, &no_snowflake, &detail));
    CHECK(is_utf8(detail.message));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "datacenter=1,worker=2", NULL));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_node_field(options, text, "7", NULL));
    CHECK_STATUS(POLYFLAKE_INVALID_NODE, polyflake_snowflake_new(options, &no_snowflake, &detail));
    CHECK(is_utf8(detail.message));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "7", NULL));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_node_field(options, "datacenter", "7", NULL));
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_node_field(options, "worker", text, NULL));
    CHECK_STATUS(POLYFLAKE_INVALID_NODE, polyflake_snowflake_new(options, &no_snowflake, &detail));
    CHECK(is_utf8(detail.message));
    CHECK_STATUS(POLYFLAKE_INVALID_NODE, polyflake_options_compose(options, NOW, 0, &id, &detail));
    CHECK(is_utf8(detail.message));

    begin("invalid UTF-8", "as an ID, a format, a field's name");
    CHECK_STATUS(POLYFLAKE_INVALID_ID, polyflake_id_read(text, "decimal", &id, &detail));
    CHECK(is_utf8(detail.message));
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_id_read("1", text, &id, &detail));
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_id_write(1, text, room, sizeof room, &detail));
    CHECK(is_utf8(detail.message));
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_layout_decode_field(layout, 1, text, &id, &detail));

    begin("invalid UTF-8", "writes no output");
    CHECK(none == NULL && no_snowflake == NULL);
    CHECK_NUMBER(SENTINEL_ID, id);
    CHECK(is_sentinel(room, sizeof room));
    polyflake_options_free(options);
  }
  polyflake_layout_free(layout);
}

static void capacities(void) {
  static const char longest[] = "abcdefghijklmnopqrstuvw0:4|abcdefghijklmnopqrstuvw1:4|"
                                "timestamp:10|abcdefghijklmnopqrstuvw2:4|abcdefghijklmnopqrstuvw3:4|"
                                "abcdefghijklmnopqrstuvw4:4|sequence:22|abcdefghijklmnopqrstuvw5:4|"
                                "abcdefghijklmnopqrstuvw6:4|abcdefghijklmnopqrstuvw7:4"
                                "@4611686018427387904/1000000000000001ms";
  polyflake_layout *layout = parsed(longest);
  char text[POLYFLAKE_LAYOUT_TEXT_SIZE];
  begin("capacity", "a layout's text and its NUL");
  for (size_t capacity = 0; capacity < sizeof longest; capacity++) {
    fill_with_sentinel(text, sizeof text);
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_layout_text(layout, text, capacity, NULL));
    CHECK(is_sentinel(text, sizeof text));
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_text(layout, text, sizeof longest, NULL));
  CHECK_TEXT(longest, text);
  CHECK(is_sentinel(text + sizeof longest, sizeof text - sizeof longest));

  begin("capacity", "a field's name of 24 bytes and its NUL");
  polyflake_field field;
  field.size = sizeof field;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_field(layout, 0, &field, NULL));
  CHECK_TEXT("abcdefghijklmnopqrstuvw0", field.name);
  polyflake_layout_free(layout);

  begin("capacity", "an ID's text and its NUL");
  static const char uuid[] = "ffffffff-ffff-8fff-bc00-000000000000";
  CHECK_NUMBER(POLYFLAKE_ID_TEXT_SIZE, sizeof uuid);
  for (size_t capacity = 0; capacity < sizeof uuid; capacity++) {
    fill_with_sentinel(text, sizeof text);
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_id_write(UINT64_MAX, "uuid", text, capacity, NULL));
    CHECK(is_sentinel(text, sizeof text));
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_id_write(UINT64_MAX, "uuid", text, sizeof uuid, NULL));
  CHECK_TEXT(uuid, text);

  begin("capacity", "a public ID and its NUL");
  static const char prefix[] = "a23456789012345678901234";
  polyflake_public_ids *ids = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_public_ids_new(PUBLIC_KEY, prefix, &ids, NULL));
  for (size_t capacity = 0; capacity < POLYFLAKE_PUBLIC_ID_SIZE; capacity++) {
    fill_with_sentinel(text, sizeof text);
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_public_ids_encode(ids, 1, text, capacity, NULL));
    CHECK(is_sentinel(text, sizeof text));
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_public_ids_encode(ids, 1, text, POLYFLAKE_PUBLIC_ID_SIZE, NULL));
  CHECK_NUMBER(POLYFLAKE_PUBLIC_ID_SIZE, strlen(text) + 1);
  polyflake_public_ids_free(ids);
}

static void out_of_range(void) {
  polyflake_layout *layout = parsed("twitter");
  polyflake_field field;
  fill_with_sentinel(&field, sizeof field);
  field.size = sizeof field;
  begin("out of range", "a field's index");
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_layout_field(layout, 4, &field, NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_layout_field(layout, SIZE_MAX, &field, NULL));
  CHECK(is_sentinel(&field.mask, sizeof field - offsetof(polyflake_field, mask)));

  begin("out of range", "the name of a field that is not a node field");
  uint64_t value = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_layout_decode_field(layout, 1, "shard", &value, NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_layout_decode_field(layout, 1, "", &value, NULL));
  CHECK_STATUS(
      POLYFLAKE_INVALID_ID, polyflake_layout_decode_field(layout, UINT64_MAX, "worker", &value, NULL)
  );
  CHECK_NUMBER(SENTINEL_ID, value);

  begin("out of range", "nanoseconds round up to the next ID or down to the last one");
  uint64_t at = 0, after = 0;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_min_id(layout, NOW, 0, &at, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_min_id(layout, NOW, 1, &after, NULL));
  CHECK_NUMBER(UINT64_C(1) << 22, after - at);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_min_id(layout, NOW, 999999, &after, NULL));
  CHECK_NUMBER(UINT64_C(1) << 22, after - at);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_max_id(layout, NOW, 0, &at, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_max_id(layout, NOW, 999999, &after, NULL));
  CHECK_NUMBER(at, after);
  polyflake_layout_free(layout);

  begin("out of range", "a preset's index");
  CHECK(polyflake_preset_count() > 0);
  CHECK(polyflake_preset_name(polyflake_preset_count()) == NULL);
  CHECK(polyflake_preset_name(SIZE_MAX) == NULL);
  CHECK(polyflake_preset_name(0) != NULL);
}

/* ---- batches ---- */

static void batches(void) {
  static const int64_t rejected[] = {0, -1, POLYFLAKE_MAX_BATCH + 1, INT64_MAX, INT64_MIN};
  struct clock_answer clock = {NOW, 1, 0};
  polyflake_snowflake *snowflake = snowflake_with_clock(&clock);
  uint64_t ids[8];
  begin("batches", "sizes that polyflake_check_batch rejects");
  for (size_t n = 0; n < sizeof rejected / sizeof *rejected; n++) {
    polyflake_detail detail = fresh_detail();
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_check_batch(rejected[n], &detail));
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_check_batch(rejected[n], NULL));
    CHECK(strstr(detail.message, "16777216") != NULL);
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_check_batch(1, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_check_batch(POLYFLAKE_MAX_BATCH, NULL));

  begin("batches", "polyflake_fill with n = 0 does nothing, with or without an array");
  fill_with_sentinel(ids, sizeof ids);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_fill(snowflake, 0, NULL, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_fill(snowflake, 0, ids, NULL));
  CHECK(is_sentinel(ids, sizeof ids));

  begin("batches", "polyflake_fill with an n larger than memory");
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_fill(snowflake, SIZE_MAX, ids, NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_fill(snowflake, SIZE_MAX / 8, ids, NULL));
  CHECK(is_sentinel(ids, sizeof ids));

  begin("batches", "exactly n IDs are written");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_fill(snowflake, 3, ids, NULL));
  CHECK(ids[0] < ids[1] && ids[1] < ids[2] && ids[3] == SENTINEL_ID);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_fill(snowflake, 1, ids, NULL));
  CHECK(ids[0] > ids[2] && ids[3] == SENTINEL_ID);

  begin("batches", "polyflake_next_id_or_zero continues after them");
  CHECK(polyflake_next_id_or_zero(snowflake) > ids[0]);
  clock.result = 1;
  CHECK_NUMBER(0, polyflake_next_id_or_zero(snowflake));
  polyflake_snowflake_free(snowflake);
}

/* ---- calls that leave the waiting to the caller ---- */

struct polled_clock {
  struct clock_answer clock;
  polyflake_waiting *waiting; /* polled once from the clock itself */
  polyflake_status status;
};

static int polls(void *user, int64_t *unix_ms) {
  struct polled_clock *polled = user;
  if (polled->waiting) {
    polyflake_waiting *waiting = polled->waiting;
    uint64_t id, pause_ns;
    size_t filled;
    polled->waiting = NULL;
    polled->status = polyflake_waiting_poll(waiting, 0, 1, &id, &filled, &pause_ns, NULL);
  }
  return answer(&polled->clock, unix_ms);
}

static void waits(void) {
  struct polled_clock clock = {{NOW, 0, 0}, NULL, POLYFLAKE_OK};
  polyflake_options *options = polyflake_options_new();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "7", NULL));
  CHECK_STATUS(
      POLYFLAKE_OK, polyflake_options_set(options, "layout", "timestamp:41|worker:4|sequence:2@0/1ms", NULL)
  );
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_clock(options, polls, &clock, NULL));
  polyflake_snowflake *snowflake = made_from(options);
  polyflake_options_free(options);
  polyflake_waiting *waiting = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_new(snowflake, &waiting, NULL));
  uint64_t ids[8], pause_ns = SENTINEL_ID;
  size_t filled = 0;

  begin("waits", "a poll fills what there is, and then says how long to wait");
  fill_with_sentinel(ids, sizeof ids);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 0, 8, ids, &filled, &pause_ns, NULL));
  CHECK(filled > 0 && filled <= 4 && ids[filled] == SENTINEL_ID);
  CHECK_NUMBER(0, pause_ns);
  uint64_t last = ids[filled - 1];
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 0, 8, ids, &filled, &pause_ns, NULL));
  CHECK(filled == 0 && pause_ns > 0);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 1, 8, ids, &filled, &pause_ns, NULL));
  CHECK(filled == 0 && pause_ns > 0);
  clock.clock.unix_ms += 1;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 2, 8, ids, &filled, &pause_ns, NULL));
  CHECK(filled > 0 && ids[0] > last);

  begin("waits", "another call takes the IDs of one that waits into account");
  while (polyflake_try_next_id(snowflake, ids, NULL) == POLYFLAKE_OK) {
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 0, 1, ids, &filled, &pause_ns, NULL));
  CHECK(filled == 0);
  clock.clock.step = 1;
  uint64_t led;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &led, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 1, 1, ids, &filled, &pause_ns, NULL));
  CHECK(filled == 1 && ids[0] != led);
  clock.clock.step = 0;

  begin("waits", "IDs that are there now are taken without a wait, which is counted once");
  polyflake_stats stats = {sizeof stats, 0, 0, 0, 0, 0};
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_stats(snowflake, &stats, NULL));
  uint64_t waits_before = stats.waits;
  clock.clock.unix_ms += 1;
  fill_with_sentinel(ids, sizeof ids);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id_now(snowflake, ids, NULL));
  CHECK(ids[0] > led && ids[1] == SENTINEL_ID);
  CHECK(polyflake_next_id_now_or_zero(snowflake) > ids[0]);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_fill_now(snowflake, 8, ids, &filled, NULL));
  CHECK(filled > 0 && filled < 4 && ids[filled] == SENTINEL_ID);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 1, 8, ids, &filled, &pause_ns, NULL));
  CHECK(filled == 0 && pause_ns > 0);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id_now(snowflake, ids, NULL));
  CHECK_NUMBER(0, ids[0]);
  CHECK_NUMBER(0, polyflake_next_id_now_or_zero(snowflake));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_stats(snowflake, &stats, NULL));
  CHECK_NUMBER(waits_before + 3, stats.waits);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_fill_now(snowflake, 0, NULL, &filled, NULL));
  CHECK(filled == 0);
  polyflake_pause(1);

  begin("waits", "max_wait_ms ends it");
  polyflake_detail detail = fresh_detail();
  uint32_t max_wait_ms = 0;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_max_wait_ms(snowflake, &max_wait_ms, &detail));
  CHECK_NUMBER(1001, max_wait_ms);
  while (polyflake_try_next_id(snowflake, ids, NULL) == POLYFLAKE_OK) {
  }
  CHECK_STATUS(
      POLYFLAKE_SEQUENCE_EXHAUSTED,
      polyflake_waiting_poll(waiting, UINT64_C(1001000000), 1, ids, &filled, &pause_ns, &detail)
  );
  CHECK_NUMBER(1, detail.retry_after_ms);

  begin("waits", "a clock that polls the call that reads it is refused");
  clock.clock.unix_ms += 10;
  clock.waiting = waiting;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 0, 1, ids, &filled, &pause_ns, NULL));
  CHECK(filled == 1);
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, clock.status);

  begin("waits", "no IDs asked for, and a closed Snowflake");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_waiting_poll(waiting, 0, 0, NULL, &filled, &pause_ns, NULL));
  CHECK(filled == 0);
  polyflake_snowflake_close(snowflake);
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_next_id_now(snowflake, ids, NULL));
  CHECK_NUMBER(0, polyflake_next_id_now_or_zero(snowflake));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_fill_now(snowflake, 1, ids, &filled, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_fill_now(snowflake, 0, NULL, &filled, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_waiting_poll(waiting, 0, 1, ids, &filled, &pause_ns, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_waiting_poll(waiting, 0, 0, NULL, &filled, &pause_ns, NULL));
  polyflake_waiting_free(waiting);
  polyflake_snowflake_free(snowflake);
}

/* ---- closing ---- */

static void check_closed(polyflake_snowflake *snowflake, uint64_t node) {
  uint64_t id = SENTINEL_ID, ids[4];
  polyflake_stats stats;
  stats.size = sizeof stats;
  polyflake_detail detail = fresh_detail();
  fill_with_sentinel(ids, sizeof ids);
  for (int twice = 0; twice < 2; twice++) {
    polyflake_snowflake_close(snowflake);
    CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_next_id(snowflake, &id, &detail));
    CHECK(strncmp(detail.message, "closed: ", 8) == 0);
    CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_try_next_id(snowflake, &id, NULL));
    CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_fill(snowflake, 4, ids, NULL));
    CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_snowflake_stats(snowflake, &stats, NULL));
    CHECK_NUMBER(0, polyflake_next_id_or_zero(snowflake));
  }
  CHECK_NUMBER(SENTINEL_ID, id);
  CHECK(is_sentinel(ids, sizeof ids));
  /* The layout and node of a closed Snowflake are still available. */
  CHECK_NUMBER(node, node_of(snowflake));
  CHECK(polyflake_snowflake_layout(snowflake) != NULL);
  polyflake_snowflake_free(snowflake);
}

static void closes(void) {
  struct clock_answer clock = {NOW, 0, 0};
  uint64_t id;
  begin("closing", "every later call returns closed, with a clock of the caller");
  polyflake_snowflake *snowflake = snowflake_with_clock(&clock);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &id, NULL));
  check_closed(snowflake, 7);

  begin("closing", "every later call returns closed, without an ID before");
  check_closed(snowflake_with_clock(&clock), 7);

  begin("closing", "every later call returns closed, with a built-in clock, whose cursor stays usable");
  polyflake_options *options = polyflake_options_new();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "43", NULL));
  polyflake_snowflake *other = made_from(options);
  check_closed(made_from(options), 43);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(other, &id, NULL));
  polyflake_snowflake_free(other);
  polyflake_options_free(options);
}

/* ---- clocks ---- */

/* Every call that reads the clock returns this status and writes no output. */
static void check_clock(const char *name, struct clock_answer clock, polyflake_status expected) {
  polyflake_snowflake *snowflake = snowflake_with_clock(&clock);
  uint64_t id = SENTINEL_ID, ids[4];
  begin("clocks", name);
  CHECK_STATUS(expected, polyflake_next_id(snowflake, &id, NULL));
  polyflake_detail detail = fresh_detail();
  CHECK_STATUS(expected, polyflake_next_id(snowflake, &id, &detail));
  CHECK(
      strncmp(detail.message, polyflake_status_name(expected), strlen(polyflake_status_name(expected))) == 0
  );
  CHECK_STATUS(expected, polyflake_try_next_id(snowflake, &id, NULL));
  CHECK_STATUS(expected, polyflake_fill(snowflake, 4, ids, NULL));
  CHECK_STATUS(expected, polyflake_fill(snowflake, 4, ids, NULL));
  CHECK_NUMBER(SENTINEL_ID, id);
  if (expected == POLYFLAKE_CLOCK_FAILED) {
    polyflake_stats stats;
    fill_with_sentinel(&stats, sizeof stats);
    stats.size = sizeof stats;
    CHECK_STATUS(expected, polyflake_snowflake_stats(snowflake, &stats, NULL));
    CHECK(is_sentinel(&stats.waits, sizeof stats - offsetof(polyflake_stats, waits)));
  }
  /* The Snowflake recovers when the clock does. */
  clock.unix_ms = NOW;
  clock.step = clock.result = 0;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &id, NULL));
  CHECK(id != SENTINEL_ID);
  polyflake_snowflake_free(snowflake);
}

static void clocks(void) {
  const int64_t epoch = INT64_C(1288834974657), end = INT64_C(3487858230208);
  check_clock("returns 1", (struct clock_answer){NOW, 0, 1}, POLYFLAKE_CLOCK_FAILED);
  check_clock("returns -1", (struct clock_answer){NOW, 0, -1}, POLYFLAKE_CLOCK_FAILED);
  check_clock("before the epoch", (struct clock_answer){epoch - 1, 0, 0}, POLYFLAKE_TIME_OUT_OF_RANGE);
  check_clock("says -1", (struct clock_answer){-1, 0, 0}, POLYFLAKE_TIME_OUT_OF_RANGE);
  check_clock("says the least", (struct clock_answer){INT64_MIN, 0, 0}, POLYFLAKE_TIME_OUT_OF_RANGE);
  check_clock("past the end", (struct clock_answer){end + 1, 0, 0}, POLYFLAKE_TIME_OUT_OF_RANGE);
  check_clock("says the most", (struct clock_answer){INT64_MAX, 0, 0}, POLYFLAKE_TIME_OUT_OF_RANGE);

  begin("clocks", "one that writes nothing reads as 1970, which is before the epoch");
  polyflake_options *options = polyflake_options_new();
  polyflake_options_set(options, "node", "7", NULL);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_clock(options, writes_nothing, NULL, NULL));
  polyflake_snowflake *snowflake = made_from(options);
  uint64_t id = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_TIME_OUT_OF_RANGE, polyflake_next_id(snowflake, &id, NULL));
  CHECK_NUMBER(SENTINEL_ID, id);
  polyflake_snowflake_free(snowflake);

  begin("clocks", "a NULL clock restores the built-in one");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "41", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_clock(options, NULL, NULL, NULL));
  snowflake = made_from(options);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &id, NULL));
  polyflake_snowflake_free(snowflake);
  polyflake_options_free(options);

  begin("clocks", "one that stops or runs backwards forever never hangs a call");
  struct clock_answer clock = {NOW, 0, 0};
  options = options_with_clock(&clock);
  CHECK_STATUS(
      POLYFLAKE_OK, polyflake_options_set(options, "layout", "timestamp:41|worker:4|sequence:2@0/1ms", NULL)
  );
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "max_wait_ms", "2", NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "sequence_start", "zero", NULL));
  snowflake = made_from(options);
  uint64_t ids[4];
  polyflake_detail detail = fresh_detail();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_fill(snowflake, 4, ids, NULL));
  id = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_SEQUENCE_EXHAUSTED, polyflake_next_id(snowflake, &id, &detail));
  CHECK_NUMBER(1, detail.retry_after_ms);
  CHECK_NUMBER(0, detail.behind_ms);
  clock.step = -1;
  CHECK_STATUS(POLYFLAKE_CLOCK_MOVED_BACKWARDS, polyflake_fill(snowflake, 4, ids, &detail));
  CHECK(detail.behind_ms > 0 && detail.retry_after_ms > detail.behind_ms);
  CHECK_NUMBER(SENTINEL_ID, id);
  polyflake_snowflake_free(snowflake);
  polyflake_options_free(options);
}

/* ---- fork ---- */

/* Returns the exit status of a child process: 0 if all calls fail as they should, otherwise the number of the
 * first call that does not. */
static int in_child(const polyflake_snowflake *snowflake) {
  uint64_t id = SENTINEL_ID, ids[4];
  if (polyflake_next_id(snowflake, &id, NULL) != POLYFLAKE_FORKED) {
    return 1;
  }
  if (polyflake_try_next_id(snowflake, &id, NULL) != POLYFLAKE_FORKED) {
    return 2;
  }
  if (polyflake_fill(snowflake, 4, ids, NULL) != POLYFLAKE_FORKED) {
    return 3;
  }
  return id == SENTINEL_ID ? 0 : 4;
}

static void check_fork(const char *name, polyflake_snowflake *snowflake) {
  uint64_t id;
  int status = -1;
  begin("calls in a forked child fail", name);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    _exit(in_child(snowflake));
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_NUMBER(0, (uint64_t)WEXITSTATUS(status));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_next_id(snowflake, &id, NULL));
  polyflake_snowflake_free(snowflake);
}

static void forks(void) {
  struct clock_answer clock = {NOW, 0, 0};
  polyflake_options *options = polyflake_options_new();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "node", "42", NULL));
  check_fork("a built-in clock", made_from(options));
  polyflake_options_free(options);
  check_fork("the caller's clock", snowflake_with_clock(&clock));
}

/* ---- leases: the rest is in lease.c ---- */

static void never(void *user, const polyflake_lease_event *event) {
  (void)event;
  *(int *)user = 1;
}

static void no_lease(void) {
  struct clock_answer clock = {NOW, 0, 0};
  int was_called = 0;
  begin("leases", "a Snowflake without one says so, also when it is closed");
  polyflake_snowflake *snowflake = snowflake_with_clock(&clock);
  for (int twice = 0; twice < 2; twice++) {
    polyflake_lease lease;
    fill_with_sentinel(&lease, sizeof lease);
    lease.size = sizeof lease;
    CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_lease(snowflake, &lease, NULL));
    CHECK_TEXT("none", polyflake_lease_state_name(lease.state));
    CHECK_NUMBER(0, lease.node);
    CHECK_NUMBER(0, lease.bound_ms);
    CHECK_NUMBER(0, lease.left_ms);
    CHECK_TEXT("", lease.store);
    polyflake_snowflake_close(snowflake);
  }
  polyflake_snowflake_free(snowflake);

  begin("leases", "fail with what they cannot go with");
  static const char *const others[][2] = {{"clock", "of the caller"}, {"state", "/tmp/never"}};
  for (size_t n = 0; n < 2; n++) {
    polyflake_options *options = n == 0 ? options_with_clock(&clock) : polyflake_options_new();
    polyflake_detail detail = fresh_detail();
    polyflake_snowflake *none = NULL;
    CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "lease", "sqlite:///never/made.db", NULL));
    if (n > 0) {
      CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, others[n][0], others[n][1], NULL));
    }
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_snowflake_new(options, &none, &detail));
    CHECK(strstr(detail.message, others[n][0]) != NULL);
    CHECK(none == NULL);
    polyflake_options_free(options);
  }

  begin("leases", "a listener is set and ended without a lease, also with a NULL user");
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(never, &was_called, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(never, &was_called, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(NULL, &was_called, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_set_lease_listener(NULL, NULL, NULL));
  CHECK(!was_called);

  begin("leases", "the names of states");
  static const char *const names[] = {"none", "held", "unreachable", "lost", "closed"};
  for (int state = 0; state < 5; state++) {
    CHECK_TEXT(names[state], polyflake_lease_state_name(state));
  }
  CHECK_TEXT("unknown", polyflake_lease_state_name(-1));
  CHECK_TEXT("unknown", polyflake_lease_state_name(5));
}

/* ---- statuses and versions ---- */

static void statuses(void) {
  static const struct {
    polyflake_status status;
    int number;
    const char *name;
  } known[] = {
      {POLYFLAKE_OK, 0, "ok"},
      {POLYFLAKE_INVALID_LAYOUT, 1, "invalid_layout"},
      {POLYFLAKE_UNKNOWN_LAYOUT, 2, "unknown_layout"},
      {POLYFLAKE_INVALID_NODE, 3, "invalid_node"},
      {POLYFLAKE_INVALID_OPTION, 4, "invalid_option"},
      {POLYFLAKE_INVALID_ID, 5, "invalid_id"},
      {POLYFLAKE_TIME_OUT_OF_RANGE, 6, "time_out_of_range"},
      {POLYFLAKE_CLOCK_MOVED_BACKWARDS, 7, "clock_moved_backwards"},
      {POLYFLAKE_SEQUENCE_EXHAUSTED, 8, "sequence_exhausted"},
      {POLYFLAKE_FORKED, 9, "forked"},
      {POLYFLAKE_CLOCK_FAILED, 10, "clock_failed"},
      {POLYFLAKE_STATE_FILE, 11, "state_file"},
      {POLYFLAKE_LEASE_UNAVAILABLE, 12, "lease_unavailable"},
      {POLYFLAKE_LEASE_LOST, 13, "lease_lost"},
      {POLYFLAKE_CLOSED, 14, "closed"},
      {POLYFLAKE_COUNTER_UNAVAILABLE, 15, "counter_unavailable"},
      {POLYFLAKE_INTERNAL, 99, "internal"},
  };
  static const polyflake_status unknown[] = {-1, 16, 98, 100, INT32_MIN, INT32_MAX};
  begin("statuses", "the permanent numbers and names");
  for (size_t n = 0; n < sizeof known / sizeof *known; n++) {
    CHECK_NUMBER((uint64_t)known[n].number, (uint64_t)known[n].status);
    CHECK_TEXT(known[n].name, polyflake_status_name(known[n].status));
    CHECK(strlen(polyflake_status_message(known[n].status)) > 5);
    CHECK(polyflake_status_name(known[n].status) == polyflake_status_name(known[n].status));
  }
  begin("statuses", "unknown numbers");
  for (size_t n = 0; n < sizeof unknown / sizeof *unknown; n++) {
    CHECK_TEXT("unknown", polyflake_status_name(unknown[n]));
    CHECK(strlen(polyflake_status_message(unknown[n])) > 5);
  }
}

static void versions(void) {
  char version[64];
  begin("versions", "are the same in the header and the library");
  CHECK_NUMBER(POLYFLAKE_ABI_VERSION, polyflake_abi_version());
  snprintf(
      version,
      sizeof version,
      "%d.%d.%d",
      POLYFLAKE_VERSION_MAJOR,
      POLYFLAKE_VERSION_MINOR,
      POLYFLAKE_VERSION_PATCH
  );
  CHECK_TEXT(version, polyflake_version());
  CHECK(polyflake_copies_warning() == NULL);
}

int main(void) {
  null_layouts();
  null_options();
  null_snowflakes();
  null_counters();
  null_sequences();
  null_texts();
  null_public_ids();
  public_keys();
  null_frees();
  sized_structs();
  words();
  details();
  options_twice();
  state_files();
  state_paths();
  composed();
  options_unknown();
  lifetimes();
  invalid_utf8();
  capacities();
  out_of_range();
  batches();
  waits();
  closes();
  clocks();
  forks();
  no_lease();
  statuses();
  versions();
  return finish(205);
}
