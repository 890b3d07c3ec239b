package pointsman

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os/exec"

	handoff "pointsman/clients/go/gen/pointsman/api/handoff/v1"
	api "pointsman/clients/go/gen/pointsman/api/orchestrator/v1"
)

// ExampleWork shows the form of every kind of work. Its evidence is real; its reviews let everything pass: write your own.
func ExampleWork(ctx context.Context, lease *api.Lease) (*api.Completion, error) {
	done := &api.Completion{Lease: keyOf(lease)}
	switch asked := lease.GetWork().(type) {
	case *api.Lease_Stage:
		result, err := stage(ctx, asked.Stage)
		if err != nil {
			return nil, err
		}
		done.Result = &api.Completion_Stage{Stage: result}
	case *api.Lease_Research:
		done.Result = &api.Completion_Research{Research: research(lease.GetAssignment().GetAgentId(), asked.Research)}
	case *api.Lease_Review:
		done.Result = &api.Completion_Review{Review: pass(handoff.ReviewLevel_REVIEW_LEVEL_EXECUTOR)}
	case *api.Lease_Debate:
		done.Result = &api.Completion_Review{Review: pass(handoff.ReviewLevel_REVIEW_LEVEL_ORCHESTRATOR)}
	case *api.Lease_Verify:
		done.Result = &api.Completion_Verification{Verification: verify(asked.Verify)}
	default:
		return nil, fmt.Errorf("this agent does not do %s", lease.GetAssignment().GetPurpose())
	}
	return done, nil
}

func stage(ctx context.Context, asked *handoff.StageRequest) (*handoff.StageResult, error) {
	route := &handoff.StageResult_Route{Route: &handoff.StageRoute{Verdict: "PASS", Route: "NEXT"}}
	if asked.GetStage() != "DEV" {
		report := &handoff.Document{Body: &handoff.Document_Text{Text: "# Report\n\nNothing to complain about.\n"}}
		return &handoff.StageResult{Ending: route, ReportMd: report}, nil
	}
	proof, err := Run(ctx, "E1", "go", "version")
	if err != nil {
		proof, err = Run(ctx, "E1", "true")
	}
	if err != nil {
		return nil, err
	}
	result := &handoff.CoderResult{Evidence: []*handoff.Evidence{proof}}
	for number, criterion := range asked.GetHandoff().GetAcceptanceCriteria() {
		result.Claims = append(result.Claims, &handoff.Claim{
			Id:           fmt.Sprintf("K%d", number+1),
			Statement:    criterion.GetStatement(),
			CriterionIds: []string{criterion.GetId()},
			EvidenceIds:  []string{proof.GetId()},
		})
	}
	return &handoff.StageResult{Ending: route, CoderResult: result}, nil
}

// Run runs a command and keeps what it proves.
func Run(ctx context.Context, id string, command ...string) (*handoff.Evidence, error) {
	output, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", command, err)
	}
	digest := sha256.Sum256(output)
	return &handoff.Evidence{
		Id:      id,
		Kind:    handoff.EvidenceKind_EVIDENCE_KIND_COMMAND,
		Command: command,
		Digest:  hex.EncodeToString(digest[:]),
		Excerpt: string(output[:min(len(output), 1000)]),
	}, nil
}

func research(agentID string, asked *handoff.ResearchRequest) *handoff.ResearchReport {
	text := func(body string) *handoff.Document {
		return &handoff.Document{Body: &handoff.Document_Text{Text: body}}
	}
	return &handoff.ResearchReport{
		AgentId:     agentID,
		Slot:        asked.GetSlot().GetId(),
		SummaryMd:   text("# " + asked.GetSlot().GetQuestion() + "\n\nNothing is in the way.\n"),
		MemoryJsonl: text(`{"note":"nothing to remember"}` + "\n"),
		Confidence:  0.9,
	}
}

func pass(level handoff.ReviewLevel) *handoff.ReviewDecision {
	return &handoff.ReviewDecision{Decision: handoff.ReviewVerdict_REVIEW_VERDICT_PASS, ReviewLevel: level}
}

func verify(asked *handoff.VerifyRequest) *handoff.VerificationReport {
	report := &handoff.VerificationReport{AcceptedCommit: asked.GetAcceptedCommit()}
	for _, task := range asked.GetTasks() {
		finding := &handoff.TaskFinding{TaskId: task.GetTaskId(), Accepted: true}
		for _, claim := range task.GetCoderResult().GetClaims() {
			finding.Claims = append(finding.Claims, &handoff.ClaimFinding{
				ClaimId: claim.GetId(), Status: handoff.ClaimStatus_CLAIM_STATUS_SUPPORTED,
			})
		}
		for _, criterion := range task.GetAcceptanceCriteria() {
			if len(criterion.GetVerifyCommand()) > 0 {
				finding.Criteria = append(finding.Criteria, &handoff.CriterionFinding{CriterionId: criterion.GetId(), Passed: true})
			}
		}
		report.Tasks = append(report.Tasks, finding)
	}
	return report
}
