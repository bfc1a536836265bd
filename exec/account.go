package exec

// Account says what became of the gradients of one parameter that this rank
// made: always Pushed = Applied + Dropped + Pending. One contribution is one
// gradient of one step (of one micro-batch, if there are several).
type Account struct {
	State   string `json:"state"`
	Pushed  int64  `json:"pushed"`
	Applied int64  `json:"applied"`
	// Dropped are those of steps that were skipped.
	Dropped int64 `json:"dropped"`
	// Pending are those of steps in flight, or lost with a run that failed.
	Pending int64 `json:"pending"`
}

// Accounts returns what became of the gradients made here so far, by parameter.
func (e *Exec) Accounts() []Account {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []Account
	for _, c := range e.books.Counts() {
		out = append(out, Account{c.State, c.Pushed, c.Applied, c.Dropped, c.Pushed - c.Applied - c.Dropped})
	}
	return out
}
