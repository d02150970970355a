package polyflake_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

// A clock that always returns the same time, so that the IDs are always the same.
func noon() (time.Time, error) {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), nil
}

func ExampleNew() {
	ids, err := polyflake.New(polyflake.Node(7))
	if err != nil {
		log.Fatal(err)
	}
	id, err := ids.NextID()
	if err != nil {
		log.Fatal(err)
	}
	decoded, err := ids.Decode(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("node", decoded.Node)
	// Output: node 7
}

func ExampleNodeFields() {
	ids, err := polyflake.New(polyflake.NodeFields(map[string]uint64{"datacenter": 1, "worker": 7}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("node", ids.Node())
	// Output: node 39
}

func ExampleState() {
	ids, err := polyflake.New(polyflake.Node(7), polyflake.State("/var/lib/app/polyflake.state"))
	if errors.Is(err, polyflake.ErrStateFile) {
		log.Fatal("the state file cannot be used: ", err)
	} else if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.NextID())
}

func ExampleClock() {
	ids, err := polyflake.New(polyflake.Node(7), polyflake.SequenceStart("zero"), polyflake.Clock(noon))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		id, err := ids.NextID()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
	}
	// Output:
	// 2006696907371474944
	// 2006696907371474945
}

func ExampleSnowflake_NextIDs() {
	ids, err := polyflake.New(polyflake.Node(7), polyflake.SequenceStart("zero"), polyflake.Clock(noon))
	if err != nil {
		log.Fatal(err)
	}
	batch, err := ids.NextIDs(1000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(batch), batch[0], batch[999])
	// Output: 1000 2006696907371474944 2006696907371475943
}

func ExampleSnowflake_Fill() {
	ids, err := polyflake.New(polyflake.Node(7), polyflake.SequenceStart("zero"), polyflake.Clock(noon))
	if err != nil {
		log.Fatal(err)
	}
	var buffer [3]polyflake.ID
	if err := ids.Fill(buffer[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Println(buffer)
	// Output: [2006696907371474944 2006696907371474945 2006696907371474946]
}

func ExampleSnowflake_All() {
	ids, err := polyflake.New(polyflake.Node(7), polyflake.SequenceStart("zero"), polyflake.Clock(noon))
	if err != nil {
		log.Fatal(err)
	}
	n := 0
	for id, err := range ids.All() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
		if n++; n == 2 {
			break
		}
	}
	// Output:
	// 2006696907371474944
	// 2006696907371474945
}

func ExampleSnowflake_TryNextID() {
	ids, err := polyflake.New(polyflake.WithLayout("timestamp:41|node:10|sequence:1@0/1ms"), polyflake.Node(7),
		polyflake.SequenceStart("zero"), polyflake.Clock(noon))
	if err != nil {
		log.Fatal(err)
	}
	for {
		_, err := ids.TryNextID()
		var e *polyflake.Error
		if errors.As(err, &e) && errors.Is(err, polyflake.ErrSequenceExhausted) {
			fmt.Println(e.Name, e.RetryAfter())
			return
		}
	}
	// Output: sequence_exhausted 1ms
}

// This example needs a store, so its output is not checked.
func ExampleOpenCounter() {
	orders, err := polyflake.OpenCounter("orders", polyflake.CounterStore("redis://host/0"))
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	for number, err := range orders.All() { // 1, 2, 3 and so on
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(number)
	}
}

// This example needs a store, so its output is not checked.
func ExampleOpenSequences() {
	inbox, err := polyflake.OpenSequences[string]("inbox", polyflake.SequencesStore("postgres://host/chat"))
	if err != nil {
		log.Fatal(err) // ErrLeaseUnavailable: another process, named in the message, is using them
	}
	defer inbox.Close()
	number, err := inbox.NextID("alice") // 1, 2, 3 and so on, for each key
	if err != nil {
		log.Fatal(err)
	}
	numbers, err := inbox.NextIDs([]string{"bob", "carol", "bob"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(number, numbers)
}

func ExampleError() {
	_, err := polyflake.New(polyflake.Node(1024))
	var e *polyflake.Error
	if errors.As(err, &e) {
		fmt.Println(int(e.Code), e.Name)
	}
	fmt.Println(errors.Is(err, polyflake.ErrInvalidNode))
	// Output:
	// 3 invalid_node
	// true
}

func ExampleParseLayout() {
	layout, err := polyflake.ParseLayout("discord")
	if err != nil {
		log.Fatal(err)
	}
	decoded, err := layout.Decode(175928847299117063)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(layout)
	fmt.Println(decoded.Time, decoded.Fields()["worker"], decoded.Sequence)
	// Output:
	// timestamp:42|worker:5|process:5|sequence:12@1420070400000/1ms
	// 2016-04-30 11:18:25.796 +0000 UTC 1 7
}

func ExampleLayout_MinID() {
	layout, err := polyflake.ParseLayout("twitter")
	if err != nil {
		log.Fatal(err)
	}
	// All IDs from one day.
	day := time.Date(2022, 6, 28, 0, 0, 0, 0, time.UTC)
	from, err := layout.MinID(day)
	if err != nil {
		log.Fatal(err)
	}
	to, err := layout.MaxID(day.AddDate(0, 0, 1).Add(-time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("WHERE id BETWEEN %d AND %d\n", from, to)
	// Output: WHERE id BETWEEN 1541572081873846272 AND 1541934469739446271
}

func ExampleID() {
	id := polyflake.ID(1541815603606036480)
	text, err := json.Marshal(map[string]polyflake.ID{"id": id})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output: {"id":"1541815603606036480"}
}

func ExampleID_Format() {
	text, err := polyflake.ID(1541815603606036480).Format(polyflake.Base62)
	if err != nil {
		log.Fatal(err)
	}
	id, err := polyflake.ParseID(text, polyflake.Base62)
	fmt.Println(text, id, err)
	// Output: 1ptWyK4WgZU 1541815603606036480 <nil>
}

func ExamplePublicIDs() {
	// An example key. Read yours from a file or a secret store.
	orders, err := polyflake.NewPublicIDs([]string{"pfk_10kvEGTqNtUTXFUlMnM4wIa"}, "order")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(orders.Encode(1541815603606036480))
	id, err := orders.Decode("order_15ShV20Bxc6UJvKSQbDvo0J")
	fmt.Println(id, err)
	// Output:
	// order_15ShV20Bxc6UJvKSQbDvo0J
	// 1541815603606036480 <nil>
}

// A program would create this once, with keys read from a file or a secret store.
var orders = func() *polyflake.PublicIDs {
	ids, err := polyflake.NewPublicIDs([]string{"pfk_10kvEGTqNtUTXFUlMnM4wIa"}, "order")
	if err != nil {
		log.Fatal(err)
	}
	return ids
}()

// An ID in the program and in the database, and a public ID in JSON.
type orderID polyflake.ID

func (id orderID) MarshalText() ([]byte, error) {
	return []byte(orders.Encode(polyflake.ID(id))), nil
}

func (id *orderID) UnmarshalText(text []byte) error {
	read, err := orders.Decode(string(text))
	if err == nil {
		*id = orderID(read)
	}
	return err
}

func ExamplePublicIDs_json() {
	var order struct {
		ID orderID `json:"id"`
	}
	if err := json.Unmarshal([]byte(`{"id": "order_15ShV20Bxc6UJvKSQbDvo0J"}`), &order); err != nil {
		log.Fatal(err)
	}
	fmt.Println(uint64(order.ID))
	text, err := json.Marshal(order)
	fmt.Println(string(text), err)
	fmt.Println(json.Unmarshal([]byte(`{"id": "1541815603606036480"}`), &order))
	// Output:
	// 1541815603606036480
	// {"id":"order_15ShV20Bxc6UJvKSQbDvo0J"} <nil>
	// polyflake: invalid_id: the string does not begin with `order_`
}

func ExamplePublicIDs_http() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := orders.Decode(r.PathValue("id"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintln(w, "order", id)
	})
	for _, path := range []string{"/orders/order_15ShV20Bxc6UJvKSQbDvo0J", "/orders/1541815603606036480"} {
		reply := httptest.NewRecorder()
		mux.ServeHTTP(reply, httptest.NewRequest("GET", path, nil))
		fmt.Print(reply.Code, " ", reply.Body)
	}
	// Output:
	// 200 order 1541815603606036480
	// 404 404 page not found
}
