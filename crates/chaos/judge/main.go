// Judges a history of operations on keys: reads JSON lines, has porcupine search for an order that
// explains every answer, and prints the verdict as one JSON object.
//
// Exit: 0 where the history is linearizable, 1 where it is not, 2 where that could not be found out,
// be it that the time was over or that the file is no history.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// The longest line that is read; a record is far below it.
const longestLine = 1 << 20

// verdict is what the program prints.
type verdict struct {
	Verdict    string `json:"verdict"`
	Operations int    `json:"operations"`
	Keys       int    `json:"keys"`
	// The key whose history has no explanation, or none yet.
	Key string `json:"key,omitempty"`
	Why string `json:"why,omitempty"`
}

func main() {
	patience := flag.Duration("timeout", time.Minute, "how long to search for an order, over all keys")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "judge [-timeout 60s] <history.jsonl>")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || *patience <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	found := judge(flag.Arg(0), *patience)
	line, err := json.Marshal(found)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Println(string(line))
	switch found.Verdict {
	case "linearizable":
		os.Exit(0)
	case "not linearizable":
		os.Exit(1)
	}
	os.Exit(2)
}

func judge(path string, patience time.Duration) verdict {
	file, err := os.Open(path)
	if err != nil {
		return verdict{Verdict: "error", Why: err.Error()}
	}
	defer file.Close()
	histories, err := read(file)
	if err != nil {
		return verdict{Verdict: "error", Why: path + ": " + err.Error()}
	}
	found := verdict{Verdict: "linearizable", Keys: len(histories)}
	for _, records := range histories {
		found.Operations += len(records)
	}
	if found.Operations == 0 {
		return verdict{Verdict: "error", Why: path + ": nothing in it says anything about a key"}
	}
	until := time.Now().Add(patience)
	for _, key := range sorted(histories) {
		// Porcupine takes zero for no limit at all.
		left := max(time.Until(until), time.Millisecond)
		switch porcupine.CheckOperationsTimeout(register, operations(histories[key]), left) {
		case porcupine.Illegal:
			// One such key is enough, whatever others that ran out of time may be.
			return verdict{Verdict: "not linearizable", Operations: found.Operations, Keys: found.Keys, Key: key}
		case porcupine.Unknown:
			found.Verdict, found.Key, found.Why = "unknown", key, "no answer within "+patience.String()
		}
	}
	return found
}

// read gives each key's records. What cannot have had an effect and tells nothing is left out: what
// is known not to have been executed, and reads without an answer.
func read(from io.Reader) (map[string][]record, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 4096), longestLine)
	histories := map[string][]record{}
	for number := 1; lines.Scan(); number++ {
		var next record
		err := json.Unmarshal(lines.Bytes(), &next)
		if err == nil {
			err = next.check()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if next.Outcome == "failed" || (next.Operation == "get" && next.open()) {
			continue
		}
		histories[next.Key] = append(histories[next.Key], next)
	}
	return histories, lines.Err()
}

func (r record) check() error {
	switch r.Operation {
	case "get", "put", "cas", "delete":
	default:
		return fmt.Errorf("'%s' is no operation", r.Operation)
	}
	switch r.Outcome {
	case "ok", "mismatch", "other", "absent":
		if r.Return == nil {
			return errors.New("an outcome without the time of its return")
		}
		if *r.Return < r.Call {
			return errors.New("returned before it was called")
		}
	case "unknown", "failed":
	default:
		return fmt.Errorf("'%s' is no outcome", r.Outcome)
	}
	if r.Outcome == "ok" && r.Version == nil {
		return errors.New("a success without a version")
	}
	return nil
}

func sorted(histories map[string][]record) []string {
	keys := make([]string, 0, len(histories))
	for key := range histories {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
