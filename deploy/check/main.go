// Command check reads Kubernetes manifests strictly: every document must be of a type of the API, with its fields alone.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	snapshot "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, batch.AddToScheme, snapshot.AddToScheme} {
		if err := add(scheme); err != nil {
			fail(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, path := range os.Args[1:] {
		count, err := check(path, decoder)
		if err == nil && count == 0 {
			err = errors.New("no document")
		}
		if err != nil {
			fail(fmt.Errorf("%s: %w", path, err))
		}
		fmt.Printf("%s: %d documents\n", path, count)
	}
}

func check(path string, decoder runtime.Decoder) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for count := 0; ; count++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		if _, _, err := decoder.Decode(document, nil, nil); err != nil {
			return count, fmt.Errorf("document %d: %w", count+1, err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
