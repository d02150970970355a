package main

/*
#cgo pkg-config: polyflake
#include <polyflake.h>
#include <stdlib.h>

// One call per ID, without Go in between: the cost of an ID in the library itself.
static int next_ids_one_by_one(const polyflake_snowflake *snowflake, size_t n, uint64_t *ids) {
  for (size_t i = 0; i < n; i++) {
    if (polyflake_next_id(snowflake, &ids[i], NULL) != POLYFLAKE_OK) return 1;
  }
  return 0;
}

static polyflake_snowflake *new_snowflake(char *node) {
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *snowflake = NULL;
  if (polyflake_options_set(options, "node", node, NULL) == POLYFLAKE_OK) {
    polyflake_snowflake_new(options, &snowflake, NULL);
  }
  polyflake_options_free(options);
  return snowflake;
}
*/
import "C"

import (
	"unsafe"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// made keeps the slices on the heap.
var made []polyflake.ID

func makeSlices(ids []polyflake.ID) {
	for range len(ids) / batch {
		made = make([]polyflake.ID, batch)
	}
}

func countUp(ids []polyflake.ID) {
	for i := range ids {
		ids[i] = polyflake.ID(i)
	}
}

// inC returns a function that takes IDs in one long call from Go.
func inC(node string) func(ids []polyflake.ID) {
	text := C.CString(node)
	defer C.free(unsafe.Pointer(text))
	snowflake := C.new_snowflake(text)
	if snowflake == nil {
		panic("no Snowflake of node " + node)
	}
	return func(ids []polyflake.ID) {
		if C.next_ids_one_by_one(snowflake, C.size_t(len(ids)), (*C.uint64_t)(&ids[0])) != 0 {
			panic("no ID")
		}
	}
}
