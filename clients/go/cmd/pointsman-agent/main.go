// Command pointsman-agent works as an agent, or plays the scenario that every client has to show.
//
//	pointsman-agent agent   [--server ADDRESS] [--project NAME] [--name NAME]
//	pointsman-agent conform [--server ADDRESS] [--project NAME] --scenario ../scenario.json [--tokens DIRECTORY]
//
// It shows what `pointsman token --env` prints; --tokens has a file ROLE.token for every role of the scenario.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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
	server := flags.String("server", cmp.Or(os.Getenv("POINTSMAN_SERVER"), "127.0.0.1:7460"), "address of the orchestrator")
	project := flags.String("project", "local", "the project to act in")
	name := flags.String("name", "go-coder", "id of the agent")
	scenario := flags.String("scenario", "../scenario.json", "the scenario to play")
	tokens := flags.String("tokens", "", "directory of a token for each role of the scenario")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if arguments[0] == "conform" {
		return conform(ctx, *scenario, func(role string) (*pointsman.Client, error) {
			shown := pointsman.CredentialsFromEnvironment()
			if *tokens != "" {
				shown.Token = filepath.Join(*tokens, role+".token")
			}
			return pointsman.Dial(*server, *project, shown)
		})
	}
	client, err := pointsman.Dial(*server, *project, pointsman.CredentialsFromEnvironment())
	if err != nil {
		return err
	}
	defer client.Connection.Close()
	code := []api.Capability{api.Capability_CAPABILITY_CODE}
	agent := &pointsman.Agent{Client: client, ID: *name, Capabilities: code, Work: pointsman.ExampleWork}
	return agent.Run(ctx)
}

func conform(ctx context.Context, path string, dial pointsman.DialAs) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var scenario pointsman.Scenario
	if err := json.Unmarshal(text, &scenario); err != nil {
		return err
	}
	shown, err := pointsman.Conform(ctx, dial, &scenario)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(shown)
}
