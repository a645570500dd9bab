package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// category is a class as a dataset has it.
type category struct {
	id   int64
	name string
}

// mapping says which class of the model each category of the dataset is.
type mapping struct {
	classes []string      // names by class index
	of      map[int64]int // category ID -> class index
	skipped []string      // names of categories without a class
	byOrder bool          // there are labels and not one name in common
}

// mapClasses maps categories to a model's labels. Dataset IDs may be sparse (COCO's 80 lie in 1..90), so:
//
//   - without labels, classes are the categories in the order of their IDs;
//   - by name, upper and lower case alike; categories without a label are skipped;
//   - in the order of IDs if there are as many categories as labels and none that has a label by name contradicts
//     it: spellings differ between tools (tvmonitor, tv). byOrder says that nothing speaks for it either.
//
// It fails when two categories share an ID, and when not a single one finds a class.
func mapClasses(categories []category, labels []string) (mapping, error) {
	m := mapping{classes: labels, of: make(map[int64]int, len(categories))}
	categories = slices.Clone(categories)
	slices.SortFunc(categories, func(a, b category) int { return cmp.Compare(a.id, b.id) })
	byName := make(map[string]int, len(labels))
	for i, l := range labels {
		if key := fold(l); key != "" {
			if _, ok := byName[key]; !ok {
				byName[key] = i
			}
		}
	}
	met := 0 // categories that have a label by name
	inOrder := len(labels) == 0 || len(labels) == len(categories)
	for i, c := range categories {
		if i > 0 && categories[i-1].id == c.id {
			return m, fmt.Errorf("two categories have the ID %d", c.id)
		}
		if at, ok := byName[fold(c.name)]; ok {
			met++
			inOrder = inOrder && at == i
		}
	}
	if len(labels) == 0 {
		m.classes = make([]string, 0, len(categories))
		for _, c := range categories {
			m.classes = append(m.classes, c.name)
		}
	}
	for i, c := range categories {
		if inOrder {
			m.of[c.id] = i
		} else if at, ok := byName[fold(c.name)]; ok {
			m.of[c.id] = at
		} else {
			m.skipped = append(m.skipped, c.name)
		}
	}
	m.byOrder = inOrder && len(labels) > 0 && met == 0
	if len(m.of) == 0 {
		return m, fmt.Errorf("none of its %d classes (%s) is one of the model's %d (%s): give the model's names with --labels",
			len(categories), some(m.skipped), len(labels), some(labels))
	}
	return m, nil
}

func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// some lists the first few names.
func some(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%.40q, ...", names[:3])
	}
	return fmt.Sprintf("%.40q", names)
}
