//go:build unix && !linux

package chaos

// The ranks of TestCollectiveFaults look at themselves in /proc.
const rankSeed = "GANGLINE_CHAOS_RANK_SEED"

func rankMain() int { return 1 }
