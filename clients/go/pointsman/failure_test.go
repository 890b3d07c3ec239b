package pointsman

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	common "pointsman/clients/go/gen/pointsman/api/common/v1"
)

func TestEveryRefusalOfTheScenarioLeadsToItsAdvice(t *testing.T) {
	for _, wanted := range scenario(t).Advice {
		failure := &Failure{Code: codeNamed(t, wanted.Code), Reason: wanted.Reason}
		if failure.Advice() != wanted.Advice {
			t.Errorf("%s %s: advice %s, not %s", wanted.Code, wanted.Reason, failure.Advice(), wanted.Advice)
		}
	}
}

func TestEveryReasonOfTheContractHasAnAdvice(t *testing.T) {
	advised := map[string]bool{}
	for _, wanted := range scenario(t).Advice {
		advised["ERROR_REASON_"+wanted.Reason] = true
	}
	for number, name := range common.ErrorReason_name {
		if number != 0 && !advised[name] {
			t.Errorf("the scenario has no advice for %s", name)
		}
	}
}

func scenario(t *testing.T) *Scenario {
	t.Helper()
	text, err := os.ReadFile("../../scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	var read Scenario
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return &read
}

func codeNamed(t *testing.T, name string) codes.Code {
	t.Helper()
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + strings.ToUpper(name) + `"`)); err != nil {
		t.Fatal(err)
	}
	return code
}
