// Package coordpb holds the generated messages between a coordinator and the
// members of a generation. Nothing but package coord uses it.
package coordpb

// Made with protoc 3.21.12, protoc-gen-go v1.36.12 and protoc-gen-go-grpc v1.6.2.
//
//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative coord.proto
