//go:build amd64 || arm64

// Package counter reads the processor's counter of time: the TSC, or CNTVCT_EL0 on arm64. A package that uses cgo may not
// contain assembly.
package counter

// Exists is false on processors for which this package has no assembly.
const Exists = true

// Now reads the counter. Not every processor promises that it keeps its rate, and not every system lets programs read
// it: the library says which do.
func Now() uint64
