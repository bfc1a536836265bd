// Command gangline trains models on many processes.
//
//	gangline train [JOB.yaml]        train; without a job, a built-in one
//	gangline init FILE               write a job for a data file
//	gangline eval JOB.yaml           test a checkpoint
//	gangline predict JOB.yaml        write what a checkpoint says of every row
//	gangline export CHECKPOINT OUT   write its parameters as safetensors
//	gangline plan show|check JOB     print or prove the plan of a job
//	gangline data head|stats JOB     look at rows, count what is in them
//	gangline bench step              time training steps on one machine
//	gangline version
//
// Exit status: 0 done; 1 the run failed; 2 the request was wrong.
package main

import (
	"os"

	"github.com/gangline/gangline/cli"
)

func main() { os.Exit(cli.Main()) }
