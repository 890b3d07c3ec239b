package pointsman

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	common "pointsman/clients/go/gen/pointsman/api/common/v1"
	api "pointsman/clients/go/gen/pointsman/api/orchestrator/v1"
)

const (
	tries      = 8
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
	deadline   = 20 * time.Second
	roundRobin = `{"loadBalancingConfig": [{"round_robin": {}}]}`
)

// Client calls the control plane in one project.
type Client struct {
	Connection *grpc.ClientConn
	Runs       api.OrchestratorServiceClient
	Agents     api.AgentServiceClient
	project    string
	token      string
}

// Credentials are what `pointsman token --env` prints; without an authority there is no TLS, as towards an edge beside
// this process.
type Credentials struct {
	// Authority is the PEM file of the certificate to trust, and no other.
	Authority string
	// Token is the file of a bearer token.
	Token string
}

// CredentialsFromEnvironment reads POINTSMAN_CLIENT_AUTHORITY and POINTSMAN_CLIENT_TOKEN.
func CredentialsFromEnvironment() Credentials {
	return Credentials{Authority: os.Getenv("POINTSMAN_CLIENT_AUTHORITY"), Token: os.Getenv("POINTSMAN_CLIENT_TOKEN")}
}

// Dial connects to a server and shows it the credentials; options replace the transport.
func Dial(address, project string, shown Credentials, options ...grpc.DialOption) (*Client, error) {
	transport := insecure.NewCredentials()
	var err error
	if shown.Authority != "" {
		if transport, err = credentials.NewClientTLSFromFile(shown.Authority, ""); err != nil {
			return nil, err
		}
	}
	var token []byte
	if shown.Token != "" {
		if token, err = os.ReadFile(shown.Token); err != nil {
			return nil, err
		}
	}
	base := []grpc.DialOption{grpc.WithTransportCredentials(transport), grpc.WithDefaultServiceConfig(roundRobin)}
	connection, err := grpc.NewClient(address, append(base, options...)...)
	if err != nil {
		return nil, err
	}
	runs, agents := api.NewOrchestratorServiceClient(connection), api.NewAgentServiceClient(connection)
	client := &Client{Connection: connection, Runs: runs, Agents: agents, project: project}
	client.token = strings.TrimSpace(string(token))
	return client, nil
}

// NewRequestID is an idempotency key that nobody else has.
func NewRequestID() string {
	bytes := make([]byte, 16)
	_, _ = rand.Read(bytes) // crypto/rand never fails: it ends the program instead
	return hex.EncodeToString(bytes)
}

// In names the project that calls with this context act in, and who calls.
func (c *Client) In(ctx context.Context) context.Context {
	ctx = metadata.AppendToOutgoingContext(ctx, "pointsman-project", c.project)
	if c.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
}

// Submit starts a run; the same request_id twice starts it once.
func (c *Client) Submit(ctx context.Context, requestID, message string) (*api.SubmitResponse, error) {
	request := &api.SubmitRequest{RequestId: requestID, Message: message}
	return patiently(ctx, func(ctx context.Context) (*api.SubmitResponse, error) { return c.Runs.Submit(c.In(ctx), request) })
}

// Watch hands over every transition of a run to its end, each once and in order, over broken connections.
func (c *Client) Watch(ctx context.Context, runID string, afterSeq int64, each func(*common.Transition) error) error {
	pause := firstPause
	for attempt := 0; ; attempt++ {
		last, err := c.watchOnce(ctx, runID, afterSeq, each)
		if last > afterSeq {
			afterSeq, attempt, pause = last, 0, firstPause
		}
		if err == nil || errors.Is(err, errStopped) {
			return err
		}
		failure := FailureOf(err)
		advice := failure.Advice()
		if (advice != Retry && advice != Resume) || attempt == tries {
			return failure
		}
		if err := sleep(ctx, max(pause, failure.RetryAfter)); err != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

var errStopped = errors.New("the watcher stopped")

func (c *Client) watchOnce(
	ctx context.Context, runID string, afterSeq int64, each func(*common.Transition) error,
) (int64, error) {
	ctx, cancel := context.WithCancel(c.In(ctx))
	defer cancel()
	stream, err := c.Runs.WatchRun(ctx, &api.WatchRunRequest{RunId: runID, AfterSeq: afterSeq})
	if err != nil {
		return afterSeq, err
	}
	for {
		item, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return afterSeq, nil
		}
		if err != nil {
			return afterSeq, err
		}
		if err := each(item.GetTransition()); err != nil {
			return item.GetTransition().GetSeq(), errors.Join(errStopped, err)
		}
		afterSeq = item.GetTransition().GetSeq()
	}
}

// patiently calls until there is an answer; safe for mutations because every try carries the same request_id.
func patiently[Answer any](ctx context.Context, call func(context.Context) (Answer, error)) (Answer, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, deadline)
		answer, err := call(limited)
		cancel()
		failure := FailureOf(err)
		if failure == nil {
			return answer, nil
		}
		if failure.Advice() != Retry || attempt == tries || ctx.Err() != nil {
			return answer, failure
		}
		if err := sleep(ctx, max(pause, failure.RetryAfter)); err != nil {
			return answer, err
		}
		pause = min(2*pause, longPause)
	}
}

func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}
