package polyflake

// LayoutsHeld counts the entries of the table of layouts.
func LayoutsHeld() (n int) {
	layouts.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}
