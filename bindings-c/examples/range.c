/* Builds a query that finds one hour's rows by their primary key, without a time column. */
#include <inttypes.h>
#include <polyflake.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const int64_t from_ms = INT64_C(1656432000000); /* 2022-06-28T16:00:00Z */
  const int64_t until_ms = from_ms + 3600000;
  polyflake_detail detail;
  polyflake_layout *layout = NULL;
  uint64_t first, last;
  detail.size = sizeof detail;
  polyflake_status status = polyflake_layout_parse("twitter", &layout, &detail);
  if (status == POLYFLAKE_OK) {
    status = polyflake_layout_min_id(layout, from_ms, 0, &first, &detail);
  }
  if (status == POLYFLAKE_OK) {
    /* The last ID before the end of the hour. */
    status = polyflake_layout_max_id(layout, until_ms - 1, 0, &last, &detail);
  }
  if (status == POLYFLAKE_OK) {
    printf("SELECT * FROM orders WHERE id BETWEEN %" PRIu64 " AND %" PRIu64 " ORDER BY id;\n", first, last);
  } else {
    fprintf(stderr, "%s\n", detail.message);
  }
  polyflake_layout_free(layout);
  return status == POLYFLAKE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
