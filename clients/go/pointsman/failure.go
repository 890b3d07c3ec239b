// Package pointsman is a small client of the control plane, and an agent that works for it.
package pointsman

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Advice says what a caller should do about a refusal.
type Advice string

const (
	// Retry the same call with the same request_id.
	Retry Advice = "RETRY"
	// Resume the stream after the last seq.
	Resume Advice = "RESUME"
	// Look at the state again, then decide anew.
	Look Advice = "LOOK"
	// Drop the work: it is somebody else's now.
	Drop Advice = "DROP"
	// Fix the request: as it is, it can never succeed.
	Fix Advice = "FIX"
	// Stop: credentials, configuration or the server have to change.
	Stop Advice = "STOP"
)

var adviceByReason = map[string]Advice{
	"WATCHER_TOO_SLOW":    Resume,
	"LEASE_LOST":          Drop,
	"NOT_YOUR_DELEGATION": Drop,
	"OVERRIDE_REFUSED":    Fix,
	"NOT_ADDRESSED":       Fix,
	"UNKNOWN_VERSION":     Stop,
}

var adviceByCode = map[codes.Code]Advice{
	codes.Unavailable:        Retry,
	codes.ResourceExhausted:  Retry,
	codes.Aborted:            Retry,
	codes.DeadlineExceeded:   Retry,
	codes.FailedPrecondition: Look,
	codes.NotFound:           Look,
	codes.InvalidArgument:    Fix,
	codes.AlreadyExists:      Fix,
}

// Failure is a refused call, as common.proto describes it.
type Failure struct {
	Code       codes.Code
	Reason     string // the name of an ErrorReason without its prefix; empty when the call did not arrive
	Metadata   map[string]string
	Fields     []string
	RetryAfter time.Duration
	Message    string
}

// Error is for people; programs look at Reason.
func (f *Failure) Error() string { return f.Code.String() + " " + f.Reason + ": " + f.Message }

// Advice tells what to do; a reason that this client does not know is judged by its code.
func (f *Failure) Advice() Advice {
	if advice, known := adviceByReason[f.Reason]; known {
		return advice
	}
	if advice, known := adviceByCode[f.Code]; known {
		return advice
	}
	return Stop
}

// FailureOf reads the typed details of an error; nil for no error.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	state := status.Convert(err)
	failure := &Failure{Code: state.Code(), Message: state.Message()}
	for _, detail := range state.Details() {
		switch part := detail.(type) {
		case *errdetails.ErrorInfo:
			failure.Reason, failure.Metadata = part.GetReason(), part.GetMetadata()
		case *errdetails.BadRequest:
			for _, violation := range part.GetFieldViolations() {
				failure.Fields = append(failure.Fields, violation.GetField())
			}
		case *errdetails.RetryInfo:
			failure.RetryAfter = part.GetRetryDelay().AsDuration()
		}
	}
	return failure
}
