// Package job reads job files: what to train, on which data, in which way.
//
// A job is YAML, read strictly: an unknown field is refused with its line and
// the nearest right spelling. Every field has a default that is the same
// whatever the machine; Validate says what does not fit together. Values of
// --set path.to.field=value are laid over the file.
package job

import (
	"time"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
)

// Job is one training run.
type Job struct {
	// Name appears in progress lines and the report; default: the file's name.
	Name string `yaml:"name"`
	// Seed decides initial values and the order of the rows.
	Seed  uint64 `yaml:"seed"`
	Model Model  `yaml:"model"`
	Data  Data   `yaml:"data"`
	// Batch is the global batch: examples a step over all workers.
	Batch int `yaml:"batch"`
	// MicroBatches is into how many parts each worker cuts its part of a step: it
	// computes one after the other, with the memory of one, and adds the gradients up.
	MicroBatches int `yaml:"micro_batches"`
	// Reproducible makes parameters, losses and metrics the same to the bit on any number of
	// workers: the batch of a step is cut into Slices, each computed by itself, which
	// are summed in one order (serial and allreduce).
	Reproducible bool `yaml:"reproducible"`
	Slices       int  `yaml:"slices"`
	// Epochs is how often the training rows are passed over.
	Epochs int `yaml:"epochs"`
	// Steps ends the run after that many steps, if that is earlier; 0: never.
	Steps int64 `yaml:"steps"`
	// Optimizer is the update rule. A cosine schedule without steps of its own
	// takes Steps.
	Optimizer optim.Rule `yaml:"optimizer"`
	// Precision is the type of parameters and gradients, f32 or f64; or that of values and
	// gradients, bf16 or f16, beside parameters in f32.
	Precision string `yaml:"precision"`
	// Backend computes: native, or ref (the slow, obvious one).
	Backend string `yaml:"backend"`
	// Threads is how many cores a worker computes with (native); 0: those of
	// its machine, shared evenly among the workers there. It changes no result.
	Threads    int        `yaml:"threads"`
	Strategy   Strategy   `yaml:"strategy"`
	Import     Import     `yaml:"import"`
	Eval       Eval       `yaml:"eval"`
	Checkpoint Checkpoint `yaml:"checkpoint"`
	Restart    Restart    `yaml:"restart"`
	Network    Network    `yaml:"network"`
	// Extensions is what the program adds to what ships; no part of the file.
	Extensions Extensions `yaml:"-"`
}

// Model names a model that gangline ships and its sizes.
type Model struct {
	// Kind is logistic, softmax, linear, mlp, cnn, fm, ctr, deepfm, dlrm or gpt.
	Kind string `yaml:"kind"`
	// Hidden are the widths of the hidden layers (mlp, cnn, ctr, deepfm, and of
	// the top network of dlrm).
	Hidden []int `yaml:"hidden"`
	// Activation is the function between layers (mlp): relu, leaky_relu, tanh,
	// sigmoid, gelu or silu; empty: relu. Slope is the factor that leaky_relu
	// multiplies negative numbers with.
	Activation string  `yaml:"activation,omitempty"`
	Slope      float64 `yaml:"slope,omitempty"`
	// Bias says whether layers have biases (mlp).
	Bias bool `yaml:"bias"`
	// Bottom are the widths of the hidden layers of the network for dense columns
	// (dlrm).
	Bottom []int `yaml:"bottom,omitempty"`
	// Filters are the channels of the convolutions (cnn).
	Filters []int `yaml:"filters,omitempty"`
	// Image is [channels, height, width] of a row (cnn); without, a gray square.
	Image []int `yaml:"image,omitempty"`
	// Layers and Heads are the number of blocks and of heads of attention (gpt).
	Layers int `yaml:"layers,omitempty"`
	Heads  int `yaml:"heads,omitempty"`
	// Dropout is the share of activations that training leaves out (gpt).
	Dropout float64 `yaml:"dropout,omitempty"`
	// Classes is the number of classes (softmax, mlp, cnn).
	Classes int `yaml:"classes"`
	// Dim is the length of an embedding row (fm, ctr, deepfm, dlrm), or the width
	// of every layer (gpt).
	Dim int `yaml:"dim"`
	// Table keeps the weights of ragged inputs as a table, of which a step moves
	// only the touched rows (logistic, softmax, linear).
	Table bool `yaml:"table"`
}

// Source is one set of rows.
type Source struct {
	// Format is libsvm, criteo, idx, text or generated, or one of named columns,
	// of which Data.Features are made: csv, vw, libffm, npy, npz, parquet.
	Format string `yaml:"format"`
	// Path is the file, a pattern of files, or a list of them, relative to the data
	// directory, or URLs; gzip, bzip2 and zstd are undone in place.
	Path Files `yaml:"path"`
	// Labels is the file of the labels (idx).
	Labels string `yaml:"labels"`
	// Features is the number of features (libsvm); 0: as many as the file has.
	Features int `yaml:"features"`
	// LabelBase is what the first class is called in the file (libsvm, several
	// classes); 0 or 1.
	LabelBase int `yaml:"label_base"`
	// ZeroBased says that the file counts features from 0 instead of 1 (libsvm).
	ZeroBased bool `yaml:"zero_based"`
	// Buckets is the size of the id space that categories are hashed into
	// (criteo, generated).
	Buckets int `yaml:"buckets"`
	// Context is the bytes of a row (text), Stride those from the start of one row
	// to that of the next; 0: Context.
	Context int `yaml:"context,omitempty"`
	Stride  int `yaml:"stride,omitempty"`
	// From and To are the shares of the file between which rows are cut (text),
	// 0.9 for example; To 0: the end.
	From float64 `yaml:"from,omitempty"`
	To   float64 `yaml:"to,omitempty"`
	// First and Rows choose a range of the generated rows; Rows limits files too (0: all).
	First int `yaml:"first"`
	Rows  int `yaml:"rows"`
	// Seed plants the weights (generated).
	Seed uint64 `yaml:"seed"`
	// Header says that the first line names the columns (csv).
	Header bool `yaml:"header,omitempty"`
	// Columns names the columns of a file without a header, or in its place (csv).
	Columns []string `yaml:"columns,omitempty"`
	// Types says what columns hold: number, integer or text (csv); those not named
	// are inferred from the first rows.
	Types map[string]table.Kind `yaml:"types,omitempty"`
	// Missing are the words that stand for no value (tables); without, the empty
	// one, ?, NA, NaN and null.
	Missing []string `yaml:"missing,omitempty"`
	// Suffix is cut off the end of the values of a column (tables).
	Suffix map[string]string `yaml:"suffix,omitempty"`
	// Delimiter parts the columns (csv): a character, or tab; without, it is found
	// out.
	Delimiter string `yaml:"delimiter,omitempty"`
	// NoQuotes makes quotes ordinary characters (csv).
	NoQuotes bool `yaml:"no_quotes,omitempty"`
	// Encoding is utf-8 or latin1 (csv, vw, libffm).
	Encoding string `yaml:"encoding,omitempty"`
	// Namespaces get a column each (vw, libffm); without, all features are in x.
	Namespaces []string `yaml:"namespaces,omitempty"`
	// NumericIDs takes the names of features as their ids (vw).
	NumericIDs bool `yaml:"numeric_ids,omitempty"`
	// Unlabelled says that rows need no label (tables); no part of the file.
	Unlabelled bool `yaml:"-"`
	// MaxBadRows is how many malformed rows are counted and skipped before one
	// is an error; below 1, the share of all rows.
	MaxBadRows float64 `yaml:"max_bad_rows"`
	// Split says which part of the rows is meant, and Negatives keeps a sample of
	// those with label 0.
	Split     Split     `yaml:"split,omitempty"`
	Negatives Negatives `yaml:"negatives,omitempty"`
}

// Strategy says how the step is spread over processes.
type Strategy struct {
	// Kind is serial, allreduce, zero, ps, localsgd or sma.
	Kind string `yaml:"kind"`
	// Workers and Servers count processes; defaults 1/0 (serial), 2/1 (ps), else 2/0.
	Workers int `yaml:"workers"`
	Servers int `yaml:"servers"`
	// Bucket bounds the bytes of gradients that are summed together (allreduce, zero); 0:
	// each by itself.
	Bucket Size `yaml:"bucket"`
	// Compression makes the gradients smaller that workers sum (allreduce).
	Compression Compression `yaml:"compression"`
	// Algorithm is how they are summed (allreduce): one of Algorithms.
	Algorithm string `yaml:"algorithm"`
	// Every is the steps between two averagings (localsgd, 0: 8) or corrections (sma,
	// 0: 1), Alpha how far a copy is drawn towards the average (sma, 0: 0.1), Slots
	// what becomes of slots at an averaging (localsgd; empty: keep).
	Every int            `yaml:"every"`
	Alpha float64        `yaml:"alpha"`
	Slots strategy.Slots `yaml:"slots"`
	Outer Outer          `yaml:"outer"`
	// Stage says what zero cuts in shards: 1 the slots, 2 also gradients, 3 also
	// parameters.
	Stage int `yaml:"stage"`
	// Consistency is how far workers may drift apart (ps).
	Consistency Consistency `yaml:"consistency"`
}

// Consistency is the contract of reads and updates on servers.
type Consistency struct {
	// Kind is bsp: every worker in every step, none reads an old version.
	Kind string `yaml:"kind"`
}

// Import says which parameters of somebody else the run begins with.
type Import struct {
	// Path is a safetensors file, relative to the data directory; empty: none.
	Path string `yaml:"path"`
	// Map says which tensor of the file a parameter is; without an entry, the one
	// of its name.
	Map checkpoint.Mapping `yaml:"map"`
	// Unused allows tensors of the file that no parameter is.
	Unused bool `yaml:"unused"`
}

// Eval says when the model is tested.
type Eval struct {
	// Every is the steps between tests; 0: at the end only.
	Every int64 `yaml:"every"`
	// Batch is the rows a step of an evaluation over all workers; 0: as training.
	Batch int `yaml:"batch"`
	// Threshold is the probability above which a row counts as predicted, for
	// precision, recall and F1 (two classes).
	Threshold float64 `yaml:"threshold"`
	// Group is the column whose equal values make a group, for the AUC within
	// groups: name, or name.i for the number or entry i of it.
	Group string `yaml:"group"`
	// Metric is what early stopping and the best checkpoint go by: one of
	// metric.Names; empty: what progress lines show.
	Metric string `yaml:"metric"`
	// Patience ends the run when so many tests in a row were not better than the
	// best by more than MinDelta; 0: never.
	Patience int     `yaml:"patience"`
	MinDelta float64 `yaml:"min_delta"`
}

// Checkpoint says where and how often state is saved.
type Checkpoint struct {
	// Dir holds the checkpoints, relative to the working directory; empty: none.
	Dir string `yaml:"dir"`
	// Every is the steps between checkpoints; 0: at the end only.
	Every int64 `yaml:"every"`
	// Keep is how many are kept.
	Keep int `yaml:"keep"`
	// Best keeps the checkpoint of the best test, too, in a directory best.
	Best bool `yaml:"best"`
	// Resume goes on from the newest checkpoint in Dir, if there is one.
	// Without it, a Dir that already holds checkpoints is refused.
	Resume bool `yaml:"resume"`
}

// Restart says what the launcher does when a rank dies.
type Restart struct {
	// Max is how often the whole group is started again.
	Max int `yaml:"max"`
	// From is what a restart begins from: latest, the newest whole checkpoint.
	From string `yaml:"from"`
}

// Network says how ranks talk.
type Network struct {
	// Kind is unix (ranks on one host) or tcp.
	Kind string `yaml:"kind"`
	// Path is how the collectives of two ranks cross: one of NetworkPaths.
	Path string `yaml:"path"`
	// Checksum protects payloads as well as headers.
	Checksum bool `yaml:"checksum"`
	// JoinTimeout bounds the wait for all ranks at the start.
	JoinTimeout Duration `yaml:"join_timeout"`
	// TaskTimeout bounds any one task of a plan, waits included.
	TaskTimeout Duration `yaml:"task_timeout"`
	// Hosts is how many workers are on each machine, in the order of ranks; empty:
	// all are on one. Only the choice of algorithms goes by it.
	Hosts []int `yaml:"hosts"`
	// Costs is a file of measured costs of messages, relative to the data directory
	// (see package collective/cost); empty: defaults.
	Costs string `yaml:"costs"`
	// Table is what that file says; no part of the job's file.
	Table cost.Table `yaml:"-"`
}

// AlgorithmAuto has each all-reduce go by the algorithm that takes least by costs.
const AlgorithmAuto = "auto"

// Algorithms returns what strategy.algorithm can be.
func Algorithms() []string {
	all := []string{AlgorithmAuto}
	for _, a := range plan.Algorithms() {
		all = append(all, a.String())
	}
	return all
}

// How the collectives of two ranks cross.
const (
	// PathAuto is shared memory on one host where the system has it, else what network.kind says.
	PathAuto = "auto"
	// PathShm is shared memory of one host (Linux).
	PathShm = "shm"
	// PathUnix is a unix socket of one host.
	PathUnix = "unix"
	// PathTCP is a tcp socket.
	PathTCP = "tcp"
	// PathMessages are messages of the connection that all else crosses, too.
	PathMessages = "messages"
)

// NetworkPaths returns what network.path can be.
func NetworkPaths() []string { return []string{PathAuto, PathShm, PathUnix, PathTCP, PathMessages} }

// Duration is a time.Duration written as 30s or 2m in a job.
type Duration time.Duration

// UnmarshalText reads 30s, 2m, 500ms.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Default returns the values of all fields that a job leaves out.
func Default() Job {
	return Job{
		Seed:  1,
		Batch: 256,

		MicroBatches: 1,
		Slices:       strategy.SlicesDefault,

		Epochs:    1,
		Model:     Model{Bias: true},
		Optimizer: optim.Rule{},
		Precision: "f32",
		Data:      Data{Memory: 2e9},
		Backend:   "native",
		Strategy: Strategy{
			Kind: "serial", Stage: 1, Bucket: strategy.BucketDefault, Algorithm: AlgorithmAuto,
			Compression: Compression{Kind: CompressNone, Feedback: FeedbackAuto, Min: compressMin}, Consistency: Consistency{Kind: "bsp"},
		},
		Eval: Eval{Threshold: .5},
		Checkpoint: Checkpoint{
			Keep: 2,
		},
		Restart: Restart{From: "latest"},
		Network: Network{
			Kind:        defaultNetwork,
			Path:        PathAuto,
			JoinTimeout: Duration(60 * time.Second),
			TaskTimeout: Duration(120 * time.Second),
		},
	}
}
