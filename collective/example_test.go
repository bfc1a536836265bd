package collective_test

import (
	"fmt"

	"github.com/gangline/gangline/collective"
)

// A schedule is data: it can be proved, counted and printed before it runs.
func ExampleSchedule() {
	s := collective.RingAllReduce(3)
	fmt.Println("proved:", s.Check() == nil)
	sent, received := s.Traffic(0, 10, 4)
	fmt.Println("bytes:", sent, received)
	for _, st := range s.Ranks[0] {
		fmt.Println("send chunk", st.Send.Lo, "to", st.To, "and take chunk", st.Recv.Lo, "from", st.From, "sum:", st.Action == collective.Add)
	}
	// Output:
	// proved: true
	// bytes: 56 52
	// send chunk 2 to 1 and take chunk 1 from 2 sum: true
	// send chunk 1 to 1 and take chunk 0 from 2 sum: true
	// send chunk 0 to 1 and take chunk 2 from 2 sum: false
	// send chunk 2 to 1 and take chunk 1 from 2 sum: false
}
