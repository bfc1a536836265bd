package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// remote is a bucket of an object store.
type remote struct {
	bucket *blob.Bucket
	kept   bool // the caller of WithBucket closes it
	url    string
	query  string
	limits limits
}

// limits bound what a request to a store may take.
type limits struct {
	timeout  time.Duration // of one attempt
	attempts int
	pause    time.Duration // before the second attempt, doubled before each more
	block    int64         // bytes of a request
	blocks   int           // kept of an open file
}

func usualLimits() limits {
	return limits{timeout: time.Minute, attempts: 5, pause: 200 * time.Millisecond, block: 4 << 20, blocks: 4}
}

// Close implements store.
func (r remote) Close() error {
	if r.kept {
		return nil
	}
	return r.bucket.Close()
}

// location implements store.
func (r remote) location(key string) string {
	if r.query != "" {
		return r.url + "/" + key + "?" + r.query
	}
	return r.url + "/" + key
}

// try makes a request until it succeeds, fails for good or was made often
// enough.
func (r remote) try(ctx context.Context, what string, request func(context.Context) error) error {
	pause := r.limits.pause
	for attempt := 1; ; attempt++ {
		err := r.once(ctx, request)
		if err == nil || ctx.Err() != nil || !passing(err) {
			return readable(err)
		}
		if attempt == r.limits.attempts {
			return fmt.Errorf("%s failed %d times; the last: %w", what, attempt, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// once makes a request under the deadline.
func (r remote) once(ctx context.Context, request func(context.Context) error) error {
	bounded, cancel := context.WithTimeoutCause(ctx, r.limits.timeout, fmt.Errorf("no answer within %v", r.limits.timeout))
	defer cancel()
	err := request(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return context.Cause(bounded)
	}
	return err
}

// passing reports whether a failure may be gone the next time.
func passing(err error) bool {
	if errors.Is(err, errChanged) {
		return false
	}
	switch gcerrors.Code(err) { //nolint:exhaustive // these are final whoever made them; all others may pass
	case gcerrors.NotFound, gcerrors.PermissionDenied, gcerrors.InvalidArgument, gcerrors.Unimplemented, gcerrors.FailedPrecondition:
		return false
	}
	return true
}

// readable says what the common failures mean.
func readable(err error) error {
	switch gcerrors.Code(err) { //nolint:exhaustive // the others speak for themselves
	case gcerrors.NotFound:
		return fmt.Errorf("%w: %w", ErrMissing, err)
	case gcerrors.PermissionDenied:
		return fmt.Errorf("access is denied: check the credentials and that they may list and read the bucket: %w", err)
	}
	return err
}

// stat implements store.
func (r remote) stat(ctx context.Context, key string) (Info, error) {
	a, err := r.attributes(ctx, key)
	if err != nil {
		return Info{}, err
	}
	version := "etag-" + a.ETag
	if a.ETag == "" {
		version = "mtime-" + a.ModTime.UTC().Format(time.RFC3339Nano)
	}
	return Info{Size: a.Size, Version: version}, nil
}

func (r remote) attributes(ctx context.Context, key string) (a *blob.Attributes, err error) {
	err = r.try(ctx, "asking for the size", func(ctx context.Context) error {
		a, err = r.bucket.Attributes(ctx, key)
		return err
	})
	return a, err
}

// list calls f for the objects with a prefix; below a delimiter ("" for none)
// they are left out. f returns false to stop.
func (r remote) list(ctx context.Context, prefix, delimiter string, f func(*blob.ListObject) bool) error {
	token := blob.FirstPageToken
	for len(token) > 0 {
		var page []*blob.ListObject
		var next []byte
		err := r.try(ctx, "listing", func(ctx context.Context) (err error) {
			page, next, err = r.bucket.ListPage(ctx, token, listMax, &blob.ListOptions{Prefix: prefix, Delimiter: delimiter})
			return err
		})
		if err != nil {
			return err
		}
		for _, o := range page {
			if !f(o) {
				return nil
			}
		}
		token = next
	}
	return nil
}

// match implements store. The store lists keys in the order of their bytes.
func (r remote) match(ctx context.Context, pattern string) ([]string, error) {
	prefix := pattern[:strings.IndexAny(pattern, "*?[")]
	delimiter := ""
	if !strings.Contains(pattern[len(prefix):], "/") {
		delimiter = "/"
	}
	var found []string
	seen := 0
	err := r.list(ctx, prefix, delimiter, func(o *blob.ListObject) bool {
		if seen++; !o.IsDir && !strings.HasSuffix(o.Key, "/") && matches(pattern, o.Key) {
			found = append(found, o.Key)
		}
		return seen < keysMax
	})
	if err == nil && seen >= keysMax {
		err = fmt.Errorf("more than %d keys begin with %q: write more before the first * of the glob", keysMax, prefix)
	}
	return found, err
}

// keysMax is the number of keys that are listed for one glob.
const keysMax = 1_000_000

// beside implements store.
func (r remote) beside(ctx context.Context, key string) ([]string, error) {
	prefix := ""
	if dir := path.Dir(key); dir != "." {
		prefix = dir + "/"
	}
	if i := strings.IndexAny(prefix, "*?["); i >= 0 {
		prefix = prefix[:i]
	}
	var found []string
	err := r.list(ctx, prefix, "/", func(o *blob.ListObject) bool {
		if !o.IsDir {
			found = append(found, o.Key)
		}
		return len(found) < listMax
	})
	return found, err
}

// errChanged says that an object was replaced under its reader.
var errChanged = errors.New("it was changed while it was read: read it again from the beginning")

// open implements store.
func (r remote) open(ctx context.Context, key string) (Random, error) {
	a, err := r.attributes(ctx, key)
	if err != nil {
		return nil, err
	}
	fetch := func(offset, n int64) (block []byte, err error) {
		err = r.try(ctx, fmt.Sprintf("reading at byte %d", offset), func(ctx context.Context) error {
			block, err = r.fetch(ctx, key, a, offset, n)
			return err
		})
		return block, err
	}
	return &object{size: a.Size, fetch: fetch, limits: r.limits, blocks: map[int64][]byte{}}, nil
}

// fetch reads n bytes at an offset, all of them or none.
func (r remote) fetch(ctx context.Context, key string, a *blob.Attributes, offset, n int64) ([]byte, error) {
	body, err := r.bucket.NewRangeReader(ctx, key, offset, n, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if body.Size() != a.Size || !body.ModTime().Truncate(time.Second).Equal(a.ModTime.Truncate(time.Second)) {
		return nil, errChanged
	}
	block := make([]byte, n)
	if _, err := io.ReadFull(body, block); err != nil {
		return nil, err
	}
	return block, nil
}

// object is an open object. It keeps the blocks it used last.
type object struct {
	size   int64
	fetch  func(offset, n int64) ([]byte, error)
	limits limits
	mu     sync.Mutex
	blocks map[int64][]byte
	order  []int64 // of the blocks, oldest first
}

func (o *object) Size() int64 { return o.size }

func (o *object) Close() error { return nil }

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, fmt.Errorf("a read at byte %d", offset)
	}
	for n < len(p) {
		if offset >= o.size {
			return n, io.EOF
		}
		block, err := o.at(offset / o.limits.block)
		if err != nil {
			return n, err
		}
		k := copy(p[n:], block[offset%o.limits.block:])
		n += k
		offset += int64(k)
	}
	return n, nil
}

// at returns a block, from memory if it is there.
func (o *object) at(index int64) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if block, ok := o.blocks[index]; ok {
		return block, nil
	}
	start := index * o.limits.block
	block, err := o.fetch(start, min(o.limits.block, o.size-start))
	if err != nil {
		return nil, err
	}
	if len(o.order) == o.limits.blocks {
		delete(o.blocks, o.order[0])
		o.order = o.order[1:]
	}
	o.blocks[index] = block
	o.order = append(o.order, index)
	return block, nil
}
