package pointsman

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	api "pointsman/clients/go/gen/pointsman/api/orchestrator/v1"
)

const (
	pollWait  = 10 * time.Second
	heartbeat = 10 * time.Second
)

// Work does what a lease asks for and says what came out.
type Work func(ctx context.Context, lease *api.Lease) (*api.Completion, error)

// Agent pulls assignments, keeps their leases alive while it works, and hands in.
type Agent struct {
	Client       *Client
	ID           string
	Capabilities []api.Capability
	Work         Work
	// HandedIn, when set, sees every outcome.
	HandedIn func(*api.Completion, *api.CompletionOutcome)
}

// Run works until the context ends, or until trying again can no longer help.
func (a *Agent) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		leases, err := a.poll(ctx)
		if err != nil {
			return err
		}
		for _, lease := range leases {
			if err := a.handle(ctx, lease); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (a *Agent) poll(ctx context.Context) ([]*api.Lease, error) {
	request := &api.PollRequest{
		RequestId: NewRequestID(),
		AgentId:   a.ID,
		Wanted:    &api.Wanted{Capabilities: a.Capabilities},
		Wait:      durationpb.New(pollWait),
	}
	answer, err := patiently(ctx, func(ctx context.Context) (*api.PollResponse, error) {
		return a.Client.Agents.Poll(a.Client.In(ctx), request)
	})
	return answer.GetLeases(), err
}

func (a *Agent) handle(ctx context.Context, lease *api.Lease) error {
	working, lost := context.WithCancel(ctx)
	defer lost()
	go a.keepAlive(working, lost, lease)
	completion, err := a.Work(working, lease)
	if err != nil && working.Err() == nil {
		return a.fail(ctx, lease, err)
	}
	if err != nil { // the lease is lost, or the agent stops: somebody else will do it
		return ctx.Err()
	}
	outcome, err := a.Complete(ctx, completion)
	if err == nil && a.HandedIn != nil {
		a.HandedIn(completion, outcome)
	}
	return err
}

// Complete hands in one result; an outcome that is not accepted says why.
func (a *Agent) Complete(ctx context.Context, completion *api.Completion) (*api.CompletionOutcome, error) {
	request := &api.CompleteRequest{
		RequestId: NewRequestID(), AgentId: a.ID, Completions: []*api.Completion{completion},
	}
	answer, err := patiently(ctx, func(ctx context.Context) (*api.CompleteResponse, error) {
		return a.Client.Agents.Complete(a.Client.In(ctx), request)
	})
	if err != nil {
		return nil, err
	}
	return answer.GetOutcomes()[0], nil
}

func (a *Agent) fail(ctx context.Context, lease *api.Lease, cause error) error {
	failure := &api.Failure{Lease: keyOf(lease), Error: cause.Error()}
	request := &api.FailRequest{RequestId: NewRequestID(), AgentId: a.ID, Failures: []*api.Failure{failure}}
	_, err := patiently(ctx, func(ctx context.Context) (*api.FailResponse, error) {
		return a.Client.Agents.Fail(a.Client.In(ctx), request)
	})
	return err
}

// keepAlive extends the lease until the work is over; a lost one ends the work.
func (a *Agent) keepAlive(ctx context.Context, lost context.CancelFunc, lease *api.Lease) {
	for sleep(ctx, heartbeat) == nil {
		request := &api.HeartbeatRequest{
			RequestId: NewRequestID(), AgentId: a.ID, Leases: []*api.LeaseKey{keyOf(lease)},
		}
		answer, err := a.Client.Agents.Heartbeat(a.Client.In(ctx), request)
		if err == nil && len(answer.GetLostAssignmentIds()) > 0 {
			lost()
		}
	}
}

func keyOf(lease *api.Lease) *api.LeaseKey {
	return &api.LeaseKey{AssignmentId: lease.GetAssignment().GetId(), Epoch: lease.GetEpoch(), Secret: lease.GetSecret()}
}
