package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// keys that are written, as many as in the measurement of Troth.
	keys = 10_000
	// valueBytes of each.
	valueBytes = 256
	// preparing is how many keys are made at a time before the first round.
	preparing = 100
	// patience is how long the cluster may take to answer at first.
	patience = 60 * time.Second
	// pause before a request that failed is sent again.
	pause = 10 * time.Millisecond
)

var (
	value = string(bytes.Repeat([]byte{7}, valueBytes))
	// names of the keys, made once: making them is none of etcd's work.
	names = func() (names [keys]string) {
		for number := range names {
			names[number] = fmt.Sprintf("key-%012d", number)
		}
		return names
	}()
)

// result is what a round showed.
type result struct {
	Operations int     `json:"operations"`
	Seconds    float64 `json:"seconds"`
	P50        uint32  `json:"p50_us"`
	P99        uint32  `json:"p99_us"`
	Retried    int64   `json:"retried"`
}

// load makes the keys, says that it is ready, and then measures one round for each line
// `round CLIENTS OUTSTANDING WARM-UP-MILLISECONDS MILLISECONDS`.
func load(endpoints []string, orders io.Reader, out io.Writer) error {
	if err := prepare(endpoints); err != nil {
		return err
	}
	fmt.Fprintf(out, "{\"ready\":\"etcd %s\"}\n", version.Version)
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		var clients, outstanding, warmUp, measured int
		if _, err := fmt.Sscanf(lines.Text(), "round %d %d %d %d", &clients, &outstanding, &warmUp, &measured); err != nil {
			return fmt.Errorf("an order that is none: %q", lines.Text())
		}
		r := round{milliseconds: measured, warmUp: warmUp, out: out}
		if err := r.run(endpoints, clients, outstanding); err != nil {
			return err
		}
	}
	return lines.Err()
}

func connect(endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: patience})
}

// prepare writes every key once.
func prepare(endpoints []string) error {
	client, err := connect(endpoints)
	if err != nil {
		return err
	}
	defer client.Close()
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var next atomic.Int64
	var failed atomic.Value
	var callers sync.WaitGroup
	for range preparing {
		callers.Go(func() {
			for number := next.Add(1) - 1; number < keys; number = next.Add(1) - 1 {
				for {
					_, err := client.Put(within, names[number], value)
					if err == nil {
						break
					}
					if within.Err() != nil {
						failed.Store(err)
						return
					}
					time.Sleep(pause)
				}
			}
		})
	}
	callers.Wait()
	if err, ok := failed.Load().(error); ok {
		return fmt.Errorf("the keys are not there after %v: %w", patience, err)
	}
	return nil
}

// round is one warm-up and one measurement: each answer is followed at once by the next request, so that the
// same number is outstanding all the time.
type round struct {
	warmUp, milliseconds int
	out                  io.Writer
	over, keep           atomic.Bool
	retried              atomic.Int64
}

func (r *round) run(endpoints []string, clients, outstanding int) error {
	var callers sync.WaitGroup
	took := make([][]uint32, outstanding)
	connected := make([]*clientv3.Client, clients)
	for number := range connected {
		client, err := connect(endpoints)
		if err != nil {
			return err
		}
		defer client.Close()
		connected[number] = client
	}
	for number := range took {
		callers.Go(func() { took[number] = r.call(connected[number%clients], int64(number)) })
	}
	time.Sleep(time.Duration(r.warmUp) * time.Millisecond)
	fmt.Fprintln(r.out, `{"measuring":true}`)
	began := time.Now()
	r.keep.Store(true)
	time.Sleep(time.Duration(r.milliseconds) * time.Millisecond)
	r.keep.Store(false)
	seconds := time.Since(began).Seconds()
	fmt.Fprintln(r.out, `{"measuring":false}`)
	r.over.Store(true)
	callers.Wait()
	var all []uint32
	for _, one := range took {
		all = append(all, one...)
	}
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	return json.NewEncoder(r.out).Encode(result{
		Operations: len(all), Seconds: seconds, P50: share(all, 0.50), P99: share(all, 0.99), Retried: r.retried.Load(),
	})
}

// call writes one key after another; it returns what each write took, in microseconds, that ended while it was
// measured.
func (r *round) call(client *clientv3.Client, seed int64) []uint32 {
	random := rand.New(rand.NewSource(seed))
	var took []uint32
	for !r.over.Load() {
		name := names[random.Intn(keys)]
		began := time.Now()
		for {
			_, err := client.Put(context.Background(), name, value)
			if err == nil {
				break
			}
			// A leader that changed, for instance: the caller waits for all of it.
			r.retried.Add(1)
			time.Sleep(pause)
		}
		if r.keep.Load() {
			took = append(took, uint32(time.Since(began).Microseconds()))
		}
	}
	return took
}

// share is the value that this share of the sorted values does not exceed.
func share(sorted []uint32, share float64) uint32 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*share), len(sorted)-1)]
}
