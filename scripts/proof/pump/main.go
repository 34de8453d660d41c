// Loads items into a memcached and reads them back at random, verifying every byte. Key and value of item i follow from
// the seed and i alone, so nothing has to be remembered. Prints one line of JSON.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

type result struct {
	Items       uint64  `json:"items"`
	Seconds     float64 `json:"seconds"`
	Stored      uint64  `json:"stored"`
	NotStored   uint64  `json:"not_stored"`
	Hits        uint64  `json:"hits"`
	Misses      uint64  `json:"misses"`
	Verified    uint64  `json:"verified"`
	Wrong       uint64  `json:"wrong"`
	FirstWrong  string  `json:"first_wrong,omitempty"`
	FirstRefuse string  `json:"first_not_stored,omitempty"`
}

var (
	address     = flag.String("address", "127.0.0.1:11211", "the server")
	do          = flag.String("do", "load", "load, or read")
	items       = flag.Uint64("items", 1000, "how many items there are")
	size        = flag.Int("size", 1024, "bytes of a value")
	seed        = flag.Uint64("seed", 1, "what keys and values follow from")
	connections = flag.Int("connections", 8, "connections")
	depth       = flag.Int("depth", 32, "requests sent before answers are read")
)

// mix spreads the bits of x over all of the result (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func keyOf(key []byte, i uint64) []byte {
	return append(key[:0], fmt.Sprintf("%016x", mix(*seed^i<<1))...)
}

// valueOf begins with the item's number, so that a wrong value says whose it is; no two items share a part of it.
func valueOf(value []byte, i uint64) {
	state := mix(*seed + i)
	var word [8]byte
	for at := 0; at < len(value); at += 8 {
		binary.LittleEndian.PutUint64(word[:], state)
		if at == 0 {
			binary.LittleEndian.PutUint64(word[:], i)
		}
		copy(value[at:], word[:])
		state = mix(state)
	}
}

// permuted is a random order of 0..items: a Feistel network over the next even power of two, walked until inside.
func permuted(i uint64) uint64 {
	bits := uint(2)
	for uint64(1)<<bits < *items {
		bits += 2
	}
	half := bits / 2
	mask := uint64(1)<<half - 1
	for {
		left, right := i>>half, i&mask
		for round := uint64(0); round < 4; round++ {
			left, right = right, left^(mix(right^*seed^round<<40)&mask)
		}
		i = left<<half | right
		if i < *items {
			return i
		}
	}
}

// load sets the items of one connection, every answer read.
func load(worker uint64, r *bufio.Reader, w *bufio.Writer, out *result) error {
	value := make([]byte, *size)
	var key []byte
	head := " 0 0 " + strconv.Itoa(*size) + "\r\n"
	for i := worker; i < *items; {
		sent := 0
		for ; sent < *depth && i < *items; sent++ {
			key = keyOf(key, i)
			valueOf(value, i)
			w.WriteString("set ")
			w.Write(key)
			w.WriteString(head)
			w.Write(value)
			w.WriteString("\r\n")
			i += uint64(*connections)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for ; sent > 0; sent-- {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return err
			}
			if string(line) == "STORED\r\n" {
				out.Stored++
			} else {
				out.NotStored++
				if out.FirstRefuse == "" {
					out.FirstRefuse = string(line)
				}
			}
		}
	}
	return nil
}

// read gets the items of one connection in random order; every item is read once by one of them.
func read(worker uint64, r *bufio.Reader, w *bufio.Writer, out *result) error {
	want, got := make([]byte, *size), make([]byte, 0, *size+2)
	var key []byte
	batch := make([]uint64, 0, *depth)
	for at := worker; at < *items; {
		batch = batch[:0]
		for len(batch) < *depth && at < *items {
			i := permuted(at)
			batch = append(batch, i)
			key = keyOf(key, i)
			w.WriteString("get ")
			w.Write(key)
			w.WriteString("\r\n")
			at += uint64(*connections)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, i := range batch {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return err
			}
			if string(line) == "END\r\n" {
				out.Misses++
				continue
			}
			fields := bytes.Fields(line)
			if len(fields) != 4 || string(fields[0]) != "VALUE" {
				return fmt.Errorf("item %d: the answer is %q", i, line)
			}
			key = keyOf(key, i)
			rightKey := bytes.Equal(fields[1], key)
			length, err := strconv.Atoi(string(fields[3]))
			if err != nil || length < 0 || length > 1<<30 {
				return fmt.Errorf("item %d: the answer is %q", i, line)
			}
			if cap(got) < length+2 {
				got = make([]byte, 0, length+2)
			}
			got = got[:length+2]
			if _, err := io.ReadFull(r, got); err != nil {
				return err
			}
			if line, err = r.ReadSlice('\n'); err != nil {
				return err
			} else if string(line) != "END\r\n" {
				return fmt.Errorf("item %d: behind the value is %q", i, line)
			}
			out.Hits++
			valueOf(want, i)
			if rightKey && bytes.Equal(got[:length], want) {
				out.Verified++
			} else {
				out.Wrong++
				if out.FirstWrong == "" {
					out.FirstWrong = fmt.Sprintf("item %d: %d bytes, beginning with %x", i, length, got[:min(16, length)])
				}
			}
		}
	}
	return nil
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func main() {
	flag.Parse()
	work := map[string]func(uint64, *bufio.Reader, *bufio.Writer, *result) error{"load": load, "read": read}[*do]
	if work == nil || *connections < 1 || *depth < 1 {
		fmt.Fprintln(os.Stderr, "-do is load or read; -connections and -depth are 1 or more")
		os.Exit(2)
	}
	results := make([]result, *connections)
	failures := make([]error, *connections)
	var running sync.WaitGroup
	start := time.Now()
	for worker := range results {
		running.Add(1)
		go func(worker int) {
			defer running.Done()
			conn, err := net.Dial("tcp", *address)
			if err != nil {
				failures[worker] = err
				return
			}
			defer conn.Close()
			r, w := bufio.NewReaderSize(conn, 1<<18), bufio.NewWriterSize(conn, 1<<18)
			failures[worker] = work(uint64(worker), r, w, &results[worker])
		}(worker)
	}
	running.Wait()
	sum := result{Items: *items, Seconds: time.Since(start).Seconds()}
	for worker, one := range results {
		if failures[worker] != nil {
			fmt.Fprintln(os.Stderr, "connection", worker, "failed:", failures[worker])
			os.Exit(1)
		}
		sum.Stored += one.Stored
		sum.NotStored += one.NotStored
		sum.Hits += one.Hits
		sum.Misses += one.Misses
		sum.Verified += one.Verified
		sum.Wrong += one.Wrong
		if sum.FirstWrong == "" {
			sum.FirstWrong = one.FirstWrong
		}
		if sum.FirstRefuse == "" {
			sum.FirstRefuse = one.FirstRefuse
		}
	}
	json.NewEncoder(os.Stdout).Encode(sum)
}
