package polyflake_test

import (
	"sync"
	"testing"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// However many goroutines ask for more than a layout can give, no call fails and each gets its share.
func TestNoGoroutineStarves(t *testing.T) {
	const goroutines = 32
	// A thousand ticks: the goroutine that runs first in a tick gets most of it, which evens out.
	for layout, lasts := range map[string]time.Duration{
		"twitter": time.Second, "sonyflake": 10 * time.Second, "yitter": time.Second,
	} {
		t.Run(layout, func(t *testing.T) {
			ids := must(polyflake.New(polyflake.WithLayout(layout), polyflake.Node(60)))
			start := time.Now()
			end := start.Add(lasts)
			var got [goroutines]int
			var asking sync.WaitGroup
			for n := range goroutines {
				asking.Add(1)
				go func() {
					defer asking.Done()
					for got[n] == 0 || time.Now().Before(end) {
						if _, err := ids.NextID(); err != nil {
							t.Error(err)
							return
						}
						got[n]++
					}
				}()
			}
			asking.Wait()
			all, least := 0, got[0]
			for _, n := range got {
				all += n
				least = min(least, n)
			}
			// On a busy machine, goroutines that are not running ask for nothing.
			ticks := int(time.Since(start).Milliseconds()) / int(ids.Layout().TickMs())
			isOverAsked := all*10 >= ticks*int(ids.Layout().IDsPerTick())*9
			if isOverAsked && least*4 < all/goroutines {
				t.Errorf("a goroutine got %d IDs; an even share is %d", least, all/goroutines)
			}
		})
	}
}
