package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/eyas-edge/eyas/internal/claims"
	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/places"
	"github.com/eyas-edge/eyas/memplan"
)

// neighbours are the other plans on this machine: those of other processes of this user, and of other runtimes of this
// one. What they have planned and not taken yet is theirs. Its methods are for one goroutine at a time.
type neighbours struct {
	log      *slog.Logger
	set      *claims.Set // nil without a folder for claims
	others   []claims.Claim
	planning bool // others are as they are: none can plan meanwhile
}

// meet finds the place where plans are made known. models says what is planned for.
func (n *neighbours) meet(log *slog.Logger, models []*Model) {
	n.log = log
	dir, err := places.Here().Claims()
	if err != nil {
		n.part(err)
		return
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.key
	}
	n.set = claims.New(dir, strings.Join(names, ", "), func(text string) { log.Debug(text) })
}

// part goes on without the others: a folder that cannot be used must not keep a service from starting.
func (n *neighbours) part(err error) {
	n.log.Debug("other processes' plans are not known", "err", err)
	n.close()
	n.set, n.others = nil, nil
}

// memory returns the machine's memory, and that of control groups, without what the others have planned and not taken yet.
func (n *neighbours) memory() machine.Memory {
	if n.set != nil && !n.planning {
		var err error
		if n.others, err = n.set.Others(); err != nil {
			n.part(err)
		}
	}
	return machine.ReadMemoryBeside("/", func(group string) uint64 { return uint64(claims.Pending(n.others, group)) })
}

// claim calls fit while none of the others can plan, and makes known what its plan takes if that fits.
func (n *neighbours) claim(fit func() (*memplan.Plan, error)) (*memplan.Plan, error) {
	if n.set == nil {
		return fit()
	}
	var p *memplan.Plan
	var short error
	err := n.set.Claim(func(others []claims.Claim) (int64, error) {
		n.others, n.planning = others, true
		if p, short = fit(); short != nil {
			return 0, short
		}
		return p.Total(), nil
	})
	n.planning = false
	switch {
	case short != nil:
		return p, short
	case err != nil:
		n.part(err)
	}
	if p == nil { // it was not asked
		return fit()
	}
	return p, nil
}

// mostNamed bounds the neighbours that an error names.
const mostNamed = 3

// explain adds to a lack of memory who has planned it.
func (n *neighbours) explain(err error) error {
	var short *memplan.Shortage
	if !errors.As(err, &short) || short.Of != "this machine" || len(n.others) == 0 {
		return err
	}
	var list []string
	for i, c := range n.others {
		if i == mostNamed {
			list = append(list, fmt.Sprintf("and %d more", len(n.others)-mostNamed))
			break
		}
		list = append(list, fmt.Sprintf("process %d (%s) has planned %s of which %s are still to be taken",
			c.PID, c.Name, memplan.FormatBytes(c.Planned), memplan.FormatBytes(c.Pending)))
	}
	return fmt.Errorf("%w; %s", err, strings.Join(list, ", "))
}

// settled makes known that what was planned is taken.
func (n *neighbours) settled() {
	if n.set == nil {
		return
	}
	if err := n.set.Update(); err != nil {
		n.part(err)
	}
}

// close withdraws the plan.
func (n *neighbours) close() {
	if n.set == nil {
		return
	}
	if err := n.set.Close(); err != nil {
		n.log.Debug("the plan that others see is not withdrawn", "err", err)
	}
}
