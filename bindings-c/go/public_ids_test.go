package polyflake_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

const (
	publicKey = "pfk_10kvEGTqNtUTXFUlMnM4wIa"
	olderKey  = "pfk_03KxYVLQeEpWyLpNnYpNeDo"
)

type publicCase struct {
	Keys              []string
	Prefix, Text, Why string
	Error             string
	ID                polyflake.ID
	Position          *int
}

// Runs every case in tests/public_ids.json, which describes its own format under "about".
func TestPublicIDVectors(t *testing.T) {
	data, err := os.ReadFile("../../tests/public_ids.json")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &sections); err != nil {
		t.Fatal(err)
	}
	delete(sections, "about")
	for name, run := range map[string]func(*testing.T, publicCase){
		"public_ids":          runPublicID,
		"public_ids_read":     runPublicIDRead,
		"public_ids_refused":  runPublicIDRefused,
		"public_keys_refused": runPublicKeysRefused,
	} {
		var cases []publicCase
		if err := json.Unmarshal(sections[name], &cases); err != nil || len(cases) == 0 {
			t.Fatal(name, len(cases), err)
		}
		delete(sections, name)
		for n, c := range cases {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) { run(t, c) })
		}
	}
	if len(sections) > 0 {
		t.Errorf("unknown sections: %v", sections)
	}
}

func publicIDs(t *testing.T, c publicCase) *polyflake.PublicIDs {
	t.Helper()
	ids, err := polyflake.NewPublicIDs(c.Keys, c.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func runPublicID(t *testing.T, c publicCase) {
	ids := publicIDs(t, c)
	if text := ids.Encode(c.ID); text != c.Text {
		t.Errorf("%s, not %s", text, c.Text)
	}
	if id, err := ids.Decode(c.Text); err != nil || id != c.ID {
		t.Error(id, err)
	}
}

func runPublicIDRead(t *testing.T, c publicCase) {
	ids := publicIDs(t, c)
	if id, err := ids.Decode(c.Text); err != nil || id != c.ID {
		t.Error(id, err)
	}
	if ids.Encode(c.ID) == c.Text {
		t.Error("the first key encodes it already")
	}
}

func runPublicIDRefused(t *testing.T, c publicCase) {
	_, err := publicIDs(t, c).Decode(c.Text)
	if !errors.Is(err, polyflake.ErrInvalidID) || c.Error != "invalid_id" {
		t.Fatal(err)
	}
	if c.Position == nil {
		if strings.Contains(err.Error(), "position") {
			t.Error(err)
		}
	} else if !strings.Contains(err.Error(), fmt.Sprintf("position %d ", *c.Position)) {
		t.Error(err)
	}
}

func runPublicKeysRefused(t *testing.T, c publicCase) {
	_, err := polyflake.NewPublicIDs(c.Keys, c.Prefix)
	if !errors.Is(err, polyflake.ErrInvalidOption) || c.Error != "invalid_option" {
		t.Fatal(err)
	}
	digits := regexp.MustCompile(`^[0-9A-Za-z]{4}$`)
	for _, key := range c.Keys {
		for at := 5; at+4 <= len(key); at++ {
			if part := key[at : at+4]; digits.MatchString(part) && strings.Contains(err.Error(), part) {
				t.Errorf("%s of a key is in %v", part, err)
			}
		}
	}
}

func TestPublicIDsOfAPage(t *testing.T) {
	ids, err := polyflake.NewPublicIDs([]string{publicKey + "," + olderKey}, "order")
	if err != nil {
		t.Fatal(err)
	}
	page := []polyflake.ID{0, 1541815603606036480, 1<<64 - 1}
	texts := ids.EncodeAll(page)
	if texts[1] != "order_15ShV20Bxc6UJvKSQbDvo0J" || ids.Prefix() != "order" {
		t.Error(texts, ids.Prefix())
	}
	if back, err := ids.DecodeAll(texts); err != nil || !slices.Equal(back, page) {
		t.Error(back, err)
	}
	if back, err := ids.DecodeAll([]string{texts[0], texts[1] + "\x00"}); !errors.Is(err, polyflake.ErrInvalidID) {
		t.Error(back, err)
	}
	for _, shown := range []string{fmt.Sprint(ids), fmt.Sprintf("%+v %#v", ids, ids)} {
		if strings.Contains(shown, publicKey[5:]) || strings.Contains(shown, olderKey[5:]) {
			t.Error(shown)
		}
	}
}

func TestPublicKeysAreMade(t *testing.T) {
	first, err := polyflake.GeneratePublicKey(61)
	if err != nil {
		t.Fatal(err)
	}
	second, err := polyflake.GeneratePublicKey(61)
	if err != nil || first == second || !strings.HasPrefix(first, "pfk_z") {
		t.Error(err)
	}
	if _, err := polyflake.NewPublicIDs([]string{first}, ""); err != nil {
		t.Error(err)
	}
	for _, number := range []uint{62, 1 << 32, ^uint(0)} {
		if key, err := polyflake.GeneratePublicKey(number); !errors.Is(err, polyflake.ErrInvalidOption) || key != "" {
			t.Error(number, err)
		}
	}
}

func TestPublicIDsAreSharedAndFreed(t *testing.T) {
	var working sync.WaitGroup
	for range 8 {
		ids, err := polyflake.NewPublicIDs([]string{publicKey}, "order")
		if err != nil {
			t.Fatal(err)
		}
		for first := range 4 {
			working.Add(1)
			go func() {
				defer working.Done()
				for n := range 500 {
					id := polyflake.ID(first*500 + n)
					if back, err := ids.Decode(ids.Encode(id)); err != nil || back != id {
						t.Error(id, back, err)
					}
				}
			}()
		}
		runtime.GC()
	}
	working.Wait()
	runtime.GC()
}
