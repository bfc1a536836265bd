package cloud_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	_ "github.com/gangline/gangline/data/file/cloud"

	"github.com/gangline/gangline/data/file"
)

// server runs an S3-compatible server on loopback whose first answers to reads
// of objects are failures, and returns the query that leads to it.
func server(t *testing.T, objects map[string][]byte, failures int64) (query string, requests *atomic.Int64) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("clicks"); err != nil {
		t.Fatal(err)
	}
	for key, content := range objects {
		if _, err := backend.PutObject("clicks", key, nil, bytes.NewReader(content), int64(len(content)), nil); err != nil {
			t.Fatal(err)
		}
	}
	s3 := gofakes3.New(backend).Server()
	requests = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Range") != "" && requests.Add(1) <= failures {
			http.Error(w, "slow down", http.StatusServiceUnavailable)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return "?endpoint=" + srv.URL + "&region=us-east-1&use_path_style=true", requests
}

// Lists, reads at any place, unpacks, and names what is missing, over HTTP.
func TestS3(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	text := strings.Repeat("1 2:3\n", 100_000)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16) // two requests
	query, requests := server(t, map[string][]byte{
		"day/2.gz": packed.Bytes(), "day/1.gz": packed.Bytes(), "day/.tmp": {1}, "day/sub/3.gz": {1}, "large": large,
	}, 1)
	found, err := file.Expand(t.Context(), "", []string{"s3://clicks/day/*" + query})
	want := []string{"s3://clicks/day/1.gz" + query, "s3://clicks/day/2.gz" + query}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	for location, want := range map[string]string{found[0]: text, "s3://clicks/large" + query: string(large)} {
		r, err := file.Open(t.Context(), location)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v; want %d", location, len(got), err, len(want))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := requests.Load(); n != 4 {
		t.Errorf("%d requests, want one that failed and three that did not", n)
	}
	info, err := file.Stat(t.Context(), found[0])
	if err != nil || info.Size != int64(packed.Len()) || !strings.HasPrefix(info.Version, "etag-") {
		t.Errorf("got %+v, %v", info, err)
	}
	_, err = file.Open(t.Context(), "s3://clicks/day/3.gz"+query)
	if err == nil || !strings.Contains(err.Error(), "there is no such file; near to it are 1.gz, 2.gz") {
		t.Errorf("got %v", err)
	}
}
