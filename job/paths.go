package job

import (
	"reflect"

	"github.com/gangline/gangline/metric"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
)

// Paths returns the path of every field that a setting can name: data.train.path.
func Paths() []string {
	var all []string
	walkFields(reflect.TypeFor[Job](), "", func(path string, _ reflect.Kind) { all = append(all, path) })
	return all
}

// walkFields calls take with every field below a type that holds none itself.
func walkFields(t reflect.Type, path string, take func(path string, kind reflect.Kind)) {
	if t.Kind() != reflect.Struct {
		take(path, t.Kind())
		return
	}
	for f := range t.Fields() {
		if n := name(f); n != noTag && n != "" {
			walkFields(f.Type, join(path, n), take)
		}
	}
}

// Values returns what a field can be set to, if that is one of some words; nil if
// it is not.
func (e Extensions) Values(path string) []string {
	switch path {
	case "model.kind":
		return append(model.Kinds(), e.models()...)
	case "model.activation":
		return model.Activations()
	case "strategy.kind":
		return e.allStrategies()
	case "strategy.compression.kind":
		return CompressKinds()
	case "strategy.compression.feedback":
		return Feedbacks()
	case "strategy.slots":
		return []string{"average", "keep", "reset"}
	case "optimizer.kind":
		return append(optimizerKinds(), e.rules()...)
	case "data.train.format", "data.eval.format":
		return formats()
	case "eval.metric":
		return metric.Names()
	case "precision":
		return precisions()
	case "backend":
		return []string{"native", "ref"}
	case "strategy.algorithm":
		return Algorithms()
	case "network.kind":
		return []string{"unix", "tcp"}
	case "network.path":
		return NetworkPaths()
	}
	var words []string
	walkFields(reflect.TypeFor[Job](), "", func(p string, kind reflect.Kind) {
		if p == path && kind == reflect.Bool {
			words = []string{"true", "false"}
		}
	})
	return words
}

// optimizerKinds are the rules that gangline ships.
func optimizerKinds() []string {
	var names []string
	for _, k := range optim.Kinds() {
		names = append(names, string(k))
	}
	return names
}
