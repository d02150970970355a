/* Takes an ID and decodes it. */
#include <inttypes.h>
#include <polyflake.h>
#include <stdio.h>
#include <stdlib.h>

static void must(polyflake_status status) {
  if (status != POLYFLAKE_OK) {
    fprintf(stderr, "%s: %s\n", polyflake_status_name(status), polyflake_status_message(status));
    exit(EXIT_FAILURE);
  }
}

int main(void) {
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *ids;
  uint64_t id;
  must(polyflake_options_set(options, "node", "datacenter=1,worker=7", NULL));
  must(polyflake_snowflake_new(options, &ids, NULL));
  must(polyflake_next_id(ids, &id, NULL));
  printf("%" PRIu64 "\n", id);

  polyflake_decoded decoded;
  decoded.size = sizeof decoded;
  must(polyflake_layout_decode(polyflake_snowflake_layout(ids), id, &decoded, NULL));
  printf(
      "issued at %" PRIu64 " ms, by node %" PRIu64 " (datacenter %" PRIu64 ", worker %" PRIu64
      "), number %" PRIu64 " of its tick\n",
      decoded.timestamp_ms,
      decoded.node,
      decoded.fields[0],
      decoded.fields[1],
      decoded.sequence
  );

  polyflake_snowflake_free(ids);
  polyflake_options_free(options);
  return EXIT_SUCCESS;
}
