// Package recipes has what a program copies to use Polyflake with GORM.
//
// GORM: a plugin that gives new rows their IDs. In the database an ID is a BIGINT, in JSON a string: polyflake.ID is both
// by itself, with database/sql too.
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

// Snowflakes is a plugin: a new row whose primary key is a polyflake.ID, and 0, takes the next one of IDs.
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
