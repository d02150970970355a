module github.com/polyflake/polyflake/tests/probes/adapters/go

go 1.24

require github.com/polyflake/polyflake/bindings-c/go v0.0.0

replace github.com/polyflake/polyflake/bindings-c/go => ../../../../bindings-c/go
