// Command oracle says how the Go programs of a cluster read a text: Helm and kubectl through sigs.k8s.io/yaml,
// kustomize through go.yaml.in/yaml/v3, and durations through time.ParseDuration.
//
// It is a co-process: one JSON request a line on stdin, one JSON answer a line on stdout, in order, each flushed.
//
//	{"do": "sigs", "text": "a: 1e3"}   -> {"ok": {"a": 1000}}
//	{"do": "duration", "text": "30d"}  -> {"error": "time: unknown unit \"d\" in duration \"30d\""}
//
// A text is read whatever it is; only a line that is no request at all ends the program.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

type request struct {
	Do   string `json:"do"`
	Text string `json:"text"`
}

var readers = map[string]func(string) (any, error){
	"sigs":     sigs,
	"sigs-all": sigsAll,
	"v3":       v3,
	"v3-all":   v3All,
	"scalar":   scalar,
	"duration": duration,
}

// ask runs a reader; a panic inside it is an error of that reader and of nothing else.
func ask(read func(string) (any, error), text string) (value any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			value, err = nil, fmt.Errorf("panic: %v", cause)
		}
	}()
	return read(text)
}

// reply is what a reader says of a text: {"ok": VALUE} or {"error": MESSAGE}, never both. null is a value.
func reply(read func(string) (any, error), text string) json.RawMessage {
	value, err := ask(read, text)
	if err == nil {
		var data []byte
		if data, err = json.Marshal(value); err == nil {
			return append(append([]byte(`{"ok":`), data...), '}')
		}
	}
	message, _ := json.Marshal(err.Error()) // a string always has a JSON form
	return append(append([]byte(`{"error":`), message...), '}')
}

// duration keeps the count of nanoseconds a string: JSON numbers of many readers end at 2^53.
func duration(text string) (any, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, err
	}
	return map[string]string{"ns": strconv.FormatInt(int64(d), 10)}, nil
}

func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	answers := bufio.NewWriterSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			return fmt.Errorf("not a request: %w", err)
		}
		read, known := readers[asked.Do]
		if !known {
			return fmt.Errorf("no such reader: %q", asked.Do)
		}
		answers.Write(reply(read, asked.Text)) // an error of a Writer stays with it and comes out of Flush
		answers.WriteByte('\n')
		if err := answers.Flush(); err != nil {
			return err
		}
	}
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}
