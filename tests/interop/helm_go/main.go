// Command manifests reads Kubernetes manifests from standard input and decodes each with the types of Kubernetes' and of
// the Prometheus operator's own sources, strictly: a field that the type does not have, or of another type, is an error.
// It prints each as a line of JSON.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	if err := monitoring.AddToScheme(scheme.Scheme); err != nil {
		fail(err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	for {
		document, err := documents.Read()
		if err == io.EOF {
			return
		}
		if err != nil {
			fail(err)
		}
		var fields map[string]any
		if err := yaml.Unmarshal(document, &fields); err != nil {
			fail(err)
		}
		if len(fields) == 0 {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			fail(fmt.Errorf("%w, in\n%s", err, document))
		}
		line, err := json.Marshal(object)
		if err != nil {
			fail(err)
		}
		fmt.Println(string(line))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
