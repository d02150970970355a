//go:build !cgo

package polyflake

// The package wraps the C library libpolyflake and cannot be built without cgo. This name is undefined on purpose, so
// that the compiler says why.
const _ = polyflake_needs_cgo_so_set_CGO_ENABLED_1_and_install_a_C_compiler
