package pointsman

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	common "pointsman/clients/go/gen/pointsman/api/common/v1"
	api "pointsman/clients/go/gen/pointsman/api/orchestrator/v1"
)

// fragile breaks every stream after two transitions, until the fifth.
type fragile struct {
	api.UnimplementedOrchestratorServiceServer
	asked []int64
}

func (f *fragile) WatchRun(request *api.WatchRunRequest, stream grpc.ServerStreamingServer[api.WatchRunResponse]) error {
	f.asked = append(f.asked, request.GetAfterSeq())
	for seq := request.GetAfterSeq() + 1; seq <= 5; seq++ {
		if seq > request.GetAfterSeq()+2 {
			return status.Error(codes.Unavailable, "the service is stopping")
		}
		if err := stream.Send(&api.WatchRunResponse{Transition: &common.Transition{Seq: seq}}); err != nil {
			return err
		}
	}
	return nil
}

func TestABrokenWatchGoesOnWithoutGapOrRepeat(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, service := grpc.NewServer(), &fragile{}
	api.RegisterOrchestratorServiceServer(server, service)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	client, err := Dial(listener.Addr().String(), "local", Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Connection.Close()
	var seqs []int64
	err = client.Watch(context.Background(), "run", 0, func(transition *common.Transition) error {
		seqs = append(seqs, transition.GetSeq())
		return nil
	})
	if err != nil || !slices.Equal(seqs, []int64{1, 2, 3, 4, 5}) || !slices.Equal(service.asked, []int64{0, 2, 4}) {
		t.Fatalf("watched %v, asked after %v: %v", seqs, service.asked, err)
	}
}
