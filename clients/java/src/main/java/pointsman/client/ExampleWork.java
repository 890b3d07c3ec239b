package pointsman.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import pointsman.api.handoff.v1.Handoff.AcceptanceCriterion;
import pointsman.api.handoff.v1.Handoff.Claim;
import pointsman.api.handoff.v1.Handoff.CoderResult;
import pointsman.api.handoff.v1.Handoff.Document;
import pointsman.api.handoff.v1.Handoff.Evidence;
import pointsman.api.handoff.v1.Handoff.EvidenceKind;
import pointsman.api.handoff.v1.Handoff.ResearchReport;
import pointsman.api.handoff.v1.Handoff.ReviewDecision;
import pointsman.api.handoff.v1.Handoff.ReviewLevel;
import pointsman.api.handoff.v1.Handoff.ReviewVerdict;
import pointsman.api.handoff.v1.Work.ClaimFinding;
import pointsman.api.handoff.v1.Work.ClaimStatus;
import pointsman.api.handoff.v1.Work.CriterionFinding;
import pointsman.api.handoff.v1.Work.ResearchRequest;
import pointsman.api.handoff.v1.Work.StageRequest;
import pointsman.api.handoff.v1.Work.StageResult;
import pointsman.api.handoff.v1.Work.StageRoute;
import pointsman.api.handoff.v1.Work.TaskFinding;
import pointsman.api.handoff.v1.Work.VerificationReport;
import pointsman.api.handoff.v1.Work.VerifyRequest;
import pointsman.api.handoff.v1.Work.VerifyTask;
import pointsman.api.orchestrator.v1.AgentOuterClass.Completion;
import pointsman.api.orchestrator.v1.AgentOuterClass.Lease;

/** The form of every kind of work. The evidence is real; the reviews let everything pass: write your own. */
public final class ExampleWork implements Agent.Work {
    private static final int LONGEST_EXCERPT = 1000;

    @Override
    public Completion perform(Lease lease) throws IOException, InterruptedException {
        var done = Completion.newBuilder().setLease(Agent.keyOf(lease));
        switch (lease.getWorkCase()) {
            case STAGE -> done.setStage(stage(lease.getStage()));
            case RESEARCH -> done.setResearch(research(lease.getAssignment().getAgentId(), lease.getResearch()));
            case REVIEW -> done.setReview(pass(ReviewLevel.REVIEW_LEVEL_EXECUTOR));
            case DEBATE -> done.setReview(pass(ReviewLevel.REVIEW_LEVEL_ORCHESTRATOR));
            case VERIFY -> done.setVerification(verify(lease.getVerify()));
            default -> throw new UnsupportedOperationException("this agent does not do " + lease.getWorkCase());
        }
        return done.build();
    }

    private static StageResult stage(StageRequest asked) throws IOException, InterruptedException {
        var result = StageResult.newBuilder().setRoute(StageRoute.newBuilder().setVerdict("PASS").setRoute("NEXT"));
        if (!asked.getStage().equals("DEV")) {
            return result.setReportMd(text("# Report\n\nNothing to complain about.\n")).build();
        }
        var proof = run("E1", "java", "-version");
        var coded = CoderResult.newBuilder().addEvidence(proof);
        for (AcceptanceCriterion criterion : asked.getHandoff().getAcceptanceCriteriaList()) {
            coded.addClaims(Claim.newBuilder()
                    .setId("K" + (coded.getClaimsCount() + 1))
                    .setStatement(criterion.getStatement())
                    .addCriterionIds(criterion.getId())
                    .addEvidenceIds(proof.getId()));
        }
        return result.setCoderResult(coded).build();
    }

    /** Runs a command and keeps what it proves. */
    public static Evidence run(String id, String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        byte[] output = process.getInputStream().readAllBytes();
        if (process.waitFor() != 0) {
            throw new IOException(String.join(" ", command) + " ended with " + process.exitValue());
        }
        String shown = new String(output, StandardCharsets.UTF_8);
        return Evidence.newBuilder()
                .setId(id)
                .setKind(EvidenceKind.EVIDENCE_KIND_COMMAND)
                .addAllCommand(List.of(command))
                .setDigest(sha256(output))
                .setExcerpt(shown.substring(0, Math.min(shown.length(), LONGEST_EXCERPT)))
                .build();
    }

    private static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError("every Java has SHA-256", impossible);
        }
    }

    private static ResearchReport research(String agentId, ResearchRequest asked) {
        return ResearchReport.newBuilder()
                .setAgentId(agentId)
                .setSlot(asked.getSlot().getId())
                .setSummaryMd(text("# " + asked.getSlot().getQuestion() + "\n\nNothing is in the way.\n"))
                .setMemoryJsonl(text("{\"note\":\"nothing to remember\"}\n"))
                .setConfidence(0.9f)
                .build();
    }

    private static Document text(String body) {
        return Document.newBuilder().setText(body).build();
    }

    private static ReviewDecision pass(ReviewLevel level) {
        return ReviewDecision.newBuilder().setDecision(ReviewVerdict.REVIEW_VERDICT_PASS).setReviewLevel(level).build();
    }

    private static VerificationReport verify(VerifyRequest asked) {
        var report = VerificationReport.newBuilder().setAcceptedCommit(asked.getAcceptedCommit());
        for (VerifyTask task : asked.getTasksList()) {
            var finding = TaskFinding.newBuilder().setTaskId(task.getTaskId()).setAccepted(true);
            task.getCoderResult().getClaimsList().forEach(claim -> finding.addClaims(
                    ClaimFinding.newBuilder().setClaimId(claim.getId()).setStatus(ClaimStatus.CLAIM_STATUS_SUPPORTED)));
            task.getAcceptanceCriteriaList().stream()
                    .filter(criterion -> criterion.getVerifyCommandCount() > 0)
                    .forEach(criterion -> finding.addCriteria(
                            CriterionFinding.newBuilder().setCriterionId(criterion.getId()).setPassed(true)));
            report.addTasks(finding);
        }
        return report.build();
    }
}
