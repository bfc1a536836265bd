package graph

func formatNode(n *Node) string { return n.Name + " = " + describe(n.Op, n.In) + n.Shape.String() }
