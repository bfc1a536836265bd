package job

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/strategy"
)

// Extensions is what a program adds to the models, update rules and strategies
// that gangline ships. Jobs name them by kind as they name ours. Every rank must
// have the same: names and plans are compared before the first step, functions
// cannot be.
type Extensions struct {
	Models     []*model.Custom
	Rules      []*optim.Custom
	Strategies []*strategy.Custom
}

// Check reports extensions without a function, and names that are wrong, taken
// or there twice.
func (e Extensions) Check() error {
	word := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	var errs []error
	names := func(what string, ours, theirs []string) {
		for i, name := range theirs {
			switch {
			case !word.MatchString(name):
				errs = append(errs, fmt.Errorf("%s %q: want a name of letters, digits, _ and -", what, name))
			case slices.Contains(ours, name):
				errs = append(errs, fmt.Errorf("%s %q: gangline has one of that name", what, name))
			case slices.Contains(theirs[:i], name):
				errs = append(errs, fmt.Errorf("%s %q is there twice", what, name))
			}
		}
	}
	names("model", model.Kinds(), e.models())
	names("strategy", strategy.Names(), e.strategies())
	names("rule", nil, e.rules())
	for _, m := range e.Models {
		if m.Func == nil {
			errs = append(errs, fmt.Errorf("model %q has no function", m.Name))
		}
	}
	for _, s := range e.Strategies {
		if s.Func == nil {
			errs = append(errs, fmt.Errorf("strategy %q has no function", s.Name))
		}
	}
	for _, r := range e.Rules {
		errs = append(errs, r.Check())
	}
	return errors.Join(errs...)
}

func (e Extensions) models() (names []string) {
	for _, m := range e.Models {
		names = append(names, m.Name)
	}
	return names
}

func (e Extensions) rules() (names []string) {
	for _, r := range e.Rules {
		names = append(names, string(r.Name))
	}
	return names
}

func (e Extensions) strategies() (names []string) {
	for _, s := range e.Strategies {
		names = append(names, s.Name)
	}
	return names
}

// Model returns the model that the program added under that kind, or nil.
func (e Extensions) Model(kind string) *model.Custom {
	if i := slices.Index(e.models(), kind); i >= 0 {
		return e.Models[i]
	}
	return nil
}

// Rule returns the update rule that the program added under that kind, or nil.
func (e Extensions) Rule(kind optim.Kind) *optim.Custom {
	if i := slices.Index(e.rules(), string(kind)); i >= 0 {
		return e.Rules[i]
	}
	return nil
}

// Strategy returns the strategy of that kind, one of ours or one that the program
// added. An unknown kind is an error that gives the nearest of those there are.
func (e Extensions) Strategy(kind string) (strategy.Strategy, error) {
	if i := slices.Index(e.strategies(), kind); i >= 0 {
		return e.Strategies[i].Func, nil
	}
	if len(e.Strategies) == 0 || slices.Contains(strategy.Names(), kind) {
		return strategy.ByName(kind)
	}
	return nil, fmt.Errorf("strategy: unknown kind %q%s", kind, nearest.Hint(kind, e.allStrategies()))
}

// allStrategies names those that a job may ask for.
func (e Extensions) allStrategies() []string { return append(strategy.Names(), e.strategies()...) }

// Build makes the graph of the model that a job wants, one of ours or one that
// the program added.
func (e Extensions) Build(c model.Config) (*graph.Graph, graph.Model, error) {
	if m := e.Model(c.Kind); m != nil {
		return m.Build(c)
	}
	if known := append(model.Kinds(), e.models()...); !slices.Contains(known, c.Kind) {
		return nil, graph.Model{}, fmt.Errorf("model: kind: unknown %q%s", c.Kind, nearest.Hint(c.Kind, known))
	}
	return model.Build(c)
}
