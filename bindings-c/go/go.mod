module github.com/polyflake/polyflake/bindings-c/go

go 1.24
