// Package recipes is for programs that use GORM: copy this file.
//
// The plugin gives new rows their IDs. An ID is a BIGINT in the database and a string in JSON. A polyflake.ID converts
// itself to both, even with plain database/sql.
//
//	type Order struct {
//		ID     polyflake.ID `gorm:"primaryKey;autoIncrement:false"`
//		Parent *polyflake.ID
//	}
//
//	err := db.Use(recipes.Snowflakes{IDs: ids})
//	err = db.Create(&Order{}).Error
package recipes

import (
	"reflect"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
	"gorm.io/gorm"
)

// Snowflakes is the plugin. If a new row's primary key is a polyflake.ID and is 0, it takes the next ID.
type Snowflakes struct {
	IDs polyflake.IDGenerator
}

// Name returns the plugin's name.
func (Snowflakes) Name() string {
	return "polyflake"
}

// Initialize is called by Use.
func (s Snowflakes) Initialize(db *gorm.DB) error {
	return db.Callback().Create().Before("gorm:before_create").Register("polyflake:ids", s.fill)
}

func (s Snowflakes) fill(db *gorm.DB) {
	statement := db.Statement
	if statement.Schema == nil || statement.Schema.PrioritizedPrimaryField == nil {
		return
	}
	key := statement.Schema.PrioritizedPrimaryField
	if key.FieldType != reflect.TypeFor[polyflake.ID]() {
		return
	}
	rows := []reflect.Value{statement.ReflectValue}
	if kind := statement.ReflectValue.Kind(); kind == reflect.Slice || kind == reflect.Array {
		rows = rows[:0]
		for i := range statement.ReflectValue.Len() {
			rows = append(rows, reflect.Indirect(statement.ReflectValue.Index(i)))
		}
	}
	for _, row := range rows {
		if row.Kind() != reflect.Struct {
			continue
		}
		if _, zero := key.ValueOf(statement.Context, row); !zero {
			continue
		}
		id, err := s.IDs.NextID()
		if err == nil {
			err = key.Set(statement.Context, row, id)
		}
		if db.AddError(err) != nil {
			return
		}
	}
}
