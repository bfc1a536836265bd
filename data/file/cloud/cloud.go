// Package cloud teaches package file the object stores of Amazon, Google and
// Microsoft. Programs import it for its effect alone:
//
//	import _ "github.com/gangline/gangline/data/file/cloud"
//
// Libraries leave it out and stay small: the three clients are large. Locations
// are s3://bucket/key, gs://bucket/key and azblob://container/key. Credentials
// come from where each provider's own tools look for them; what differs from
// that stands in the query, for a server of one's own:
//
//	s3://clicks/day-*.csv.gz?endpoint=http://storage:9000&use_path_style=true&region=us-east-1
//
// The schemes and their parameters are those of gocloud.dev/blob.
package cloud

import (
	// Each registers its scheme.
	_ "gocloud.dev/blob/azureblob"
	_ "gocloud.dev/blob/gcsblob"
	_ "gocloud.dev/blob/s3blob"
)
