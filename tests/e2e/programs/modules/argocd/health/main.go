// Argo CD's own machine for health checks: a line of JSON in, {"script": LUA, "object": OBJECT}; a line out, what it
// makes of the object, or {"error": WHY}.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/argoproj/argo-cd/v3/util/lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type question struct {
	Script string         `json:"script"`
	Object map[string]any `json:"object"`
}

func answer(line []byte) any {
	asked := question{}
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]string{"error": err.Error()}
	}
	status, err := lua.VM{}.ExecuteHealthLua(&unstructured.Unstructured{Object: asked.Object}, asked.Script)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return status
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := out.Encode(answer(lines.Bytes())); err != nil {
			os.Exit(1)
		}
	}
}
