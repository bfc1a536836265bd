package wire_test

import (
	"fmt"

	"github.com/gangline/gangline/wire"
)

func ExampleDecode() {
	var b [wire.HeaderSize]byte
	if err := (wire.Header{Kind: wire.Data, Generation: 3, Tag: 7, Length: 1024}).Encode(&b); err != nil {
		fmt.Println(err)
	}
	h, err := wire.Decode(&b)
	fmt.Println(h.Kind, h.Tag, h.Length, err)

	copy(b[:], "GET / HTTP/1.1\r\n")
	_, err = wire.Decode(&b)
	fmt.Println(err)
	// Output:
	// data 7 1024 <nil>
	// not a gangline peer: begins with "GET "
}
