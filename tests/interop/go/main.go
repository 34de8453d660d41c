// Every command of gomemcache; see run_client in ../larder_test.py for the lines this speaks.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

var (
	sizes    = []int{0, 100, 3 * 1024, 20 * 1024, 100 * 1024, 700 * 1024}
	tail     = []byte("\r\n<tail>")
	answers  = bufio.NewReader(os.Stdin)
	client   *memcache.Client
	hour     = int32(3600)
	twoHours = int32(7200)
)

func valueOf(size int) []byte {
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(i%256*31 + size)
	}
	return value
}

func short(v any) string {
	text := fmt.Sprintf("%q", fmt.Sprint(v))
	if b, ok := v.([]byte); ok {
		text = fmt.Sprintf("%q", b)
	}
	if len(text) > 100 {
		text = text[:50] + "..." + text[len(text)-50:]
	}
	return text
}

func check(name string, got, want any) {
	same := got == want
	if same {
		fmt.Println("ok " + name)
	} else {
		fmt.Printf("not ok %s: got %s, want %s\n", name, short(got), short(want))
	}
}

// checkGet is a test that a value has certain bytes; nil is a miss.
func checkGet(name, key string, want []byte) {
	item, err := client.Get(key)
	switch {
	case want == nil:
		check(name, err, memcache.ErrCacheMiss)
	case err != nil:
		check(name, err, nil)
	case !bytes.Equal(item.Value, want):
		fmt.Printf("not ok %s: got %s, want %s\n", name, short(item.Value), short(want))
	default:
		fmt.Println("ok " + name)
	}
}

func ask(line string) string {
	fmt.Println(line)
	answer, err := answers.ReadString('\n')
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(answer)
}

func checkTTL(name, key string, most, least int) {
	left := ask("ttl " + key)
	seconds, err := strconv.Atoi(left)
	check(fmt.Sprintf("%s (ttl of %s)", name, left), err == nil && least <= seconds && seconds <= most, true)
}

func item(key string, value []byte, exptime int32) *memcache.Item {
	return &memcache.Item{Key: key, Value: value, Expiration: exptime, Flags: 0xdeadbeef}
}

func prepare() time.Time {
	for _, size := range sizes {
		for _, use := range []string{"get", "add", "replace", "append", "prepend", "cas", "stale", "delete", "touch", "gat"} {
			check(fmt.Sprintf("Set %s %d", use, size), client.Set(item(fmt.Sprintf("%s:%d", use, size), valueOf(size), hour)), nil)
		}
	}
	for i := 0; i < 50; i++ {
		check("Set many", client.Set(item(fmt.Sprintf("many:%d", i), valueOf(i), hour)), nil)
	}
	for name, number := range map[string]string{
		"get": "1234567890", "incr": "1234567890", "decr": "1234567890", "below": "10", "wrap": "18446744073709551615",
		"none": "ten",
	} {
		check("Set of a number", client.Set(item("number:"+name, []byte(number), hour)), nil)
	}
	for _, ttl := range []int32{6, 600, 86400, 0} {
		check("Set with a ttl", client.Set(item(fmt.Sprintf("ttl:%d", ttl), valueOf(50), ttl)), nil)
	}
	since := time.Now()
	check("Set", client.Set(item("gone", []byte("here"), 0)), nil)
	check("Set, negative ttl", client.Set(item("gone", []byte("here"), -1)), nil)
	check("Set", client.Set(item("too-large", []byte("old"), 0)), nil)
	return since
}

func bySize(size int, stale *memcache.Item) {
	value := valueOf(size)
	key := func(use string) string { return fmt.Sprintf("%s:%d", use, size) }
	name := func(what string) string { return fmt.Sprintf("%s %d", what, size) }

	got, err := client.Get(key("get"))
	check(name("Get"), err, nil)
	if err == nil {
		check(name("Get: flags"), got.Flags, uint32(0xdeadbeef))
	}
	checkGet(name("Get: value"), key("get"), value)
	check(name("Add, there"), client.Add(item(key("add"), []byte("new"), 0)), memcache.ErrNotStored)
	checkGet(name("Add: value"), key("add"), value)
	check(name("Replace"), client.Replace(item(key("replace"), []byte("new"), 60)), nil)
	checkGet(name("Replace: value"), key("replace"), []byte("new"))
	check(name("Append"), client.Append(item(key("append"), tail, 1)), nil)
	checkGet(name("Append: value"), key("append"), append(append([]byte{}, value...), tail...))
	check(name("Prepend"), client.Prepend(item(key("prepend"), tail, 1)), nil)
	checkGet(name("Prepend: value"), key("prepend"), append(append([]byte{}, tail...), value...))

	stale.Value = []byte("new")
	check(name("CompareAndSwap, out of date"), client.CompareAndSwap(stale), memcache.ErrCASConflict)
	checkGet(name("CompareAndSwap, out of date: value"), key("stale"), value)
	if swapped, err := client.Get(key("cas")); err != nil {
		check(name("CompareAndSwap: Get"), err, nil)
	} else {
		swapped.Value = []byte("new")
		check(name("CompareAndSwap"), client.CompareAndSwap(swapped), nil)
		check(name("CompareAndSwap, again"), client.CompareAndSwap(swapped), memcache.ErrCASConflict)
		checkGet(name("CompareAndSwap: value"), key("cas"), []byte("new"))
	}

	check(name("Touch"), client.Touch(key("touch"), twoHours), nil)
	checkTTL(name("Touch: ttl"), key("touch"), 7200, 7190)
	checkGet(name("Touch: value"), key("touch"), value)
	touched, err := client.GetAndTouch(key("gat"), twoHours)
	check(name("GetAndTouch"), err == nil && bytes.Equal(touched.Value, value), true)
	checkTTL(name("GetAndTouch: ttl"), key("gat"), 7200, 7190)
	check(name("Delete"), client.Delete(key("delete")), nil)
	check(name("Delete, again"), client.Delete(key("delete")), memcache.ErrCacheMiss)
	checkGet(name("Delete: value"), key("delete"), nil)
}

func missing() {
	checkGet("Get, missing", "no", nil)
	check("Add, missing", client.Add(item("no:add", []byte("x"), 0)), nil)
	checkGet("Add, missing: value", "no:add", []byte("x"))
	check("Replace, missing", client.Replace(item("no", []byte("x"), 0)), memcache.ErrNotStored)
	check("Append, missing", client.Append(item("no", []byte("x"), 0)), memcache.ErrNotStored)
	check("Prepend, missing", client.Prepend(item("no", []byte("x"), 0)), memcache.ErrNotStored)
	check("CompareAndSwap, missing", client.CompareAndSwap(item("no", []byte("x"), 0)), memcache.ErrCacheMiss)
	check("Touch, missing", client.Touch("no", 10), memcache.ErrCacheMiss)
	_, err := client.GetAndTouch("no", 10)
	check("GetAndTouch, missing", err, memcache.ErrCacheMiss)
	check("Delete, missing", client.Delete("no"), memcache.ErrCacheMiss)
	_, err = client.Increment("no", 1)
	check("Increment, missing", err, memcache.ErrCacheMiss)
	_, err = client.Decrement("no", 1)
	check("Decrement, missing", err, memcache.ErrCacheMiss)
}

func numbers() {
	for _, step := range []struct {
		name, key string
		up        bool
		delta     uint64
		want      uint64
	}{
		{"Increment", "incr", true, 10, 1234567900},
		{"Increment, again", "incr", true, 1, 1234567901},
		{"Decrement", "decr", false, 90, 1234567800},
		{"Decrement to fewer digits", "below", false, 1, 9},
		{"Decrement below 0", "below", false, 100, 0},
		{"Increment past 2^64", "wrap", true, 2, 1},
	} {
		change := client.Decrement
		if step.up {
			change = client.Increment
		}
		got, err := change("number:"+step.key, step.delta)
		check(step.name, fmt.Sprint(got, err), fmt.Sprint(step.want, nil))
	}
	checkGet("Get of a number", "number:get", []byte("1234567890"))
	checkTTL("Increment keeps the ttl", "number:incr", 3600, 3000)
	_, err := client.Increment("number:none", 1)
	check("Increment of no number", err != nil && strings.Contains(err.Error(), "non-numeric value"), true)
	checkGet("Increment of no number: value", "number:none", []byte("ten"))
}

func multi() {
	check("Set", client.Set(item("fresh:1", []byte("fresh one"), 0)), nil)
	check("Set", client.Set(item("fresh:2", valueOf(5000), 0)), nil)
	want := map[string][]byte{"fresh:1": []byte("fresh one"), "fresh:2": valueOf(5000), "get:0": valueOf(0), "get:102400": valueOf(102400)}
	for i := 0; i < 50; i++ {
		want[fmt.Sprintf("many:%d", i)] = valueOf(i)
	}
	keys := []string{"no:1", "no:2"}
	for key := range want {
		keys = append(keys, key)
	}
	got, err := client.GetMulti(keys)
	check("GetMulti of fresh, settled and missing keys", err, nil)
	check("GetMulti: how many", len(got), len(want))
	for key, value := range want {
		check("GetMulti: "+key, got[key] != nil && bytes.Equal(got[key].Value, value), true)
	}
	got, err = client.GetMulti([]string{"no:1", "no:2"})
	check("GetMulti, none there", fmt.Sprint(len(got), err), "0 <nil>")
}

func flush() {
	for _, way := range []struct {
		name string
		do   func() error
	}{
		{"FlushAll", client.FlushAll},
		// It expects another word than memcached's OK, so its answer says nothing.
		{"DeleteAll", func() error { _ = client.DeleteAll(); return nil }},
	} {
		check("Set", client.Set(item("flush:1", []byte("x"), 60)), nil)
		check("Set", client.Set(item("flush:large", valueOf(102400), 60)), nil)
		ask("settle")
		check("Set", client.Set(item("flush:fresh", []byte("x"), 60)), nil)
		checkGet("before "+way.name, "flush:1", []byte("x"))
		check(way.name, way.do(), nil)
		checkGet(way.name+": settled", "flush:1", nil)
		checkGet(way.name+": settled and large", "flush:large", nil)
		checkGet(way.name+": fresh", "flush:fresh", nil)
		check("Append after "+way.name, client.Append(item("flush:1", []byte("x"), 60)), memcache.ErrNotStored)
		check("Add after "+way.name, client.Add(item("flush:1", []byte("y"), 60)), nil)
		checkGet("Get after "+way.name, "flush:1", []byte("y"))
	}
}

// dialer connects with TLS, and trusts the certificates of a file.
func dialer(path string) *tls.Dialer {
	pem, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Dialer{Config: &tls.Config{RootCAs: roots}}
}

func main() {
	client = memcache.New(os.Args[len(os.Args)-2] + ":" + os.Args[len(os.Args)-1])
	client.Timeout = time.Minute
	if path := os.Getenv("TLS_CA"); path != "" {
		client.DialContext = dialer(path).DialContext
	}
	check("Ping", client.Ping(), nil)
	since := prepare()
	stale := map[int]*memcache.Item{}
	for _, size := range sizes {
		old, err := client.Get(fmt.Sprintf("stale:%d", size))
		if err != nil {
			panic(err)
		}
		stale[size] = old
		// Puts a new version in place, so that the unique just read is out of date.
		check("Set", client.Set(item(old.Key, valueOf(size), hour)), nil)
	}
	ask("settle")
	for _, size := range sizes {
		bySize(size, stale[size])
	}
	checkTTL("Append keeps the ttl", "append:100", 3600, 3000)
	checkTTL("Replace sets the ttl", "replace:100", 60, 50)
	missing()
	numbers()
	multi()
	checkTTL("ttl of 600", "ttl:600", 600, 480)
	checkTTL("ttl of a day", "ttl:86400", 86400, 86280)
	checkTTL("ttl of 0", "ttl:0", -1, -1)
	checkGet("negative ttl hides the item", "gone", nil)
	check("Add over a negative ttl", client.Add(item("gone", []byte("back"), 0)), nil)
	err := client.Set(item("too-large", make([]byte, 2<<20), 0))
	check("Set, too large", err != nil && strings.Contains(err.Error(), "object too large for cache"), true)
	checkGet("Set, too large: drops what was there", "too-large", nil)
	check("a key with a blank", errors.Is(client.Delete("a b"), memcache.ErrMalformedKey), true)
	time.Sleep(time.Until(since.Add(7100 * time.Millisecond)))
	checkGet("gone after its ttl of 6", "ttl:6", nil)
	check("Add after its ttl", client.Add(item("ttl:6", []byte("x"), 0)), nil)
	flush()
	check("Close", client.Close(), nil)
	check("works again after Close", client.Ping(), nil)
}
