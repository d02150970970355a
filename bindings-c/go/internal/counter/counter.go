//go:build amd64 || arm64

// Package counter reads the processor's time counter: the TSC, or CNTVCT_EL0 on arm64. It is a separate package,
// because a package that uses cgo must not contain assembly.
package counter

// Exists is false on processors for which this package has no assembly.
const Exists = true

// Now reads the counter. Not every processor promises a constant rate, and not every system lets programs read the
// counter: the library knows which ones do.
func Now() uint64
