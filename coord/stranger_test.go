package coord

import (
	"testing"
	"testing/synctest"
	"time"
)

// Strangers who connect and say half a word, or nothing, do not hold up the end.
func TestCloseWithStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 1})
		for said := range 20 {
			conn, err := c.ln.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[:said]); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		begin := time.Now()
		c.close()
		if took := time.Since(begin); took > closeGrace+greetTime {
			t.Errorf("closing took %v with strangers at the door", took)
		}
	})
}
