package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Query is one statement of a dialect.
type Query struct {
	Name string
	SQL  string // with the driver's placeholders
	// Order tells, for each placeholder, which argument it stands for; nil where they have the arguments' numbers.
	Order []int

	params []string // the arguments' names, in the order in which they are passed
}

// Placeholders is how a driver writes arguments in a statement.
type Placeholders string

// The ways. Numbered ones let a statement use an argument twice.
const (
	QuestionNumbers Placeholders = "?n" // ?1, ?2: SQLite
	DollarNumbers   Placeholders = "$n" // $1, $2: PostgreSQL
	Questions       Placeholders = "?"  // in the order in which they stand: MySQL
)

// placeholder returns the text for the argument with the number, from zero on.
func (p Placeholders) placeholder(argument int) string {
	if p == Questions {
		return "?"
	}
	return string(p[:1]) + strconv.Itoa(argument+1)
}

// The grammar of a file of queries:
//
//	-- fragment: columns
//	queue, id
//
//	-- name: find(queue, id)
//	SELECT {columns} FROM messages WHERE queue = :queue AND id = :id
//
// A heading begins a fragment or a query, which goes on to the next heading; other comments are left out. {columns} is
// replaced by the fragment, which may use earlier ones. The heading of a query names its arguments in the order in
// which the program passes them; `record` stands for those of a whole record. A query with {asc} in it is two, name_asc
// and name_desc: {asc} becomes ASC or DESC, {>=} and {<=} the comparisons that mean "not before" and "not beyond" there.
var (
	heading   = regexp.MustCompile(`^-- (fragment|name): ([a-z_]+)(?:\(([a-z_, ]*)\))?$`)
	reference = regexp.MustCompile(`\{[a-z_]+\}`)
	argument  = regexp.MustCompile(`::?[a-z_]+`) // two colons are a cast
)

// querySet is the queries of a dialect by their names.
type querySet map[string]*Query

// section is a fragment or a query as it stands in a file.
type section struct {
	kind, name string
	params     []string
	text       string
}

// loadQueries reads every .sql file, in the order of their names.
func loadQueries(files fs.FS, style Placeholders, given map[string]string) (querySet, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	set, fragments := querySet{}, map[string]string{}
	maps.Copy(fragments, given)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if err := set.add(string(text), style, fragments); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return set, nil
}

// add reads one file.
func (set querySet) add(text string, style Placeholders, fragments map[string]string) error {
	for _, s := range sections(text) {
		sql, err := expand(s.text, fragments)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if s.kind == "fragment" {
			fragments[s.name] = sql
			continue
		}
		for suffix, sql := range directions(sql) {
			q := &Query{Name: s.name + suffix, params: s.params}
			if q.SQL, err = q.number(sql, style); err != nil {
				return fmt.Errorf("%s: %w", q.Name, err)
			}
			if set[q.Name] != nil {
				return fmt.Errorf("query %s is there twice", q.Name)
			}
			set[q.Name] = q
		}
	}
	return nil
}

// sections splits a file at its headings.
func sections(text string) []*section {
	var out []*section
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if m := heading.FindStringSubmatch(line); m != nil {
			out = append(out, &section{kind: m[1], name: m[2], params: parseParams(m[3])})
		} else if len(out) > 0 && !strings.HasPrefix(strings.TrimSpace(line), "--") && line != "" {
			s := out[len(out)-1]
			s.text += strings.TrimSpace(line) + "\n"
		}
	}
	return out
}

func parseParams(list string) []string {
	var params []string
	for name := range strings.SplitSeq(list, ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case "record":
			params = append(params, recordColumns...)
		default:
			params = append(params, name)
		}
	}
	return params
}

// expand replaces references by fragments.
func expand(text string, fragments map[string]string) (string, error) {
	var missing error
	text = reference.ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[1 : len(ref)-1]
		if name == "asc" {
			return ref
		}
		fragment, ok := fragments[name]
		if !ok {
			missing = fmt.Errorf("there is no fragment %s", name)
		}
		return fragment
	})
	return strings.TrimSuffix(strings.TrimSpace(text), ";"), missing
}

// directions returns the query's text by the suffix of its name.
func directions(sql string) map[string]string {
	if !strings.Contains(sql, "{asc}") {
		return map[string]string{"": sql}
	}
	return map[string]string{
		"_asc":  strings.NewReplacer("{asc}", "ASC", "{>=}", ">=", "{<=}", "<=").Replace(sql),
		"_desc": strings.NewReplacer("{asc}", "DESC", "{>=}", "<=", "{<=}", ">=").Replace(sql),
	}
}

// number replaces the arguments' names by placeholders and notes the order of those without a number.
func (q *Query) number(sql string, style Placeholders) (string, error) {
	var unknown error
	used := map[string]bool{}
	sql = argument.ReplaceAllStringFunc(sql, func(name string) string {
		if strings.HasPrefix(name, "::") {
			return name
		}
		i := slices.Index(q.params, name[1:])
		if i < 0 {
			unknown = fmt.Errorf("the heading does not name the argument %s", name)
			return name
		}
		used[name[1:]] = true
		if style == QuestionNumbers {
			return style.placeholder(i)
		}
		at := slices.Index(q.Order, i)
		if at < 0 || style == Questions {
			at = len(q.Order)
			q.Order = append(q.Order, i)
		}
		return style.placeholder(at)
	})
	for _, name := range q.params {
		if unknown == nil && !used[name] && !slices.Contains(recordColumns, name) {
			unknown = fmt.Errorf("the argument %s of the heading is not used", name)
		}
	}
	return sql, unknown
}

// take returns the query of the name, which must have the arguments.
func (set querySet) take(name string, params []string) (*Query, error) {
	q := set[name]
	if q == nil {
		return nil, fmt.Errorf("there is no query %s", name)
	}
	if !slices.Equal(q.params, params) {
		return nil, fmt.Errorf("query %s has the arguments (%s), not (%s)", name, strings.Join(q.params, ", "), strings.Join(params, ", "))
	}
	return q, nil
}

// bind fills the program's table of queries and fails unless each is there and no other is.
func (set querySet) bind(table []binding) error {
	var errs []error
	bound := map[string]bool{}
	for _, b := range table {
		q, err := set.take(b.name, parseParams(b.params))
		errs = append(errs, err)
		*b.to, bound[b.name] = q, true
	}
	for name := range set {
		if !bound[name] {
			errs = append(errs, fmt.Errorf("nobody asks for the query %s", name))
		}
	}
	return errors.Join(errs...)
}

// binding is one query that the program needs: where it goes, its name and its arguments.
type binding struct {
	to     **Query
	name   string
	params string
}
