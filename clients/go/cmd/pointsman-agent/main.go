// Command pointsman-agent works as an agent, or plays the scenario that every client has to show.
//
//	pointsman-agent agent   [--server ADDRESS] [--project NAME] [--name NAME]
//	pointsman-agent conform [--server ADDRESS] [--project NAME] --scenario ../scenario.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	api "pointsman/clients/go/gen/pointsman/api/orchestrator/v1"
	"pointsman/clients/go/pointsman"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "pointsman-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 || (arguments[0] != "agent" && arguments[0] != "conform") {
		return errors.New("usage: pointsman-agent agent|conform [--server ADDRESS] [--project NAME]")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	server := flags.String("server", "127.0.0.1:7460", "address of the orchestrator")
	project := flags.String("project", "local", "the project to act in")
	name := flags.String("name", "go-coder", "id of the agent")
	scenario := flags.String("scenario", "../scenario.json", "the scenario to play")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	client, err := pointsman.Dial(*server, *project)
	if err != nil {
		return err
	}
	defer client.Connection.Close()
	if arguments[0] == "conform" {
		return conform(ctx, client, *scenario)
	}
	code := []api.Capability{api.Capability_CAPABILITY_CODE}
	agent := &pointsman.Agent{Client: client, ID: *name, Capabilities: code, Work: pointsman.ExampleWork}
	return agent.Run(ctx)
}

func conform(ctx context.Context, client *pointsman.Client, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var scenario pointsman.Scenario
	if err := json.Unmarshal(text, &scenario); err != nil {
		return err
	}
	shown, err := pointsman.Conform(ctx, client, &scenario)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(shown)
}
