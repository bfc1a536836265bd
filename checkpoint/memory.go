package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode makes a shard in memory, in a form that travels in one message: the
// entry of the manifest as a line of JSON, then the safetensors file.
func Encode(name string, pieces []Piece) ([]byte, error) {
	shard, tensors, err := layOut(name, pieces)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(shard)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	b := bytes.NewBuffer(append(line, '\n'))
	if err := WriteSafetensors(b, tensors, nil); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return b.Bytes(), nil
}

// InMemory makes a Checkpoint of what Encode made on several ranks.
func InMemory(encoded ...[]byte) (*Checkpoint, error) {
	c := &Checkpoint{memory: make(map[string][]byte, len(encoded))}
	for _, b := range encoded {
		line, file, ok := bytes.Cut(b, []byte("\n"))
		var s Shard
		if !ok {
			return nil, fmt.Errorf("checkpoint: %w: no entry before the shard", ErrCorrupt)
		}
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("checkpoint: %w: %w", ErrCorrupt, err)
		}
		if c.memory[s.File] != nil {
			return nil, fmt.Errorf("checkpoint: two shards are called %q", s.File)
		}
		c.memory[s.File] = file
		c.Manifest.Shards = append(c.Manifest.Shards, s)
	}
	return c, nil
}
