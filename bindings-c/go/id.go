package polyflake

// #cgo noescape polyflake_id_write
// #cgo nocallback polyflake_id_write
// #cgo noescape polyflake_id_read
// #cgo nocallback polyflake_id_read
// #cgo noescape polyflake_id_signed
// #cgo nocallback polyflake_id_signed
// #include <polyflake.h>
import "C"

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
)

// ID is a Snowflake ID. In text and JSON it is a string of decimal digits, since JavaScript rounds a number that
// long; in a database it is a BIGINT.
type ID uint64

// The formats of [ID.Format] and [ParseID]. IDs sort alike as numbers and as texts in Base32 and Base62.
const (
	Decimal = "decimal"
	// Hex is written in lower case and read in both.
	Hex = "hex"
	// Base32 is Crockford's, 13 digits; it reads lower case too, I and L as 1, and O as 0.
	Base32 = "base32"
	// Base36 is written in lower case and read in both.
	Base36 = "base36"
	// Base58 has Bitcoin's alphabet.
	Base58 = "base58"
	// Base62 is 0-9A-Za-z, 11 digits.
	Base62 = "base62"
)

// ParseID reads an ID that [ID.Format] or another program wrote in a format, such as [Decimal].
//
// It gives [ErrInvalidID], whose message names the position, for a foreign character or a number over 64 bits, and
// [ErrInvalidOption] for a format that is none.
func ParseID(text, format string) (ID, error) {
	detail := newDetail()
	var id C.uint64_t
	status := C.polyflake_id_read(cText(text), cText(format), &id, &detail)
	return ID(id), check(status, &detail)
}

// Format writes the ID in a format, such as [Base62]. It gives [ErrInvalidOption] for a format that is none.
func (id ID) Format(format string) (string, error) {
	var text [C.POLYFLAKE_ID_TEXT_SIZE]C.char
	detail := newDetail()
	status := C.polyflake_id_write(C.uint64_t(id), cText(format), &text[0], C.size_t(len(text)), &detail)
	return goText(text[:]), check(status, &detail)
}

// String is the ID in decimal.
func (id ID) String() string {
	return strconv.FormatUint(uint64(id), 10)
}

// MarshalText gives the ID in decimal.
func (id ID) MarshalText() ([]byte, error) {
	return strconv.AppendUint(nil, uint64(id), 10), nil
}

// UnmarshalText reads an ID in decimal, as [ParseID] does.
func (id *ID) UnmarshalText(text []byte) error {
	read, err := ParseID(string(text), Decimal)
	if err == nil {
		*id = read
	}
	return err
}

// MarshalJSON gives the ID as a string of decimal digits.
func (id ID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, id.String()), nil
}

// UnmarshalJSON reads an ID from a string of decimal digits. A JSON number is refused: other programs may have rounded
// it. As is usual, null leaves the ID as it was.
func (id *ID) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("polyflake: an ID in JSON is a string of decimal digits: %w", err)
	}
	if text == nil {
		return nil
	}
	return id.UnmarshalText([]byte(*text))
}

// Value gives the ID as an int64, for a database's BIGINT. An ID with the top bit set, which layouts of 64 bits have
// late in their time, is refused with [ErrInvalidID]: as a negative
// number it would sort before all others. Store its String instead.
func (id ID) Value() (driver.Value, error) {
	detail := newDetail()
	var number C.int64_t
	if err := check(C.polyflake_id_signed(C.uint64_t(id), &number, &detail), &detail); err != nil {
		return nil, err
	}
	return int64(number), nil
}

// Scan reads an ID from a database's BIGINT, or from decimal digits. A negative number gives [ErrInvalidID]; NULL is
// refused, and [database/sql.Null] reads it.
func (id *ID) Scan(value any) error {
	switch value := value.(type) {
	case int64:
		return id.UnmarshalText(strconv.AppendInt(nil, value, 10))
	case uint64: // from drivers with unsigned columns
		*id = ID(value)
		return nil
	case string:
		return id.UnmarshalText([]byte(value))
	case []byte:
		return id.UnmarshalText(value)
	default:
		return fmt.Errorf("polyflake: an ID is an integer or a text, not %T", value)
	}
}
