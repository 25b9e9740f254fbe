// Command filter is the peer of the speed tests: what a Go program does that decodes a stream of manifests with
// go.yaml.in/yaml/v3, adds one label to every InferenceService's engine, and encodes the stream again.
package main

import (
	"bufio"
	"errors"
	"io"
	"log"
	"os"

	"go.yaml.in/yaml/v3"
)

const podGroup = "scheduling.x-k8s.io/pod-group"

// child is the value of a mapping's key, nil if there is none.
func child(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func add(mapping *yaml.Node, key string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

func label(document *yaml.Node) {
	if len(document.Content) == 0 {
		return
	}
	root := document.Content[0]
	kind, engine := child(root, "kind"), child(child(root, "spec"), "engine")
	if kind == nil || kind.Value != "InferenceService" || engine == nil || engine.Kind != yaml.MappingNode {
		return
	}
	labels := child(engine, "labels")
	if labels == nil {
		labels = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		add(engine, "labels", labels)
	}
	if child(labels, podGroup) == nil {
		add(labels, podGroup, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "x"})
	}
}

func main() {
	log.SetFlags(0)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	decoder := yaml.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<16))
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		label(&document)
		if err := encoder.Encode(&document); err != nil {
			log.Fatal(err)
		}
	}
	if err := encoder.Close(); err != nil {
		log.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}
