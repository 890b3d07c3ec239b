import assert from "node:assert/strict";
import { test } from "node:test";
import { comparePatches, isTest, lineDiff, parsePatch } from "../../../services/gateway/console/js/patch.js";
import { languageOf, pieces } from "../../../services/gateway/console/js/syntax.js";

const PATCH = `diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -3,3 +3,3 @@ def f():
 one
-two
+zwei
 three
diff --git a/old.txt b/tests/test_new.txt
similarity index 90%
rename from old.txt
rename to tests/test_new.txt
diff --git a/logo.png b/logo.png
new file mode 100644
Binary files /dev/null and b/logo.png differ
`;

test("changed tests come first, and each line knows its number on both sides", () => {
  const [renamed, source, logo] = parsePatch(PATCH);
  assert.deepEqual([renamed.path, renamed.oldPath, renamed.change], ["tests/test_new.txt", "old.txt", "renamed"]);
  assert.deepEqual([source.added, source.removed, logo.binary, logo.change], [1, 1, true, "added"]);
  const lines = source.hunks[0].lines.map(({ kind, before, after }) => [kind, before, after]);
  assert.deepEqual(lines, [["same", 3, 3], ["removed", 4, 0], ["added", 0, 4], ["same", 5, 5]]);
});

test("a line of the change that looks like a header stays a line", () => {
  const [file] = parsePatch("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/evil\n+++ b/evil\n");
  assert.equal(file.path, "x");
  assert.deepEqual(file.hunks[0].lines.map((line) => line.text), ["-- a/evil", "++ b/evil"]);
});

test("nothing and nonsense are no files", () => {
  assert.deepEqual(parsePatch(""), []);
  assert.deepEqual(parsePatch("@@ -1 +1 @@\n+x\n"), []);
});

test("two attempts differ by the lines that only one of them changes", () => {
  const other = PATCH.replace("+zwei", "+deux");
  const [file] = comparePatches(parsePatch(PATCH), parsePatch(other));
  assert.deepEqual(file.lines.filter((line) => line.kind !== "same").map((line) => line.text), ["+deux", "+zwei"]);
  assert.deepEqual(comparePatches(parsePatch(PATCH), parsePatch(PATCH)), []);
  assert.deepEqual(lineDiff([], ["a"]), [{ kind: "added", text: "a" }]);
});

test("what is a test is known by its place or its name", () => {
  for (const path of ["tests/a.py", "a/test_x.py", "x.test.ts", "x_test.go", "src/__tests__/a.js", "conftest.py"]) assert(isTest(path), path);
  for (const path of ["src/attest.py", "contest/a.py", "latest.txt", "src/parser.py"]) assert(!isTest(path), path);
});

test("coloured pieces give the line when joined, whatever it is", () => {
  for (const line of ['return "a # b" # c', "x = 'it''s'", "`${1}`", "", "\u202e evil", 'if "unended', "0x1f+1.5"]) {
    for (const language of ["py", "js", "go", "rs", "java", "sh", ""]) {
      assert.equal(pieces(line, language).map(([, text]) => text).join(""), line);
    }
  }
  assert.deepEqual(pieces("return 1", "py").map(([kind]) => kind), ["keyword", "", "number"]);
  assert.equal(languageOf("a/Makefile"), "sh");
  assert.equal(languageOf("a/b.unknown"), "");
});
