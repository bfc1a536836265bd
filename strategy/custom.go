package strategy

// Custom is a strategy of somebody else's. It may take a plan of ours and
// change it, or write all tasks itself; package check proves it all the same.
type Custom struct {
	// Name is the kind that jobs give, none of Names.
	Name string
	Func Strategy
}
