package polyflake_test

import (
	"errors"
	"testing"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// FuzzLayout checks that any string is either invalid or parses to a layout whose own string parses back to the same
// layout.
func FuzzLayout(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		layout, err := polyflake.ParseLayout(text)
		if err != nil {
			if !errors.Is(err, polyflake.ErrInvalidLayout) && !errors.Is(err, polyflake.ErrUnknownLayout) {
				t.Fatal(err)
			}
			return
		}
		again, err := polyflake.ParseLayout(layout.String())
		if err != nil || again != layout {
			t.Fatalf("%q gives %v, which gives %v, %v", text, layout, again, err)
		}
		// The lowest and the highest ID of the layout can be decoded and composed.
		for _, id := range []polyflake.ID{0, 1<<layout.TotalBits() - 1} {
			decoded, err := layout.Decode(id)
			if err != nil {
				t.Fatal(err)
			}
			composed, err := layout.ComposeFields(decoded.Time, decoded.Fields(), decoded.Sequence)
			if err != nil || composed != id {
				t.Fatalf("%v: %d decodes to %v and composes to %d, %v", layout, id, decoded, composed, err)
			}
		}
	})
}

// FuzzParseID checks that any string is either invalid or parses to an ID that every format writes and reads back.
func FuzzParseID(f *testing.F) {
	formats := []string{polyflake.Decimal, polyflake.Hex, polyflake.Base32, polyflake.Base36, polyflake.Base58,
		polyflake.Base62, polyflake.UUID, polyflake.BwmarrinBase32, polyflake.BwmarrinBase58}
	f.Fuzz(func(t *testing.T, text string, format uint8) {
		id, err := polyflake.ParseID(text, formats[int(format)%len(formats)])
		if err != nil {
			if !errors.Is(err, polyflake.ErrInvalidID) {
				t.Fatal(err)
			}
			return
		}
		for _, format := range formats {
			written, err := id.Format(format)
			if err != nil {
				t.Fatal(err)
			}
			again, err := polyflake.ParseID(written, format)
			if err != nil || again != id {
				t.Fatalf("%d is %q in %s, which is %d, %v", id, written, format, again, err)
			}
		}
	})
}
