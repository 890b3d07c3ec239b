package pointsman

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	common "pointsman/clients/go/gen/pointsman/api/common/v1"
	api "pointsman/clients/go/gen/pointsman/api/orchestrator/v1"
)

// Scenario is clients/scenario.json, the same for clients in every language.
type Scenario struct {
	Message string `json:"message"`
	Agents  []struct {
		Name         string   `json:"name"`
		Role         string   `json:"role"`
		Capabilities []string `json:"capabilities"`
	} `json:"agents"`
	BreakTheWatchAfter int       `json:"break_the_watch_after"`
	End                string    `json:"end"`
	SecondCompletion   string    `json:"second_completion"`
	Refusals           []Refusal `json:"refusals"`
	Advice             []Refusal `json:"advice"`
}

// Refusal is a call that has to fail, and how.
type Refusal struct {
	Name    string          `json:"name"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
	Code    string          `json:"code"`
	Reason  string          `json:"reason"`
	Advice  Advice          `json:"advice"`
	Field   string          `json:"field"`
}

// Shown is what a client shows after the scenario.
type Shown struct {
	RunID  string  `json:"run_id"`
	End    string  `json:"end"`
	Seqs   []int64 `json:"seqs"`
	Claims int     `json:"claims"`
}

// DialAs connects with the token of a role.
type DialAs func(role string) (*Client, error)

// Conform plays the scenario against a real server; an error says what was not as it has to be.
func Conform(ctx context.Context, dial DialAs, scenario *Scenario) (*Shown, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	client, err := dial("operator")
	if err != nil {
		return nil, err
	}
	defer client.Connection.Close()
	second := make(chan string, 1)
	requestID := NewRequestID()
	submitted, err := client.Submit(ctx, requestID, scenario.Message)
	if err != nil {
		return nil, err
	}
	again, err := client.Submit(ctx, requestID, scenario.Message)
	if err != nil || again.GetRun().GetId() != submitted.GetRun().GetId() {
		return nil, fmt.Errorf("the same submission twice made another run: %v %v", again, err)
	}
	shown := &Shown{RunID: submitted.GetRun().GetId()}
	for _, part := range scenario.Agents {
		agent, err := dial(part.Role)
		if err != nil {
			return nil, err
		}
		defer agent.Connection.Close()
		startAgent(ctx, agent, part.Name, part.Capabilities, second)
	}
	if shown.Seqs, err = watchBroken(ctx, client, shown.RunID, scenario.BreakTheWatchAfter); err != nil {
		return nil, err
	}
	if reason := <-second; reason != scenario.SecondCompletion {
		return nil, fmt.Errorf("the second completion of a lease ended with %s", reason)
	}
	if err := delivered(ctx, client, scenario, shown); err != nil {
		return nil, err
	}
	for _, refusal := range scenario.Refusals {
		text := strings.ReplaceAll(string(refusal.Request), "${run_id}-submit", requestID)
		if err := refused(ctx, client, refusal, strings.ReplaceAll(text, "${run_id}", shown.RunID)); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// startAgent lets an agent work beside the scenario; the first result is handed in a second time.
func startAgent(ctx context.Context, client *Client, name string, names []string, second chan<- string) {
	agent := &Agent{Client: client, ID: name + "-" + NewRequestID(), Work: ExampleWork}
	for _, capability := range names {
		agent.Capabilities = append(agent.Capabilities, api.Capability(api.Capability_value[capability]))
	}
	var once sync.Once
	agent.HandedIn = func(completion *api.Completion, _ *api.CompletionOutcome) {
		once.Do(func() {
			outcome, err := agent.Complete(ctx, completion)
			reason := outcome.GetReason().String()
			if err != nil {
				reason = err.Error()
			}
			select {
			case second <- reason:
			default:
			}
		})
	}
	go func() { _ = agent.Run(ctx) }()
}

// watchBroken watches to the end, breaking its own stream once and resuming after the last seq.
func watchBroken(ctx context.Context, client *Client, runID string, after int) ([]int64, error) {
	var seqs []int64
	enough := fmt.Errorf("enough")
	first := func(transition *common.Transition) error {
		seqs = append(seqs, transition.GetSeq())
		if len(seqs) == after {
			return enough
		}
		return nil
	}
	_ = client.Watch(ctx, runID, 0, first)
	err := client.Watch(ctx, runID, seqs[len(seqs)-1], func(transition *common.Transition) error {
		seqs = append(seqs, transition.GetSeq())
		return nil
	})
	for place, seq := range seqs {
		if seq != int64(place+1) {
			return nil, fmt.Errorf("watched with a gap or a repeat: %v", seqs)
		}
	}
	return seqs, err
}

func delivered(ctx context.Context, client *Client, scenario *Scenario, shown *Shown) error {
	run, err := client.Runs.GetRun(client.In(ctx), &api.GetRunRequest{RunId: shown.RunID})
	if err != nil {
		return err
	}
	if shown.End = run.GetRun().GetState().String(); shown.End != scenario.End {
		return fmt.Errorf("the run ended in %s: %s", shown.End, run.GetRun().GetEndReason())
	}
	answer, err := client.Runs.GetDelivery(client.In(ctx), &api.GetDeliveryRequest{RunId: shown.RunID})
	if err != nil {
		return err
	}
	for _, deliverable := range answer.GetDelivery().GetDeliverables() {
		shown.Claims += len(deliverable.GetClaims())
	}
	if shown.Claims == 0 {
		return fmt.Errorf("nothing that was claimed was delivered: %v", answer)
	}
	return nil
}

// refused makes a call by its name and compares how it fails.
func refused(ctx context.Context, client *Client, wanted Refusal, request string) error {
	service, method, _ := strings.Cut(wanted.Method, "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return err
	}
	descriptor := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(method))
	var in, out proto.Message = dynamicpb.NewMessage(descriptor.Input()), dynamicpb.NewMessage(descriptor.Output())
	if err := protojson.Unmarshal([]byte(request), in); err != nil {
		return err
	}
	failure := FailureOf(client.Connection.Invoke(client.In(ctx), "/"+wanted.Method, in, out))
	if failure == nil {
		return fmt.Errorf("%s: was not refused", wanted.Name)
	}
	code := strings.ToUpper(strings.Join(words(failure.Code.String()), "_"))
	if code != wanted.Code || failure.Reason != wanted.Reason || failure.Advice() != wanted.Advice {
		return fmt.Errorf("%s: was refused otherwise: %s, advice %s", wanted.Name, failure, failure.Advice())
	}
	if wanted.Field != "" && (len(failure.Fields) == 0 || failure.Fields[0] != wanted.Field) {
		return fmt.Errorf("%s: names the fields %v", wanted.Name, failure.Fields)
	}
	return nil
}

// words splits Go's name of a code, such as FailedPrecondition.
func words(name string) []string {
	var found []string
	for _, letter := range name {
		if letter >= 'A' && letter <= 'Z' {
			found = append(found, "")
		}
		found[len(found)-1] += string(letter)
	}
	return found
}
