// One member of an etcd cluster, or the load on one: what `cargo xtask bench peers` starts beside Troth.
// Either ends with whoever started it: at the end of standard input, whose other end only that one holds.
package main

import (
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

const usage = "say `server` with etcd's own flags, or `load` with the servers' addresses"

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf(usage))
	}
	switch os.Args[1] {
	case "server":
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		// The release as it is: its own main function, with its own flags.
		etcdmain.Main(append([]string{"etcd"}, os.Args[2:]...))
	case "load":
		if err := load(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fail(err)
		}
	default:
		fail(fmt.Errorf(usage))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
