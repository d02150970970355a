package polyflake

// Finds the library. A published module finds it differently on each platform, and puts the line below behind the build
// tag polyflake_pkgconfig: see packages/build.py.

// #cgo pkg-config: polyflake
import "C"
