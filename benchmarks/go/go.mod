module github.com/polyflake/polyflake/benchmarks/go

go 1.24

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/google/uuid v1.6.0
	github.com/polyflake/polyflake/bindings-c/go v0.0.0
	github.com/sony/sonyflake v1.3.0
	github.com/sony/sonyflake/v2 v2.2.0
	github.com/speps/go-hashids/v2 v2.0.1
	github.com/sqids/sqids-go v0.4.1
)

replace github.com/polyflake/polyflake/bindings-c/go => ../../bindings-c/go
