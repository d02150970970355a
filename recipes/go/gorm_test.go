package recipes_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	polyflake "github.com/polyflake/polyflake/bindings-c/go"
	"github.com/polyflake/polyflake/recipes/go"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

type Order struct {
	ID     polyflake.ID `gorm:"primaryKey;autoIncrement:false"`
	Parent *polyflake.ID
	Items  []Item
}

type Item struct {
	ID      polyflake.ID `gorm:"primaryKey;autoIncrement:false"`
	OrderID polyflake.ID
}

var exact = []polyflake.ID{1, 1<<53 + 1, 1541815603606036481, math.MaxInt64}

// open returns the database that ../test.sh has started, with new tables.
func open(t *testing.T, ids polyflake.IDGenerator) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(postgres.Open(os.Getenv("RECIPES_POSTGRES")), &gorm.Config{
		Logger: logger.Default.LogMode(logger.Silent),
	})
	must(t, err)
	t.Cleanup(func() {
		pool, err := db.DB()
		must(t, err)
		must(t, pool.Close())
	})
	must(t, db.Use(recipes.Snowflakes{IDs: ids}))
	must(t, db.Migrator().DropTable(&Item{}, &Order{}))
	must(t, db.AutoMigrate(&Order{}, &Item{}))
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// generators returns the generators that each recipe must accept.
func generators(t *testing.T) map[string]polyflake.IDGenerator {
	t.Helper()
	store := "sqlite://" + filepath.Join(t.TempDir(), "store.db")
	node, err := polyflake.New(polyflake.Node(7))
	must(t, err)
	lease, err := polyflake.New(polyflake.Lease(store))
	must(t, err)
	counter, err := polyflake.OpenCounter("orders", polyflake.CounterStore(store))
	must(t, err)
	t.Cleanup(func() { node.Close(); lease.Close(); counter.Close() })
	return map[string]polyflake.IDGenerator{"node": node, "lease": lease, "counter": counter}
}

func TestNewRowsTakeTheNextIDs(t *testing.T) {
	for name, ids := range generators(t) {
		t.Run(name, func(t *testing.T) {
			db := open(t, ids)
			before, err := ids.NextID()
			must(t, err)
			one := Order{Items: []Item{{}, {}}}
			must(t, db.Create(&one).Error)
			many := make([]Order, 100)
			must(t, db.Create(&many).Error)
			pointers := []*Order{{}, {ID: 1 << 62}}
			must(t, db.CreateInBatches(pointers, 1).Error)
			after, err := ids.NextID()
			must(t, err)

			var found []Order
			must(t, db.Preload("Items").Order("id").Find(&found, "id < ?", 1<<62).Error)
			if len(found) != 102 || found[0].ID != one.ID || found[101].ID != pointers[0].ID {
				t.Fatalf("%d rows, from %v to %v", len(found), found[0].ID, found[101].ID)
			}
			for i, order := range found {
				if order.ID <= before || order.ID >= after || i > 0 && order.ID <= found[i-1].ID {
					t.Errorf("row %d is %v, not between %v and %v", i, order.ID, before, after)
				}
			}
			if items := found[0].Items; len(items) != 2 || items[0].ID == 0 || items[0].ID == items[1].ID {
				t.Errorf("the items are %v", items)
			}
		})
	}
}

func TestAnIDComesBackAsItWent(t *testing.T) {
	ids, err := polyflake.New(polyflake.Node(7))
	must(t, err)
	defer ids.Close()
	db := open(t, ids)
	for _, id := range exact {
		must(t, db.Create(&Order{ID: id, Parent: &id}).Error)
		var found Order
		must(t, db.First(&found, "id = ?", id).Error)
		if found.ID != id || *found.Parent != id {
			t.Errorf("%v came back as %v", id, found)
		}
		must(t, db.Model(&found).Update("parent", nil).Error)
		must(t, db.First(&found, id).Error)
		if found.Parent != nil {
			t.Errorf("a NULL came back as %v", found.Parent)
		}
	}
	types, err := db.Migrator().ColumnTypes(&Order{})
	must(t, err)
	for _, column := range types[:2] {
		if kind := column.DatabaseTypeName(); kind != "int8" {
			t.Errorf("%s is a %s", column.Name(), kind)
		}
	}
	if err := db.Create(&Order{ID: 1 << 63}).Error; !errors.Is(err, polyflake.ErrInvalidID) {
		t.Errorf("an ID that is no BIGINT: %v", err)
	}
}

type failing struct{ polyflake.IDGenerator }

var errNone = errors.New("no ID")

func (failing) NextID() (polyflake.ID, error) { return 0, errNone }

func TestARowWithoutAnIDIsNotWritten(t *testing.T) {
	db := open(t, failing{})
	if err := db.Create(&[]Order{{}, {}}).Error; !errors.Is(err, errNone) {
		t.Errorf("the error is %v", err)
	}
	var rows int64
	must(t, db.Model(&Order{}).Count(&rows).Error)
	if rows != 0 {
		t.Errorf("%d rows", rows)
	}
}

func TestDatabaseSQL(t *testing.T) {
	db, err := sql.Open("pgx", os.Getenv("RECIPES_POSTGRES"))
	must(t, err)
	defer db.Close()
	for _, id := range exact {
		var back polyflake.ID
		var null sql.Null[polyflake.ID]
		must(t, db.QueryRow("SELECT $1::bigint, NULL::bigint", id).Scan(&back, &null))
		if back != id || null.Valid {
			t.Errorf("%v came back as %v, and NULL as %v", id, back, null)
		}
	}
	var back polyflake.ID
	if err := db.QueryRow("SELECT -1::bigint").Scan(&back); !errors.Is(err, polyflake.ErrInvalidID) {
		t.Errorf("a negative number: %v", err)
	}
}

func TestJSON(t *testing.T) {
	for _, id := range exact {
		text, err := json.Marshal(Order{ID: id})
		must(t, err)
		var back Order
		must(t, json.Unmarshal(text, &back))
		if want := fmt.Sprintf(`{"ID":"%d","Parent":null,"Items":null}`, id); string(text) != want || back.ID != id {
			t.Errorf("%s came back as %v", text, back.ID)
		}
	}
}
