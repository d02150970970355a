package polyflake

// #include <polyflake.h>
import "C"

import (
	"bytes"
	"strings"
	"unsafe"
)

// cText returns a NUL-terminated string for one call. A NUL inside would hide the rest of the string, so it is replaced
// by the symbol for NUL, which all of the library's parsers reject.
func cText(text string) *C.char {
	text = strings.ReplaceAll(text, "\x00", "␀") + "\x00"
	return (*C.char)(unsafe.Pointer(unsafe.StringData(text)))
}

// cBytes returns a string, which may contain any bytes, and its length, for one call.
func cBytes(text string) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(text + "\x00"))), C.size_t(len(text)) // never NULL
}

// goText returns the NUL-terminated string in room. Unlike C.GoString, it does not move room to the heap.
func goText(room []C.char) string {
	text, _, _ := bytes.Cut(unsafe.Slice((*byte)(unsafe.Pointer(&room[0])), len(room)), []byte{0})
	return string(text)
}
