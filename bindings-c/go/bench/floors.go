package main

/*
#cgo pkg-config: polyflake
#include <polyflake.h>
#include <stdlib.h>

static void empty(void) {}

// n IDs by n calls, without Go in between: what an ID costs in the library.
static int next_ids_one_by_one(const polyflake_snowflake *snowflake, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint64_t id;
    if (polyflake_next_id(snowflake, &id) != POLYFLAKE_OK) return 1;
  }
  return 0;
}

static polyflake_snowflake *new_snowflake(char *layout, char *node) {
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *snowflake = NULL;
  if (polyflake_options_set(options, "layout", layout) == POLYFLAKE_OK &&
      polyflake_options_set(options, "node", node) == POLYFLAKE_OK) {
    polyflake_snowflake_new(options, &snowflake);
  }
  polyflake_options_free(options);
  return snowflake;
}
*/
import "C"

import "unsafe"

// emptyCalls is what crossing from Go to C and back costs.
func emptyCalls(n int) error {
	for range n {
		C.empty()
	}
	return nil
}

// inC makes IDs in one long call from Go.
func inC(layout, node string) func(n int) error {
	text, number := C.CString(layout), C.CString(node)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(number))
	snowflake := C.new_snowflake(text, number)
	if snowflake == nil {
		panic("no Snowflake of " + layout)
	}
	return func(n int) error {
		if C.next_ids_one_by_one(snowflake, C.size_t(n)) != 0 {
			panic("no ID")
		}
		return nil
	}
}
