// Porcupine on a queue history: `porcupine FILE SECONDS`.
// FILE has one operation a line: client, kind (enq or deq), value (-1: empty), call and return time.
// Prints one JSON object: verdict, seconds of the check alone, and the peak of the process in bytes.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

type input struct {
	enqueue bool
	value   int
}

// A queue is a persistent pair of lists, so that a step copies nothing.
type cell struct {
	value int
	next  *cell
}

type queue struct {
	front, back *cell
	length      int
}

func reversed(list *cell) *cell {
	var out *cell
	for ; list != nil; list = list.next {
		out = &cell{list.value, out}
	}
	return out
}

func step(state, in, out interface{}) (bool, interface{}) {
	q, op, got := state.(queue), in.(input), out.(int)
	if op.enqueue {
		return true, queue{q.front, &cell{op.value, q.back}, q.length + 1}
	}
	if q.front == nil {
		q.front, q.back = reversed(q.back), nil
	}
	if q.front == nil {
		return got == -1, q
	}
	return got == q.front.value, queue{q.front.next, q.back, q.length - 1}
}

func same(a, b interface{}) bool {
	p, q := a.(queue), b.(queue)
	if p.length != q.length {
		return false
	}
	x, y := p.front, q.front
	xs, ys := p.back, q.back
	for n := 0; n < p.length; n++ {
		if x == nil {
			x, xs = reversed(xs), nil
		}
		if y == nil {
			y, ys = reversed(ys), nil
		}
		if x.value != y.value {
			return false
		}
		x, y = x.next, y.next
	}
	return true
}

// peak is the most memory that this process has had, in bytes; 0 where the system does not tell.
func peak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmHWM:") {
			var kib int64
			fmt.Sscan(strings.TrimPrefix(line, "VmHWM:"), &kib)
			return kib * 1024
		}
	}
	return 0
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: porcupine FILE SECONDS")
		os.Exit(2)
	}
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer file.Close()
	var history []porcupine.Operation
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var client, value int
		var call, back int64
		var kind string
		if _, err := fmt.Sscan(lines.Text(), &client, &kind, &value, &call, &back); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		in, out := input{kind == "enq", value}, value
		history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
	}
	model := porcupine.Model{
		Init:  func() interface{} { return queue{} },
		Step:  step,
		Equal: same,
	}
	begun := time.Now()
	verdict := porcupine.CheckOperationsTimeout(model, history, time.Duration(seconds*float64(time.Second)))
	took := time.Since(begun).Seconds()
	fmt.Printf("{\"verdict\": %q, \"seconds\": %f, \"memory\": %d}\n", string(verdict), took, peak())
}
