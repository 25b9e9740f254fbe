package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// sigs reads the first document of a text as Helm and kubectl do. The JSON is passed on as it is, so numbers keep
// every digit that YAMLToJSON gave them.
func sigs(text string) (any, error) {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	return json.RawMessage(data), nil
}

// sigsAll reads every document of a stream, cut as kubectl cuts it. Documents without content stay, as null.
func sigsAll(text string) (any, error) {
	documents, err := cut(text)
	if err != nil {
		return nil, err
	}
	values := []any{}
	for i, document := range documents {
		value, err := sigs(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		values = append(values, value)
	}
	return values, nil
}

// cut does what YAMLReader.Read of k8s.io/apimachinery/pkg/util/yaml does, oddities included: a line that begins with
// `---` cuts, unless nothing stands before it, and is an error when more than a comment follows; `...` does not
// cut; CRLF becomes LF; and the last line gets a line break if it had none.
func cut(text string) ([]string, error) {
	var documents []string
	var document strings.Builder
	for text != "" {
		line, rest, ended := strings.Cut(text, "\n")
		if ended {
			line = strings.TrimSuffix(line, "\r")
		}
		text = rest
		if after, marker := strings.CutPrefix(line, "---"); marker {
			if after = strings.TrimSpace(after); after != "" && after[0] != '#' {
				return nil, fmt.Errorf("invalid Yaml document separator: %s", after)
			}
			if document.Len() > 0 {
				documents = append(documents, document.String())
				document.Reset()
				continue
			}
		}
		document.WriteString(line)
		document.WriteByte('\n')
	}
	if document.Len() > 0 {
		documents = append(documents, document.String())
	}
	return documents, nil
}
