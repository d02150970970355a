package polyflake

// Where the library is found. The module that a release publishes has it for each platform instead, and this behind the
// build tag polyflake_pkgconfig: see packages/build.py.

// #cgo pkg-config: polyflake
import "C"
