package polyflake_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// Even when many goroutines ask for more IDs than the layout can supply, no call fails and each goroutine gets its
// share.
func TestNoGoroutineStarves(t *testing.T) {
	const goroutines = 32
	// How much longer the test runs if a goroutine has received too few IDs. On a busy machine, a goroutine may start
	// late, or not run for a while. A starved goroutine never catches up.
	const patience = time.Minute
	// A thousand ticks: the goroutine that runs first in a tick gets most of it, which evens out.
	for layout, lasts := range map[string]time.Duration{
		"twitter": time.Second, "sonyflake": 10 * time.Second, "yitter": time.Second,
	} {
		t.Run(layout, func(t *testing.T) {
			// Two Snowflakes on one cursor.
			var snowflakes [2]*polyflake.Snowflake
			for n := range snowflakes {
				snowflakes[n] = must(polyflake.New(polyflake.WithLayout(layout), polyflake.Node(60)))
			}
			var got [goroutines]atomic.Int64
			var isOver atomic.Bool
			var asking sync.WaitGroup
			for n := range goroutines {
				asking.Add(1)
				go func() {
					defer asking.Done()
					ids := snowflakes[n%2]
					for !isOver.Load() {
						if _, err := ids.NextID(); err != nil {
							t.Error(err)
							return
						}
						got[n].Add(1)
					}
				}()
			}
			all, least := int64(0), int64(0)
			isEven := func() bool {
				all, least = 0, got[0].Load()
				for n := range got {
					all += got[n].Load()
					least = min(least, got[n].Load())
				}
				return all > 0 && least*4 >= all/goroutines
			}
			for start := time.Now(); !t.Failed(); {
				time.Sleep(100 * time.Millisecond)
				passed := time.Since(start)
				if passed >= lasts && (isEven() || passed >= lasts+patience) {
					break
				}
			}
			isOver.Store(true)
			asking.Wait()
			if !isEven() {
				t.Errorf("a goroutine got %d IDs; an even share is %d", least, all/goroutines)
			}
		})
	}
}
