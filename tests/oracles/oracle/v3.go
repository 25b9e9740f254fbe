package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// v3 reads the first document of a text into untyped values, as kustomize does.
func v3(text string) (any, error) {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	return tagged(value)
}

// v3All reads every document of a stream, cut by the library's own decoder.
func v3All(text string) (any, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	values := []any{}
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err == nil {
			value, err = tagged(value)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(values), err)
		}
		values = append(values, value)
	}
}

// tagged writes a value of yaml.v3 as JSON that tells every two different values apart.
//
//	null, bool, integer, text, list     themselves; integers with every digit
//	map with texts for keys             an object
//	float                               {"!float": "1000"}, as %g writes it; "NaN", "+Inf", "-Inf"
//	time                                {"!time": "2001-12-14T00:00:00Z"}, RFC 3339 with nanoseconds
//	text that is not UTF-8              {"!bytes": "/w=="}, base64; only !!binary makes one
//	map with any other key, or a key    {"!map": [[key, value], …]}, key and value in this encoding, sorted by the
//	that begins with "!"                JSON text of the key
func tagged(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int, int64, uint64:
		return v, nil
	case float64:
		return map[string]any{"!float": strconv.FormatFloat(v, 'g', -1, 64)}, nil
	case time.Time:
		return map[string]any{"!time": v.Format(time.RFC3339Nano)}, nil
	case string:
		if !utf8.ValidString(v) {
			return map[string]any{"!bytes": base64.StdEncoding.EncodeToString([]byte(v))}, nil
		}
		return v, nil
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			var err error
			if items[i], err = tagged(item); err != nil {
				return nil, err
			}
		}
		return items, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			if strings.HasPrefix(key, "!") || !utf8.ValidString(key) {
				mixed := make(map[any]any, len(v))
				for key, item := range v {
					mixed[key] = item
				}
				return pairs(mixed)
			}
			var err error
			if object[key], err = tagged(item); err != nil {
				return nil, err
			}
		}
		return object, nil
	case map[any]any:
		return pairs(v)
	}
	return nil, fmt.Errorf("no encoding for a %T", value)
}

func pairs(mixed map[any]any) (any, error) {
	type pair struct {
		order string
		both  []any
	}
	sorted := make([]pair, 0, len(mixed))
	for key, item := range mixed {
		k, err := tagged(key)
		if err != nil {
			return nil, err
		}
		v, err := tagged(item)
		if err != nil {
			return nil, err
		}
		order, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		sorted = append(sorted, pair{string(order), []any{k, v}})
	}
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].order < sorted[j].order })
	both := make([][]any, len(sorted))
	for i, p := range sorted {
		both[i] = p.both
	}
	return map[string]any{"!map": both}, nil
}

// scalar says how both read a text where a value stands: {"plain": true, "sigs": ANSWER, "v3": ANSWER}. "plain" is
// whether the whole text is one plain scalar without tag or anchor there; if not ("a # b", "'a'", "{a: b}") the two
// answers are still what they read.
func scalar(text string) (any, error) {
	document := "v: " + text + "\n"
	return map[string]any{
		"plain": plain(document, text),
		"sigs":  reply(valueOf(sigs), document),
		"v3":    reply(valueOf(v3), document),
	}, nil
}

// plain asks the nodes of yaml.v3, for only they keep the style a scalar was written in.
func plain(document, text string) bool {
	var root yaml.Node
	if _, err := ask(func(string) (any, error) { return nil, yaml.Unmarshal([]byte(document), &root) }, ""); err != nil {
		return false
	}
	if len(root.Content) != 1 || len(root.Content[0].Content) != 2 {
		return false
	}
	value := root.Content[0].Content[1]
	return value.Kind == yaml.ScalarNode && value.Style == 0 && value.Anchor == "" && value.Value == text
}

// valueOf is a reader of what stands at "v". A text may end the map it was put in, and then has no value there.
func valueOf(read func(string) (any, error)) func(string) (any, error) {
	return func(document string) (any, error) {
		value, err := read(document)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(data, &object); err != nil {
			return nil, err
		}
		if len(object) != 1 || object["v"] == nil {
			return nil, errors.New("the text does not stay a value")
		}
		return object["v"], nil
	}
}
