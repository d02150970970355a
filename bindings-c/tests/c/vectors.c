/* vectors PATH ...: runs every case in tests/vectors.json and tests/public_ids.json through the C API. These
 * files describe their own formats. */
#include "check.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With fewer cases, either the file or this program must have lost some. */
#define FLOOR 1770

static const cJSON *vectors;

/* ---- JSON ---- */

static const char *text_of(const cJSON *value) {
  if (!cJSON_IsString(value)) {
    give_up("a text is missing in the vectors");
  }
  return value->valuestring;
}

static const cJSON *member(const cJSON *object, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *text(const cJSON *object, const char *name) {
  return text_of(member(object, name));
}

static unsigned int small(const cJSON *object, const char *name) {
  const cJSON *value = member(object, name);
  if (!cJSON_IsNumber(value)) {
    give_up("a number is missing in the vectors");
  }
  return (unsigned int)value->valueint;
}

/* Returns 0 if the number does not fit in a uint64_t. */
static int express_unsigned(const char *digits, uint64_t *number) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(digits, &end, 10);
  *number = value;
  return isdigit((unsigned char)digits[0]) && *end == '\0' && errno == 0 && value <= UINT64_MAX;
}

/* Returns 0 if the number does not fit in an int64_t. */
static int express_signed(const char *digits, int64_t *number) {
  char *end;
  errno = 0;
  long long value = strtoll(digits, &end, 10);
  *number = value;
  return (digits[0] == '-' || isdigit((unsigned char)digits[0])) && *end == '\0' && errno == 0;
}

static uint64_t number(const cJSON *object, const char *name) {
  uint64_t value;
  if (!express_unsigned(text(object, name), &value)) {
    give_up("a number of the vectors does not fit into 64 bits");
  }
  return value;
}

static int64_t time_ms(const cJSON *object, const char *name) {
  int64_t value;
  if (!express_signed(text(object, name), &value)) {
    give_up("a time of the vectors does not fit into 64 bits");
  }
  return value;
}

/* ---- errors ---- */

static polyflake_status status_of(const char *name) {
  const cJSON *error;
  cJSON_ArrayForEach(error, member(vectors, "errors")) {
    if (strcmp(text(error, "name"), name) == 0) {
      return (polyflake_status)small(error, "number");
    }
  }
  give_up("a case names an error that is not in the table");
  return POLYFLAKE_OK;
}

static uint64_t number_or_0(const cJSON *object, const char *name) {
  return member(object, name) ? number(object, name) : 0;
}

/* expected contains "error" and that error's values. */
static void check_error(const cJSON *expected, polyflake_status status, const polyflake_detail *detail) {
  const char *name = text(expected, "error");
  CHECK_STATUS(status_of(name), status);
  CHECK_TEXT(name, polyflake_status_name(status));
  CHECK_NUMBER(number_or_0(expected, "behind_ms"), detail->behind_ms);
  CHECK_NUMBER(number_or_0(expected, "retry_after_ms"), detail->retry_after_ms);
  CHECK(memchr(detail->message, '\0', sizeof detail->message) != NULL);
  CHECK(strncmp(detail->message, name, strlen(name)) == 0);
  CHECK(strlen(detail->message) > strlen(name) + 2);
}

/* ---- layouts ---- */

static polyflake_layout *layout_of(const char *given) {
  polyflake_layout *layout = NULL;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_parse(given, &layout, NULL));
  if (!layout) {
    give_up(given);
  }
  return layout;
}

static void check_layout_text(const char *expected, const polyflake_layout *layout) {
  char written[POLYFLAKE_LAYOUT_TEXT_SIZE];
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_text(layout, written, sizeof written, NULL));
  CHECK_TEXT(expected, written);
}

static void check_properties(const cJSON *expected, const polyflake_layout *layout) {
  polyflake_layout_info info = {sizeof info, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_properties(layout, &info, NULL));
  CHECK_NUMBER(number(expected, "epoch_ms"), info.epoch_ms);
  CHECK_NUMBER(number(expected, "tick_ms"), info.tick_ms);
  CHECK_NUMBER(number(expected, "ends_at_ms"), info.ends_at_ms);
  CHECK_NUMBER(number(expected, "ids_per_tick"), info.ids_per_tick);
  CHECK_NUMBER(number(expected, "nodes"), info.nodes);
  CHECK_NUMBER(small(expected, "total_bits"), info.total_bits);
  CHECK_NUMBER(small(expected, "timestamp_bits"), info.timestamp_bits);
  CHECK_NUMBER(small(expected, "timestamp_shift"), info.timestamp_shift);
  CHECK_NUMBER(small(expected, "sequence_bits"), info.sequence_bits);
  CHECK_NUMBER(small(expected, "sequence_shift"), info.sequence_shift);
  CHECK_NUMBER(small(expected, "node_bits"), info.node_bits);

  const cJSON *expected_field, *fields = member(expected, "fields");
  CHECK_NUMBER((uint64_t)cJSON_GetArraySize(fields), info.field_count);
  size_t index = 0;
  cJSON_ArrayForEach(expected_field, fields) {
    const char *name = text(expected_field, "name");
    polyflake_field field = {sizeof field, 0, 0, 0, 2, ""};
    CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_field(layout, index++, &field, NULL));
    CHECK_TEXT(name, field.name);
    CHECK_NUMBER(small(expected_field, "bits"), field.bits);
    CHECK_NUMBER(small(expected_field, "shift"), field.shift);
    CHECK_NUMBER(number(expected_field, "mask"), field.mask);
    CHECK_NUMBER(strcmp(name, "timestamp") != 0 && strcmp(name, "sequence") != 0, field.is_node);
  }
  polyflake_field none = {sizeof none, 0, 0, 0, 0, ""};
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_layout_field(layout, index, &none, NULL));
}

static void run_error(const cJSON *error) {
  static const struct {
    const char *name;
    polyflake_status status;
  } constants[] = {
      {"invalid_layout", POLYFLAKE_INVALID_LAYOUT},
      {"unknown_layout", POLYFLAKE_UNKNOWN_LAYOUT},
      {"invalid_node", POLYFLAKE_INVALID_NODE},
      {"invalid_option", POLYFLAKE_INVALID_OPTION},
      {"invalid_id", POLYFLAKE_INVALID_ID},
      {"time_out_of_range", POLYFLAKE_TIME_OUT_OF_RANGE},
      {"clock_moved_backwards", POLYFLAKE_CLOCK_MOVED_BACKWARDS},
      {"sequence_exhausted", POLYFLAKE_SEQUENCE_EXHAUSTED},
      {"forked", POLYFLAKE_FORKED},
      {"clock_failed", POLYFLAKE_CLOCK_FAILED},
      {"state_file", POLYFLAKE_STATE_FILE},
      {"lease_unavailable", POLYFLAKE_LEASE_UNAVAILABLE},
      {"lease_lost", POLYFLAKE_LEASE_LOST},
      {"closed", POLYFLAKE_CLOSED},
      {"counter_unavailable", POLYFLAKE_COUNTER_UNAVAILABLE},
      {"internal", POLYFLAKE_INTERNAL},
  };
  const char *name = text(error, "name");
  int found = 0;
  for (size_t n = 0; n < sizeof constants / sizeof *constants; n++) {
    if (strcmp(constants[n].name, name) == 0) {
      CHECK_NUMBER(small(error, "number"), (uint64_t)constants[n].status);
      found = 1;
    }
  }
  CHECK(found);
  CHECK_TEXT(name, polyflake_status_name((polyflake_status)small(error, "number")));
  CHECK(*polyflake_status_message((polyflake_status)small(error, "number")));
}

static void run_layout(const cJSON *expected) {
  polyflake_layout *layout = layout_of(text(expected, "given"));
  check_layout_text(text(expected, "text"), layout);
  check_properties(expected, layout);
  polyflake_layout_free(layout);
  /* The text parses back to the same layout. */
  layout = layout_of(text(expected, "text"));
  check_layout_text(text(expected, "text"), layout);
  check_properties(expected, layout);
  polyflake_layout_free(layout);
}

static void run_layout_error(const cJSON *entry) {
  polyflake_detail detail = fresh_detail();
  polyflake_layout *layout = NULL;
  polyflake_status status = polyflake_layout_parse(text(entry, "given"), &layout, &detail);
  check_error(entry, status, &detail);
  CHECK(layout == NULL);
}

static void run_decode(const cJSON *expected) {
  polyflake_layout *layout = layout_of(text(expected, "layout"));
  uint64_t id = number(expected, "id");
  polyflake_decoded decoded;
  fill_with_sentinel(&decoded, sizeof decoded);
  decoded.size = sizeof decoded;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_decode(layout, id, &decoded, NULL));
  CHECK_NUMBER(id, decoded.id);
  CHECK_NUMBER(number(expected, "timestamp_ms"), decoded.timestamp_ms);
  CHECK_NUMBER(number(expected, "ticks"), decoded.ticks);
  CHECK_NUMBER(number(expected, "node"), decoded.node);
  CHECK_NUMBER(number(expected, "sequence"), decoded.sequence);
  const cJSON *fields = member(expected, "fields");
  CHECK_NUMBER((uint64_t)cJSON_GetArraySize(fields), decoded.field_count);

  /* Reads each node field by its index, in the order of the layout, and by its name. */
  uint64_t node_fields = 0;
  polyflake_field field = {sizeof field, 0, 0, 0, 0, ""};
  for (size_t n = 0; polyflake_layout_field(layout, n, &field, NULL) == POLYFLAKE_OK; n++) {
    if (!field.is_node) {
      continue;
    }
    uint64_t value = number(fields, field.name), by_name = SENTINEL_ID;
    CHECK_NUMBER(value, decoded.fields[node_fields]);
    CHECK_STATUS(POLYFLAKE_OK, polyflake_layout_decode_field(layout, id, field.name, &by_name, NULL));
    CHECK_NUMBER(value, by_name);
    node_fields++;
  }
  CHECK_NUMBER(decoded.field_count, node_fields);
  for (size_t n = decoded.field_count; n < POLYFLAKE_MAX_NODE_FIELDS; n++) {
    CHECK_NUMBER(0, decoded.fields[n]);
  }
  polyflake_layout_free(layout);
}

static void run_decode_error(const cJSON *entry) {
  uint64_t id;
  if (!express_unsigned(text(entry, "id"), &id)) {
    skip();
    return;
  }
  polyflake_layout *layout = layout_of(text(entry, "layout"));
  polyflake_detail detail = fresh_detail();
  polyflake_decoded decoded;
  fill_with_sentinel(&decoded, sizeof decoded);
  decoded.size = sizeof decoded;
  check_error(entry, polyflake_layout_decode(layout, id, &decoded, &detail), &detail);
  CHECK(is_sentinel(&decoded.id, sizeof decoded - offsetof(polyflake_decoded, id)));
  polyflake_layout_free(layout);
}

static polyflake_status set_node(polyflake_options *options, const cJSON *node, polyflake_detail *detail) {
  if (cJSON_IsString(node)) {
    return polyflake_options_set(options, "node", node->valuestring, detail);
  }
  const cJSON *field;
  cJSON_ArrayForEach(field, node) {
    polyflake_status status =
        polyflake_options_set_node_field(options, field->string, text_of(field), detail);
    if (status != POLYFLAKE_OK) {
      return status;
    }
  }
  return POLYFLAKE_OK;
}

static polyflake_status
compose(const cJSON *of, int64_t unix_ms, uint64_t sequence, uint64_t *id, polyflake_detail *detail) {
  polyflake_layout *layout = layout_of(text(of, "layout"));
  polyflake_options *options = polyflake_options_new();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_layout(options, layout, NULL));
  CHECK_STATUS(POLYFLAKE_OK, set_node(options, member(of, "node"), NULL));
  polyflake_status status = polyflake_options_compose(options, unix_ms, sequence, id, detail);
  polyflake_options_free(options);
  polyflake_layout_free(layout);
  return status;
}

static void run_compose(const cJSON *expected) {
  uint64_t id = SENTINEL_ID, sequence = number(expected, "sequence");
  CHECK_STATUS(POLYFLAKE_OK, compose(expected, time_ms(expected, "time_ms"), sequence, &id, NULL));
  CHECK_NUMBER(number(expected, "id"), id);
}

static void run_compose_error(const cJSON *entry) {
  int64_t unix_ms;
  uint64_t sequence;
  if (!express_signed(text(entry, "time_ms"), &unix_ms) ||
      !express_unsigned(text(entry, "sequence"), &sequence)) {
    skip();
    return;
  }
  polyflake_detail detail = fresh_detail();
  uint64_t id = SENTINEL_ID;
  check_error(entry, compose(entry, unix_ms, sequence, &id, &detail), &detail);
  CHECK_NUMBER(SENTINEL_ID, id);
}

typedef polyflake_status
bound(const polyflake_layout *layout, int64_t unix_ms, uint32_t ns, uint64_t *id, polyflake_detail *detail);

static void check_bound(const cJSON *expected, bound *call, const polyflake_layout *layout, int64_t unix_ms) {
  polyflake_detail detail = fresh_detail();
  uint64_t id = SENTINEL_ID;
  polyflake_status status = call(layout, unix_ms, 0, &id, &detail);
  if (cJSON_IsString(expected)) {
    uint64_t expected_id;
    CHECK(express_unsigned(text_of(expected), &expected_id));
    CHECK_STATUS(POLYFLAKE_OK, status);
    CHECK_NUMBER(expected_id, id);
    CHECK(is_untouched(&detail));
  } else {
    check_error(expected, status, &detail);
    CHECK_NUMBER(SENTINEL_ID, id);
  }
}

static void run_bounds(const cJSON *expected) {
  int64_t unix_ms;
  if (!express_signed(text(expected, "time_ms"), &unix_ms)) {
    skip();
    return;
  }
  polyflake_layout *layout = layout_of(text(expected, "layout"));
  check_bound(member(expected, "min_id"), polyflake_layout_min_id, layout, unix_ms);
  check_bound(member(expected, "max_id"), polyflake_layout_max_id, layout, unix_ms);
  polyflake_layout_free(layout);
}

/* ---- texts ---- */

static void run_text(const cJSON *expected) {
  uint64_t id = number(expected, "id");
  const cJSON *format;
  cJSON_ArrayForEach(format, expected) {
    if (strcmp(format->string, "id") == 0) {
      continue;
    }
    char written[POLYFLAKE_ID_TEXT_SIZE];
    uint64_t read = ~id;
    CHECK_STATUS(POLYFLAKE_OK, polyflake_id_write(id, format->string, written, sizeof written, NULL));
    CHECK_TEXT(text_of(format), written);
    CHECK_STATUS(POLYFLAKE_OK, polyflake_id_read(text_of(format), format->string, &read, NULL));
    CHECK_NUMBER(id, read);
  }
}

static void run_text_read(const cJSON *expected) {
  uint64_t id = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_id_read(text(expected, "text"), text(expected, "format"), &id, NULL));
  CHECK_NUMBER(number(expected, "id"), id);
}

/* Returns whether a message contains "position N", or "position" and any digit if position is NULL. */
static int names_position(const char *message, const cJSON *position) {
  static const char word[] = "position ";
  for (const char *at = strstr(message, word); at; at = strstr(at + 1, word)) {
    char *end;
    const char *digits = at + sizeof word - 1;
    long found = strtol(digits, &end, 10);
    if (end != digits && (!position || found == position->valueint)) {
      return 1;
    }
  }
  return 0;
}

static void check_position(const cJSON *entry, const polyflake_detail *detail) {
  const cJSON *position = member(entry, "position");
  if (cJSON_IsNumber(position)) {
    CHECK(names_position(detail->message, position));
  } else {
    CHECK(!names_position(detail->message, NULL));
  }
}

static void run_text_error(const cJSON *entry) {
  polyflake_detail detail = fresh_detail();
  uint64_t id = SENTINEL_ID;
  polyflake_status status = polyflake_id_read(text(entry, "text"), text(entry, "format"), &id, &detail);
  check_error(entry, status, &detail);
  CHECK_NUMBER(SENTINEL_ID, id);
  check_position(entry, &detail);
}

/* ---- public IDs ---- */

static polyflake_status prepare(const cJSON *entry, polyflake_public_ids **ids, polyflake_detail *detail) {
  char keys[1024] = "";
  size_t length = 0;
  const cJSON *key;
  cJSON_ArrayForEach(key, member(entry, "keys")) {
    int added = snprintf(keys + length, sizeof keys - length, "%s\n", text_of(key));
    length += (size_t)added;
    if (length >= sizeof keys) {
      give_up("the keys of a case are too long");
    }
  }
  return polyflake_public_ids_new(keys, text(entry, "prefix"), ids, detail);
}

static void run_public_id(const cJSON *expected) {
  polyflake_public_ids *ids = NULL;
  char encoded[POLYFLAKE_PUBLIC_ID_SIZE];
  uint64_t id = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_OK, prepare(expected, &ids, NULL));
  CHECK_STATUS(
      POLYFLAKE_OK, polyflake_public_ids_encode(ids, number(expected, "id"), encoded, sizeof encoded, NULL)
  );
  CHECK_TEXT(text(expected, "text"), encoded);
  CHECK_STATUS(POLYFLAKE_OK, polyflake_public_ids_decode(ids, encoded, &id, NULL));
  CHECK_NUMBER(number(expected, "id"), id);
  polyflake_public_ids_free(ids);
}

static void run_public_id_read(const cJSON *expected) {
  polyflake_public_ids *ids = NULL;
  uint64_t id = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_OK, prepare(expected, &ids, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_public_ids_decode(ids, text(expected, "text"), &id, NULL));
  CHECK_NUMBER(number(expected, "id"), id);
  polyflake_public_ids_free(ids);
}

static void run_public_id_error(const cJSON *entry) {
  polyflake_public_ids *ids = NULL;
  polyflake_detail detail = fresh_detail();
  uint64_t id = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_OK, prepare(entry, &ids, NULL));
  check_error(entry, polyflake_public_ids_decode(ids, text(entry, "text"), &id, &detail), &detail);
  CHECK_NUMBER(SENTINEL_ID, id);
  check_position(entry, &detail);
  polyflake_public_ids_free(ids);
}

static void run_public_key_error(const cJSON *entry) {
  polyflake_public_ids *ids = NULL;
  polyflake_detail detail = fresh_detail();
  check_error(entry, prepare(entry, &ids, &detail), &detail);
  CHECK(ids == NULL);
}

/* ---- Snowflakes ---- */

/* A clock that returns value. In each step, every reading after the first advances it, but not past until. */
struct held_clock {
  int64_t value, advance, until;
  int was_read;
};

static int read_held_clock(void *user, int64_t *unix_ms) {
  struct held_clock *clock = user;
  if (clock->was_read) {
    clock->value =
        clock->advance < clock->until - clock->value ? clock->value + clock->advance : clock->until;
  }
  clock->was_read = 1;
  *unix_ms = clock->value;
  return 0;
}

/* Sets the options and creates the Snowflake. Returns the first status that is not POLYFLAKE_OK. */
static polyflake_status build(
    const cJSON *texts, struct held_clock *clock, polyflake_detail *detail, polyflake_snowflake **snowflake
) {
  polyflake_options *options = polyflake_options_new();
  polyflake_status status = POLYFLAKE_OK;
  const cJSON *option;
  cJSON_ArrayForEach(option, texts) {
    if (strcmp(option->string, "node") == 0) {
      status = set_node(options, option, detail);
    } else {
      int is_node = strcmp(option->string, "node_text") == 0;
      status = polyflake_options_set(options, is_node ? "node" : option->string, text_of(option), detail);
    }
    if (status != POLYFLAKE_OK) {
      break;
    }
  }
  if (status == POLYFLAKE_OK && !member(texts, "clock")) {
    status = polyflake_options_set_clock(options, read_held_clock, clock, detail);
  }
  if (status == POLYFLAKE_OK) {
    status = polyflake_snowflake_new(options, snowflake, detail);
  }
  polyflake_options_free(options);
  return status;
}

static struct held_clock clock_at(int64_t unix_ms) {
  struct held_clock clock = {unix_ms, 0, unix_ms, 0};
  return clock;
}

static void run_options(const cJSON *expected) {
  struct held_clock clock = clock_at(INT64_C(1656432460105));
  polyflake_snowflake *snowflake = NULL;
  polyflake_detail detail = fresh_detail();
  CHECK_STATUS(POLYFLAKE_OK, build(member(expected, "options"), &clock, &detail, &snowflake));
  CHECK(is_untouched(&detail));
  uint64_t node = SENTINEL_ID;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_snowflake_node(snowflake, &node, NULL));
  CHECK_NUMBER(number(expected, "node"), node);
  check_layout_text(text(expected, "layout"), polyflake_snowflake_layout(snowflake));
  polyflake_snowflake_free(snowflake);
}

static void run_options_error(const cJSON *entry) {
  struct held_clock clock = clock_at(INT64_C(1656432460105));
  polyflake_snowflake *snowflake = NULL;
  polyflake_detail detail = fresh_detail();
  check_error(entry, build(member(entry, "options"), &clock, &detail, &snowflake), &detail);
  CHECK(snowflake == NULL);
}

static void set_clock(struct held_clock *clock, const cJSON *step) {
  int64_t value = member(step, "clock") ? time_ms(step, "clock") : clock->value;
  *clock = clock_at(value);
  if (member(step, "advance")) {
    clock->advance = time_ms(step, "advance");
    clock->until = time_ms(step, "until");
  }
}

static void run_single(const cJSON *step, const polyflake_snowflake *snowflake) {
  polyflake_detail detail = fresh_detail();
  uint64_t id = SENTINEL_ID;
  polyflake_status status = strcmp(text(step, "call"), "try_next_id") == 0
                                ? polyflake_try_next_id(snowflake, &id, &detail)
                                : polyflake_next_id(snowflake, &id, &detail);
  if (member(step, "error")) {
    check_error(step, status, &detail);
    CHECK_NUMBER(SENTINEL_ID, id);
  } else {
    CHECK_STATUS(POLYFLAKE_OK, status);
    CHECK_NUMBER(number(step, "id"), id);
    CHECK(is_untouched(&detail));
  }
}

static void check_batch(const cJSON *step, const uint64_t *ids, size_t n) {
  const cJSON *run = member(step, "run"), *expected_id;
  if (run) {
    CHECK_NUMBER(number(run, "count"), n);
    CHECK_NUMBER(number(run, "first"), ids[0]);
    CHECK_NUMBER(number(run, "last"), ids[n - 1]);
    for (size_t i = 1; i < n; i++) {
      CHECK(ids[i - 1] < ids[i]);
    }
    return;
  }
  CHECK_NUMBER((uint64_t)cJSON_GetArraySize(member(step, "ids")), n);
  size_t i = 0;
  cJSON_ArrayForEach(expected_id, member(step, "ids")) {
    uint64_t id;
    CHECK(express_unsigned(text_of(expected_id), &id));
    CHECK(i < n && ids[i] == id);
    i++;
  }
}

static unsigned long steps_skipped;

static void run_batch(const cJSON *step, const polyflake_snowflake *snowflake) {
  int64_t n;
  if (!express_signed(text(step, "n"), &n)) {
    steps_skipped++;
    return;
  }
  polyflake_detail detail = fresh_detail();
  polyflake_status status = polyflake_check_batch(n, &detail);
  if (status != POLYFLAKE_OK) {
    check_error(step, status, &detail);
    return;
  }
  size_t room = (size_t)n;
  uint64_t *ids = malloc(room * sizeof *ids);
  if (!ids) {
    give_up("no memory");
  }
  status = polyflake_fill(snowflake, room, ids, &detail);
  if (member(step, "error")) {
    check_error(step, status, &detail);
  } else {
    CHECK_STATUS(POLYFLAKE_OK, status);
    check_batch(step, ids, room);
    CHECK(is_untouched(&detail));
  }
  free(ids);
}

static void run_script(const cJSON *script) {
  const cJSON *steps = member(script, "steps"), *step;
  struct held_clock clock = clock_at(time_ms(steps->child, "clock"));
  polyflake_snowflake *snowflake = NULL;
  CHECK_STATUS(POLYFLAKE_OK, build(member(script, "options"), &clock, NULL, &snowflake));
  cJSON_ArrayForEach(step, steps) {
    const char *call = text(step, "call");
    set_clock(&clock, step);
    if (strcmp(call, "next_ids") == 0) {
      run_batch(step, snowflake);
    } else if (strcmp(call, "next_id") == 0 || strcmp(call, "try_next_id") == 0) {
      run_single(step, snowflake);
    } else {
      CHECK(!"a call that this program knows");
    }
  }
  polyflake_snowflake_free(snowflake);
}

/* ---- the file ---- */

static const struct {
  const char *name;
  void (*run)(const cJSON *entry);
} sections[] = {
    {"errors", run_error},
    {"layouts", run_layout},
    {"layouts_refused", run_layout_error},
    {"decode", run_decode},
    {"decode_refused", run_decode_error},
    {"compose", run_compose},
    {"compose_refused", run_compose_error},
    {"bounds", run_bounds},
    {"texts", run_text},
    {"texts_read", run_text_read},
    {"texts_refused", run_text_error},
    {"options", run_options},
    {"options_refused", run_options_error},
    {"scripts", run_script},
    {"public_ids", run_public_id},
    {"public_ids_read", run_public_id_read},
    {"public_ids_refused", run_public_id_error},
    {"public_keys_refused", run_public_key_error},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static void run_section(size_t section) {
  const cJSON *entry;
  cJSON_ArrayForEach(entry, member(vectors, sections[section].name)) {
    char *entry_text = cJSON_PrintUnformatted(entry);
    begin(sections[section].name, entry_text);
    cJSON_free(entry_text);
    sections[section].run(entry);
  }
}

static size_t section_of(const char *name) {
  size_t section = 0;
  while (section < SECTIONS && strcmp(sections[section].name, name) != 0) {
    section++;
  }
  return section;
}

static void check_sections(void) {
  begin("sections", "are those that this program knows, and none is empty");
  const cJSON *section;
  cJSON_ArrayForEach(section, vectors) {
    if (strcmp(section->string, "about") != 0) {
      CHECK_TEXT(
          section->string,
          section_of(section->string) < SECTIONS ? section->string : "a section of this program"
      );
    }
  }
  for (size_t n = 0; n < SECTIONS; n++) {
    CHECK(cJSON_GetArraySize(member(vectors, sections[n].name)) > 0);
  }
}

static void check_presets(void) {
  begin("presets", "the library has the names in the vectors");
  size_t in_vectors = 0;
  const cJSON *layout;
  cJSON_ArrayForEach(layout, member(vectors, "layouts")) {
    const char *given = text(layout, "given");
    if (strpbrk(given, ":|@/")) {
      continue;
    }
    int found = 0;
    for (size_t n = 0; n < polyflake_preset_count(); n++) {
      found += strcmp(polyflake_preset_name(n), given) == 0;
    }
    CHECK_NUMBER(1, (uint64_t)found);
    in_vectors++;
  }
  CHECK_NUMBER(in_vectors, polyflake_preset_count());
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) {
    give_up(path);
  }
  long size = ftell(file);
  char *content = size < 0 ? NULL : malloc((size_t)size + 1);
  rewind(file);
  if (!content || fread(content, 1, (size_t)size, file) != (size_t)size) {
    give_up(path);
  }
  content[size] = '\0';
  fclose(file);
  return content;
}

static cJSON *parsed(const char *path) {
  char *content = read_file(path);
  cJSON *file = cJSON_ParseWithOpts(content, NULL, 1);
  if (!file) {
    give_up("the vectors are not JSON");
  }
  free(content);
  return file;
}

/* Moves the sections of more to the end of file. */
static void append(cJSON *file, cJSON *more) {
  cJSON_DeleteItemFromObject(more, "about");
  while (more->child) {
    cJSON *section = cJSON_DetachItemViaPointer(more, more->child);
    cJSON_AddItemToObject(file, section->string, section);
  }
  cJSON_Delete(more);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    give_up("usage: vectors PATH ...");
  }
  cJSON *file = parsed(argv[1]);
  for (int n = 2; n < argc; n++) {
    append(file, parsed(argv[n]));
  }
  vectors = file;
  check_sections();
  check_presets();
  for (size_t n = 0; n < SECTIONS; n++) {
    run_section(n);
  }
  cJSON_Delete(file);
  printf(
      "skipped, since C cannot express their numbers: %lu cases, %lu script steps\n", skipped(), steps_skipped
  );
  return finish(FLOOR);
}
