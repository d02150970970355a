package polyflake

// Where to find the library. In a published module, this is different for each platform, and the line here has the
// build tag polyflake_pkgconfig: see packages/build.py.

// #cgo pkg-config: polyflake
import "C"
