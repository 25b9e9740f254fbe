// Command oracle says what OME 1.2.2 makes of one InferenceService and its runtime, with OME's own code: the objects
// that its controller would write to a cluster.
//
// It is a co-process: one JSON request a line on stdin, one JSON answer a line on stdout, in order, each flushed.
//
//	{"yaml": "kind: InferenceService\n..."} -> {"modes": {"engine": "MultiNode"}, "leaderWorkerSets": [{...}], ...}
//
// A panic of OME's code is an error in its answer; only a line that is no request at all ends the program.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"sigs.k8s.io/ome/pkg/apis/ome/v1beta1"
	"sigs.k8s.io/ome/pkg/constants"
)

type request struct {
	// YAML is a stream with exactly one InferenceService; of the other documents those of OME's kinds are read.
	YAML string `json:"yaml"`
	// Reconcile asks OME's whole controller, which wants a model: one that is named but not there is invented.
	// Otherwise OME's steps from the webhook to the objects are called one by one, and there need be no model.
	Reconcile bool `json:"reconcile"`
}

type answer struct {
	Runtime          string                                                 `json:"runtime,omitempty"` // Kind/name
	Modes            map[v1beta1.ComponentType]constants.DeploymentModeType `json:"modes"`
	LeaderWorkerSets []lws.LeaderWorkerSet                                  `json:"leaderWorkerSets"`
	Deployments      []appsv1.Deployment                                    `json:"deployments"`
	// UnknownFields are those that the types of 1.2.2 do not have; the API server prunes them.
	UnknownFields []string `json:"unknownFields"`
	// Errors has a message for each place that failed: a component, or input, webhook, model, runtime, merge, mode...
	Errors map[string]string `json:"errors"`
}

func (a *answer) fail(where string, err error) {
	a.Errors[where] = err.Error()
}

// guard makes an error of a panic, with the line of OME's that it comes from, as controller-runtime does.
func guard(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			where := ""
			for _, line := range strings.Split(string(debug.Stack()), "\n") {
				if i := strings.Index(line, "/ome@"); i >= 0 {
					where = " at " + strings.Fields(line[i+1:])[0]
					break
				}
			}
			err = fmt.Errorf("panic: %v%s", cause, where)
		}
	}()
	return f()
}

func reply(asked request) *answer {
	a := &answer{
		Modes:            map[v1beta1.ComponentType]constants.DeploymentModeType{},
		LeaderWorkerSets: []lws.LeaderWorkerSet{},
		Deployments:      []appsv1.Deployment{},
		UnknownFields:    []string{},
		Errors:           map[string]string{},
	}
	if err := guard(func() error { return ask(a, asked) }); err != nil {
		a.fail("input", err)
	}
	return a
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
		if err := json.NewEncoder(answers).Encode(reply(asked)); err != nil {
			return err
		}
		if err := answers.Flush(); err != nil {
			return err
		}
	}
}

func main() {
	ctrl.SetLogger(logr.Discard())
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ome-oracle:", err)
		os.Exit(1)
	}
}
