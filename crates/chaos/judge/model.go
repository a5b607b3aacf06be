// One key as a model: what it may hold, and which answers that allows.
//
// A version is the store's count of writes, so a key's versions only grow. That leaves the search
// hardly a choice among the writes that were acknowledged. A write without an answer may take
// effect at any time after its call; put behind everything else in the order it never did.
package main

import (
	"math"

	"github.com/anishathalye/porcupine"
)

// record is one line of a history.
type record struct {
	Key       string `json:"key"`
	Operation string `json:"op"`
	// What a put or a compare-and-swap writes; after a get, what was found.
	Value string `json:"value"`
	// The version that a compare-and-swap expects; none for an absent key.
	Expected *uint64 `json:"expected"`
	Call     int64   `json:"call"`
	// None where there was no answer.
	Return *int64 `json:"return"`
	// ok; absent: there was no such key; mismatch: it had another version, nothing was done; other: the
	// same, and which version it had was not told;
	// unknown: it may have been done, now or later; failed: it was not and never will be.
	Outcome string `json:"outcome"`
	// Of what was found or written; after a mismatch, the key's version, none where it was absent.
	Version *uint64 `json:"version"`
}

func (r record) open() bool { return r.Outcome == "unknown" }

// write is a record as the model's input; seen is the version under which a read found what a write
// without an answer wrote.
type write struct {
	record
	seen *uint64
}

// state is what a key holds. Where it was written without an answer, the version is only known to be
// above the one here.
type state struct {
	present bool
	exact   bool
	version uint64
	value   string
}

var register = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		return step(before.(state), input.(write))
	},
}

// has tells whether the key may have this version, none for absent, and what is known of it then.
func (s state) has(version *uint64) (bool, state) {
	if version == nil {
		return !s.present, s
	}
	if !s.present || *version < s.version || (*version == s.version) != s.exact {
		return false, s
	}
	s.exact, s.version = true, *version
	return true, s
}

func step(before state, by write) (bool, state) {
	switch by.Operation {
	case "get":
		if by.Outcome == "absent" {
			return !before.present, before
		}
		fits, after := before.has(by.Version)
		return fits && after.value == by.Value, after
	case "put":
		if by.Outcome == "absent" {
			return !before.present, before
		}
		return before.written(by)
	case "cas":
		fits, after := before.has(by.Expected)
		switch by.Outcome {
		case "mismatch":
			same := by.Expected != nil && by.Version != nil && *by.Expected == *by.Version
			neither := by.Expected == nil && by.Version == nil
			fits, after = before.has(by.Version)
			return fits && !same && !neither, after
		case "other":
			// Where the version is not known for sure, it may be any other one.
			return before.present && !(before.exact && fits), before
		case "absent":
			return !before.present, before
		case "ok":
			if !fits {
				return false, before
			}
			return after.written(by)
		}
		if fits {
			return after.written(by)
		}
		// It found another version and did nothing, unless a read says that it did.
		return by.seen == nil, before
	default:
		if by.open() {
			// Later versions are above the one that it took, and so above this one.
			return true, state{version: before.version}
		}
		if by.Outcome == "absent" {
			return !before.present, before
		}
		return before.present && *by.Version > before.version, state{version: *by.Version}
	}
}

// written is the state after a write, and whether its version may follow.
func (s state) written(by write) (bool, state) {
	version := by.seen
	if !by.open() {
		version = by.Version
	}
	if version == nil {
		return true, state{present: true, version: s.version, value: by.Value}
	}
	return *version > s.version, state{present: true, exact: true, version: *version, value: by.Value}
}

// operations is a key's history for porcupine. A write without an answer ends with the first read
// that found its value, where only it can have written that, and with the whole history otherwise.
func operations(records []record) []porcupine.Operation {
	writers := map[string]int{}
	found := map[string]record{}
	for _, r := range records {
		if r.Operation == "put" || r.Operation == "cas" {
			writers[r.Value]++
		}
		if r.Operation == "get" && r.Outcome == "ok" {
			if first, known := found[r.Value]; !known || *r.Return < *first.Return {
				found[r.Value] = r
			}
		}
	}
	list := make([]porcupine.Operation, 0, len(records))
	for _, r := range records {
		by, end := write{record: r}, int64(math.MaxInt64)
		if r.Return != nil && !r.open() {
			end = *r.Return
		}
		if r.open() && writers[r.Value] == 1 && r.Operation != "delete" {
			if first, read := found[r.Value]; read {
				// A read from before the call stays unexplained, as it must.
				by.seen, end = first.Version, max(*first.Return, r.Call)
			}
		}
		list = append(list, porcupine.Operation{Input: by, Call: r.Call, Return: end})
	}
	return list
}
