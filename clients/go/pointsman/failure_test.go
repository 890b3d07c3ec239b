package pointsman

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

func TestEveryRefusalOfTheScenarioLeadsToItsAdvice(t *testing.T) {
	text, err := os.ReadFile("../../scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	var scenario Scenario
	if err := json.Unmarshal(text, &scenario); err != nil {
		t.Fatal(err)
	}
	if len(scenario.Advice) == 0 {
		t.Fatal("the scenario gives no advice")
	}
	for _, wanted := range scenario.Advice {
		failure := &Failure{Code: codeNamed(t, wanted.Code), Reason: wanted.Reason}
		if failure.Advice() != wanted.Advice {
			t.Errorf("%s %s: advice %s, not %s", wanted.Code, wanted.Reason, failure.Advice(), wanted.Advice)
		}
	}
}

func codeNamed(t *testing.T, name string) codes.Code {
	t.Helper()
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + strings.ToUpper(name) + `"`)); err != nil {
		t.Fatal(err)
	}
	return code
}
