package polyflake

// #include <polyflake.h>
import "C"

import (
	"bytes"
	"strings"
	"unsafe"
)

// cText is a text that ends in a NUL, for the length of one call. A NUL within would cut it short and let the rest
// pass unread, so it becomes the symbol for it, which no parser of the library takes.
func cText(text string) *C.char {
	text = strings.ReplaceAll(text, "\x00", "␀") + "\x00"
	return (*C.char)(unsafe.Pointer(unsafe.StringData(text)))
}

// cBytes is a text of any bytes and its length, for the length of one call.
func cBytes(text string) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(text + "\x00"))), C.size_t(len(text)) // never NULL
}

// goText is a text of the library's that ends in a NUL within room. Unlike C.GoString, it leaves room on the stack.
func goText(room []C.char) string {
	text, _, _ := bytes.Cut(unsafe.Slice((*byte)(unsafe.Pointer(&room[0])), len(room)), []byte{0})
	return string(text)
}
