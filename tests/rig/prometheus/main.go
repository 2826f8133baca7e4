// Command promcheck asks Prometheus' own code whether it understands us.
//
//	promcheck scrape URL     fetches a metrics page as a Prometheus server does and prints what it read: types and series
//	promcheck rules FILE...  validates files of rules and prints their alerts
//	promcheck queries        reads a JSON list of PromQL expressions from standard input and prints what each selects
//
// Everything is printed as JSON. The exit code is 1 when something could not be read.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
)

// accept is what a Prometheus 3 server says by default.
const accept = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6," +
	"application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4," +
	"text/plain;version=0.0.4;q=0.3,*/*;q=0.2"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "promcheck:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	out := json.NewEncoder(os.Stdout)
	switch {
	case len(args) == 2 && args[0] == "scrape":
		page, err := scrape(args[1])
		if err != nil {
			return err
		}
		return out.Encode(page)
	case len(args) > 1 && args[0] == "rules":
		alerts, err := rules(args[1:])
		if err != nil {
			return err
		}
		return out.Encode(alerts)
	case len(args) == 1 && args[0] == "queries":
		selections, err := queries(os.Stdin)
		if err != nil {
			return err
		}
		return out.Encode(selections)
	}
	return errors.New("usage: promcheck scrape URL | rules FILE... | queries")
}

type series struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Value  string            `json:"value"`
}

type page struct {
	Types  map[string]string `json:"types"`
	Series []series          `json:"series"`
}

func scrape(url string) (*page, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	client := http.Client{Timeout: 10 * time.Second}
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, reply.Status)
	}
	// A server that says no content type, or an unknown one, is refused as Prometheus refuses it.
	reader, err := textparse.New(body, reply.Header.Get("Content-Type"), labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return nil, err
	}
	read := &page{Types: map[string]string{}}
	seen := map[string]bool{}
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return nil, err
		}
		switch entry {
		case textparse.EntryType:
			name, kind := reader.Type()
			read.Types[string(name)] = string(kind)
		case textparse.EntrySeries:
			_, _, value := reader.Series()
			var found labels.Labels
			reader.Labels(&found)
			if key := found.String(); seen[key] {
				return nil, fmt.Errorf("series %s stands there twice", key)
			} else {
				seen[key] = true
			}
			one := series{Name: found.Get(model.MetricNameLabel), Labels: found.Map(), Value: fmt.Sprint(value)}
			delete(one.Labels, model.MetricNameLabel)
			read.Series = append(read.Series, one)
		}
	}
}

type alert struct {
	Name        string            `json:"name"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func rules(files []string) ([]alert, error) {
	var alerts []alert
	for _, file := range files {
		groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
		if len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				alerts = append(alerts, alert{rule.Alert, rule.Expr, rule.Labels, rule.Annotations})
			}
		}
	}
	return alerts, nil
}

type selection struct {
	Metric string   `json:"metric"`
	Labels []string `json:"labels"`
}

// queries lists, for each expression, its selectors with every label that it names for them: in braces, in by(), in
// on() and in group_left().
func queries(in io.Reader) ([][]selection, error) {
	var expressions []string
	if err := json.NewDecoder(in).Decode(&expressions); err != nil {
		return nil, err
	}
	all := make([][]selection, 0, len(expressions))
	for _, text := range expressions {
		expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		found := []selection{}
		parser.Inspect(expression, func(node parser.Node, path []parser.Node) error {
			if selector, is := node.(*parser.VectorSelector); is {
				found = append(found, selected(selector, path))
			}
			return nil
		})
		all = append(all, found)
	}
	return all, nil
}

func selected(selector *parser.VectorSelector, path []parser.Node) selection {
	names := []string{}
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != model.MetricNameLabel {
			names = append(names, matcher.Name)
		}
	}
	for _, node := range path {
		switch node := node.(type) {
		case *parser.AggregateExpr:
			names = append(names, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				names = append(names, node.VectorMatching.MatchingLabels...)
			}
		}
	}
	slices.Sort(names)
	return selection{selector.Name, slices.Compact(names)}
}
