// A queue that speaks seriatim-conform/2: a goroutine for each request.
// seriatim record --exec "go run spec/conform/clients.go" --patience 60 --out run.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
)

type request struct {
	Op      string `json:"op"`
	ID      int    `json:"id"`
	Ch      int    `json:"ch"`
	Q       string `json:"q"`
	M       string `json:"m"`
	Dtag    int    `json:"dtag"`
	Requeue *bool  `json:"requeue"`
}

type words = map[string]any

type entry struct {
	place       int
	q, m        string
	redelivered bool
}

var (
	can     = []string{"publish", "get", "ack", "nack", "open", "close", "drop", "redelivered", "queues"}
	lock    sync.Mutex // of the queue
	writing sync.Mutex // of the output: one line at a time
	queues  = map[string][]entry{}
	held    = map[int]map[int]entry{}
	tags    = map[int]int{}
	places  int
)

func say(id int, answer words) {
	if _, refused := answer["ok"]; !refused {
		answer["ok"] = true
	}
	answer["id"] = id
	line, _ := json.Marshal(answer)
	writing.Lock()
	defer writing.Unlock()
	fmt.Println(string(line))
}

// back puts an entry where it was, for places never change.
func back(e entry) {
	e.redelivered = true
	all := append(queues[e.q], e)
	sort.Slice(all, func(i, j int) bool { return all[i].place < all[j].place })
	queues[e.q] = all
}

// do is one request; it returns what the answer holds beside ok.
func do(r request) words {
	lock.Lock()
	defer lock.Unlock()
	switch r.Op {
	case "publish":
		places++
		queues[r.Q] = append(queues[r.Q], entry{places, r.Q, r.M, false})
	case "get":
		if len(queues[r.Q]) == 0 {
			return words{}
		}
		e := queues[r.Q][0]
		queues[r.Q] = queues[r.Q][1:]
		tags[r.Ch]++
		if held[r.Ch] == nil {
			held[r.Ch] = map[int]entry{}
		}
		held[r.Ch][tags[r.Ch]] = e
		return words{"m": e.m, "dtag": tags[r.Ch], "redelivered": e.redelivered}
	case "ack", "nack":
		e, known := held[r.Ch][r.Dtag]
		if !known {
			return words{"ok": false, "code": 406, "why": "unknown tag"}
		}
		delete(held[r.Ch], r.Dtag)
		if r.Op == "nack" && (r.Requeue == nil || *r.Requeue) {
			back(e)
		}
	case "close":
		for _, e := range held[r.Ch] {
			back(e)
		}
		delete(held, r.Ch)
	case "reset":
		queues, held, tags = map[string][]entry{}, map[int]map[int]entry{}, map[int]int{}
	case "open", "sync": // nothing to do here
	default:
		return words{"ok": false, "why": "cannot " + r.Op}
	}
	return words{}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		if r.Op == "hello" {
			say(r.ID, words{"protocol": "seriatim-conform/2", "name": "clients.go", "can": can})
			continue
		}
		go func() { say(r.ID, do(r)) }()
	}
}
