//go:build unix

package polyflake_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

func ExampleCounter_NextIDContext() {
	folder, err := os.MkdirTemp("", "polyflake")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store := "sqlite://" + filepath.Join(folder, "numbers.db")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	orders, err := polyflake.OpenCounterContext(ctx, "orders", polyflake.CounterStore(store))
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	number, err := orders.NextIDContext(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Fatal("no number within a minute")
	} else if err != nil {
		log.Fatal(err)
	}
	fmt.Println(number)

	cancel()
	_, err = orders.NextIDContext(ctx)
	fmt.Println(err)
	// Output:
	// 1
	// context canceled
}

func ExampleSequences_NextIDContext() {
	folder, err := os.MkdirTemp("", "polyflake")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store := "sqlite://" + filepath.Join(folder, "numbers.db")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	inbox, err := polyflake.OpenSequencesContext[string](ctx, "inbox", polyflake.SequencesStore(store))
	if err != nil {
		log.Fatal(err)
	}
	defer inbox.Close()
	for _, key := range []string{"alice", "bob", "alice"} {
		number, err := inbox.NextIDContext(ctx, key)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key, number)
	}
	// Output:
	// alice 1
	// bob 1
	// alice 2
}

func ExampleNewContext() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := polyflake.NewContext(ctx, polyflake.Lease("redis://redis.internal/0"))
	fmt.Println(err)
	// Output: context canceled
}
