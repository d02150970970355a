// go-redis, with both versions of the protocol, with and without a token.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

const decoded = "1541815603606036480"

var (
	ctx            = context.Background()
	secret         = os.Getenv("SECRET")
	passed, failed int
)

func check(name string, test func() error) {
	if err := test(); err != nil {
		failed++
		fmt.Printf("FAILED: %s: %v\n", name, err)
		return
	}
	passed++
}

// that returns nil if the condition holds.
func that(holds bool, format string, given ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, given...)
}

// refuses expects an error from the server that contains these words.
func refuses(err error, part string) error {
	var reply redis.Error
	return that(errors.As(err, &reply) && strings.Contains(reply.Error(), part), "%v instead of %q", err, part)
}

func numbers(client *redis.Client) error {
	first, err1 := client.Incr(ctx, "snowflake").Result()
	second, err2 := client.Incr(ctx, "snowflake").Result()
	large, err3 := client.Incr(ctx, "large").Result()
	next, err4 := client.Incr(ctx, "large").Result()
	last, err5 := client.IncrBy(ctx, "orders", 10).Result()
	after, err6 := client.Incr(ctx, "orders").Result()
	return errors.Join(err1, err2, err3, err4, err5, err6,
		that(1<<53 < first && first < second, "%d %d", first, second),
		that(1<<62 < large && large+1 == next, "%d %d", large, next),
		that(10 <= last && last < after, "%d %d", last, after))
}

func commandsOfItsOwn(client *redis.Client) error {
	several, err1 := client.Do(ctx, "PF.NEXT", "snowflake", 5).Int64Slice()
	uuid, err2 := client.Do(ctx, "PF.NEXT", "uuid").Text()
	wide, err3 := client.Do(ctx, "PF.NEXT", "wide").Uint64()
	alice, err4 := client.Do(ctx, "PF.SEQ", "inbox", "alice").Int64()
	again, err5 := client.Do(ctx, "PF.SEQ", "inbox", "alice").Int64()
	decode := redis.NewMapStringInterfaceCmd(ctx, "PF.DECODE", decoded)
	err6 := client.Process(ctx, decode)
	parts := decode.Val()
	distinct := slices.Compact(slices.Sorted(slices.Values(several)))
	return errors.Join(err1, err2, err3, err4, err5, err6,
		that(len(several) == 5 && slices.Equal(several, distinct), "%v", several),
		that(len(uuid) == 36, "%q", uuid),
		that(wide >= 1<<63, "%d", wide),
		that(alice+1 == again, "%d %d", alice, again),
		that(parts["id"] == decoded && parts["node"] == int64(378), "%v", parts),
		that(parts["time"] == "2022-06-28T16:07:40.105Z", "%v", parts))
}

func pipelines(client *redis.Client) error {
	var ids, orders []int64
	replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for range 500 {
			pipe.Incr(ctx, "snowflake")
			pipe.Incr(ctx, "orders")
		}
		return nil
	})
	for n, reply := range replies {
		number := reply.(*redis.IntCmd).Val()
		if n%2 == 0 {
			ids = append(ids, number)
		} else {
			orders = append(orders, number)
		}
	}
	for _, found := range [][]int64{ids, orders} {
		rising := slices.IsSorted(found) && len(slices.Compact(slices.Clone(found))) == 500
		err = errors.Join(err, that(rising, "%v", found))
	}
	mixed := client.Pipeline()
	before, other, after := mixed.Incr(ctx, "orders"), mixed.Incr(ctx, "other"), mixed.Incr(ctx, "orders")
	_, ofAll := mixed.Exec(ctx)
	return errors.Join(err, refuses(ofAll, "unknown_generator"), refuses(other.Err(), "unknown_generator"),
		that(0 < before.Val() && before.Val() < after.Val(), "%v %v", before, after))
}

func refusals(client *redis.Client) error {
	err := errors.Join(
		refuses(client.Incr(ctx, "other").Err(), "unknown_generator"),
		refuses(client.IncrBy(ctx, "snowflake", 2).Err(), "are not consecutive"),
		refuses(client.Get(ctx, "orders").Err(), "unknown command"))
	for _, n := range []int64{0, -1, 1 << 60} {
		says := fmt.Sprintf("n is %d; it takes", n)
		err = errors.Join(err, refuses(client.IncrBy(ctx, "orders", n).Err(), says),
			refuses(client.Do(ctx, "PF.NEXT", "orders", n).Err(), says))
	}
	return errors.Join(err, client.Incr(ctx, "orders").Err())
}

func whatClientsAsk(client *redis.Client) error {
	name, err1 := client.ClientGetName(ctx).Result()
	info, err2 := client.InfoMap(ctx).Result()
	commands, err3 := client.Command(ctx).Result()
	hello, err4 := client.Conn().Hello(ctx, client.Options().Protocol, "", "", "").Result()
	return errors.Join(err1, err2, err3, err4, client.Ping(ctx).Err(), client.ClientID(ctx).Err(),
		that(name == "test", "%q", name),
		that(info["Server"]["redis_mode"] == "standalone", "%v", info),
		that(commands["incr"] != nil && commands["incr"].Arity == 2, "%v", commands),
		that(hello["proto"] == int64(client.Options().Protocol), "%v", hello))
}

// pool has more goroutines than connections.
func pool(client *redis.Client) error {
	var (
		wait  sync.WaitGroup
		mutex sync.Mutex
		err   error
	)
	seen := map[int64]bool{}
	for range 32 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 50 {
				id, failure := client.Incr(ctx, "snowflake").Result()
				mutex.Lock()
				seen[id] = true
				err = errors.Join(err, failure)
				mutex.Unlock()
			}
		}()
	}
	wait.Wait()
	return errors.Join(err, that(len(seen) == 32*50, "%d", len(seen)))
}

func tokens(options redis.Options) error {
	var err error
	for password, says := range map[string]string{
		"wrong": "WRONGPASS", secret + "x": "WRONGPASS", secret[1:]: "WRONGPASS", "": "NOAUTH",
	} {
		options.Password = password
		client := redis.NewClient(&options)
		err = errors.Join(err, refuses(client.Incr(ctx, "orders").Err(), says), client.Close())
	}
	options.Username, options.Password = "anybody", secret
	client := redis.NewClient(&options)
	defer client.Close()
	return errors.Join(err, client.Incr(ctx, "orders").Err())
}

func main() {
	for _, protocol := range []int{2, 3} {
		for name, password := range map[string]string{"OPEN": "", "CLOSED": secret} {
			options := redis.Options{
				Addr: os.Getenv(name), Password: password, Protocol: protocol, ClientName: "test", PoolSize: 8,
			}
			client := redis.NewClient(&options)
			of := fmt.Sprintf("RESP%d, %s: ", protocol, strings.ToLower(name))
			check(of+"numbers", func() error { return numbers(client) })
			check(of+"commands of its own", func() error { return commandsOfItsOwn(client) })
			check(of+"pipelines", func() error { return pipelines(client) })
			check(of+"refusals", func() error { return refusals(client) })
			check(of+"what clients ask", func() error { return whatClientsAsk(client) })
			check(of+"pool", func() error { return pool(client) })
			if password != "" {
				check(of+"tokens", func() error { return tokens(options) })
			}
			check(of+"close", client.Close)
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
