// Starts nsqd in this process: nsqd TCP_PORT HTTP_PORT FOLDER
package main

import (
	"log"
	"os"

	"github.com/nsqio/nsq/nsqd"
)

func main() {
	options := nsqd.NewOptions()
	options.TCPAddress = "127.0.0.1:" + os.Args[1]
	options.HTTPAddress = "127.0.0.1:" + os.Args[2]
	options.DataPath = os.Args[3]
	daemon, err := nsqd.New(options)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(daemon.Main())
}
