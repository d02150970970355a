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

// ID is an ID from a Snowflake, or a number from a Counter or Sequences. In text and JSON, it is a string of decimal
// digits, because JavaScript rounds numbers this large. In a database, it is a BIGINT.
type ID uint64

// IDGenerator generates unique IDs. It is a [Snowflake], a [Counter], or your own generator. Functions that work with
// any of them take this type.
type IDGenerator interface {
	// NextID returns the next ID.
	NextID() (ID, error)
	// NextIDs returns n IDs. After an error, the IDs that the call had already taken are lost, never repeated.
	NextIDs(n int) ([]ID, error)
}

var (
	_ IDGenerator = (*Snowflake)(nil)
	_ IDGenerator = (*Counter)(nil)
)

// The formats of [ID.Format] and [ParseID]. In Base32, Base62 and UUID, the strings sort in the order of the IDs.
const (
	// Decimal is a decimal number.
	Decimal = "decimal"
	// Hex is written in lower case and read in either case.
	Hex = "hex"
	// Base32 is Crockford's, with 13 digits. It also reads lower case, I and L as 1, and O as 0.
	Base32 = "base32"
	// Base36 is written in lower case and read in either case.
	Base36 = "base36"
	// Base58 uses Bitcoin's alphabet.
	Base58 = "base58"
	// Base62 uses 0-9A-Za-z, with 11 digits.
	Base62 = "base62"
	// UUID is a version 8 UUID, for columns of that type. It is written in lower case and read in either case.
	UUID = "uuid"
	// BwmarrinBase32 uses the alphabet of the Base32 method of github.com/bwmarrin/snowflake.
	BwmarrinBase32 = "bwmarrin-base32"
	// BwmarrinBase58 uses the alphabet of the Base58 method of github.com/bwmarrin/snowflake. [Base58] reads such a
	// string as a different ID, without an error.
	BwmarrinBase58 = "bwmarrin-base58"
)

// ParseID reads an ID in a format such as [Decimal], as written by [ID.Format] or by another program.
//
// It returns [ErrInvalidID] for an invalid character, a number with more than 64 bits or a UUID that does not represent
// an ID (the message gives the position), and [ErrInvalidOption] for an unknown format.
func ParseID(text, format string) (ID, error) {
	detail := newDetail()
	var id C.uint64_t
	status := C.polyflake_id_read(cText(text), cText(format), &id, &detail)
	return ID(id), check(status, &detail)
}

// Format writes the ID in a format such as [Base62]. It returns [ErrInvalidOption] for an unknown format.
func (id ID) Format(format string) (string, error) {
	var text [C.POLYFLAKE_ID_TEXT_SIZE]C.char
	detail := newDetail()
	status := C.polyflake_id_write(C.uint64_t(id), cText(format), &text[0], C.size_t(len(text)), &detail)
	return goText(text[:]), check(status, &detail)
}

// String returns the ID in decimal.
func (id ID) String() string {
	return strconv.FormatUint(uint64(id), 10)
}

// MarshalText returns the ID in decimal.
func (id ID) MarshalText() ([]byte, error) {
	return strconv.AppendUint(nil, uint64(id), 10), nil
}

// UnmarshalText reads an ID in decimal. It returns the same errors as [ParseID].
func (id *ID) UnmarshalText(text []byte) error {
	read, err := ParseID(string(text), Decimal)
	if err == nil {
		*id = read
	}
	return err
}

// MarshalJSON returns the ID as a string of decimal digits.
func (id ID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, id.String()), nil
}

// UnmarshalJSON reads an ID from a string of decimal digits. It returns the same errors as [ParseID]. A JSON number is
// rejected, because other programs may have rounded it. As usual, null leaves the ID unchanged.
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

// Value returns the ID as an int64, for a BIGINT column.
//
// It returns [ErrInvalidID] if the top bit is set, as in the second half of a 64-bit layout's range: as a negative
// number, the ID would sort before all others. Store its String instead.
func (id ID) Value() (driver.Value, error) {
	detail := newDetail()
	var number C.int64_t
	if err := check(C.polyflake_id_signed(C.uint64_t(id), &number, &detail), &detail); err != nil {
		return nil, err
	}
	return int64(number), nil
}

// Scan reads an ID from a BIGINT column, or from decimal digits.
//
// It returns [ErrInvalidID] for a negative number or a string that is not an ID, and another error for NULL and values
// of other types. To read NULL, use [database/sql.Null].
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
