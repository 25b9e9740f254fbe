module postrender/oracles

go 1.22

// The versions kubectl 1.37.1 is linked with, so that what is asked here is what a cluster's tools read.
require (
	go.yaml.in/yaml/v3 v3.0.4
	sigs.k8s.io/yaml v1.6.0
)

// What sigs.k8s.io/yaml decodes with.
require go.yaml.in/yaml/v2 v2.4.4 // indirect
