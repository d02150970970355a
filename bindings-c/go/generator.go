package polyflake

// IDGenerator gives unique IDs: a [Snowflake], a [Counter], or a generator of your own. What takes an ID from any of them
// takes this.
type IDGenerator interface {
	// NextID returns the next ID.
	NextID() (ID, error)
	// NextIDs returns n IDs. After an error, those that were already taken are lost, never repeated.
	NextIDs(n int) ([]ID, error)
}

var (
	_ IDGenerator = (*Snowflake)(nil)
	_ IDGenerator = (*Counter)(nil)
)
