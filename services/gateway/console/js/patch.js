// @ts-check
// A unified diff as data: files, hunks and lines; and what two diffs have in common.

const TEST =
  /(^|\/)(tests?|__tests__|spec|testdata)\/|(^|\/)(test_[^/]*|[^/]*[._-](test|spec))\.[^/]+$|(^|\/)conftest\.py$/i;

export function isTest(path) {
  return TEST.test(path);
}

// [{ path, oldPath, change, added, removed, binary, hunks: [{ title, lines: [{ kind, text, before, after }] }] }]
export function parsePatch(text) {
  const files = [];
  let file = null;
  let hunk = null;
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      file = newFile(line);
      hunk = null;
      files.push(file);
    } else if (!file) continue;
    else if (line.startsWith("@@ ")) {
      hunk = newHunk(line);
      file.hunks.push(hunk);
    } else if (hunk) addLine(file, hunk, line);
    else headLine(file, line);
  }
  return files.sort((one, other) => Number(isTest(other.path)) - Number(isTest(one.path)));
}

function newFile(line) {
  const found = /^diff --git "?a\/(.*?)"? "?b\/(.*?)"?$/.exec(line);
  const half = line.slice("diff --git a/".length);
  const path = found?.[2] ?? half;
  return { path, oldPath: found?.[1] ?? path, change: "modified", added: 0, removed: 0, binary: false, hunks: [] };
}

function headLine(file, line) {
  if (line.startsWith("new file")) file.change = "added";
  else if (line.startsWith("deleted file")) file.change = "deleted";
  else if (line.startsWith("rename from ")) Object.assign(file, { change: "renamed", oldPath: line.slice(12) });
  else if (line.startsWith("rename to ")) file.path = line.slice(10);
  else if (line.startsWith("+++ b/")) file.path = line.slice(6).replace(/\t$/, "");
  else if (line.startsWith("Binary files ")) file.binary = true;
}

function newHunk(line) {
  const found = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
  return {
    title: (found?.[3] ?? "").trim(),
    before: Number(found?.[1] ?? 0),
    after: Number(found?.[2] ?? 0),
    lines: [],
  };
}

function addLine(file, hunk, line) {
  const kinds = { "+": "added", "-": "removed", " ": "same" };
  const kind = kinds[line[0]];
  if (!kind) return;
  const one = { kind, text: line.slice(1), before: 0, after: 0 };
  if (kind !== "added") one.before = hunk.before++;
  if (kind !== "removed") one.after = hunk.after++;
  if (kind !== "same") file[kind] += 1;
  hunk.lines.push(one);
}

const MOST_COMPARED = 1500;

// How one attempt's patch differs from another's: lines that only one of them adds or takes away, per file.
export function comparePatches(before, after) {
  const marked = (file) =>
    (file?.hunks ?? []).flatMap((hunk) =>
      hunk.lines.filter((line) => line.kind !== "same").map((line) => (line.kind === "added" ? "+" : "−") + line.text),
    );
  const paths = [...new Set([...after, ...before].map((file) => file.path))];
  return paths
    .map((path) => {
      const old = marked(before.find((file) => file.path === path));
      const now = marked(after.find((file) => file.path === path));
      return { path, lines: lineDiff(old.slice(0, MOST_COMPARED), now.slice(0, MOST_COMPARED)) };
    })
    .filter((file) => file.lines.some((line) => line.kind !== "same"));
}

// The longest common sequence, by rows.
export function lineDiff(old, now) {
  const length = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let row = old.length - 1; row >= 0; row -= 1)
    for (let column = now.length - 1; column >= 0; column -= 1)
      length[row][column] =
        old[row] === now[column]
          ? length[row + 1][column + 1] + 1
          : Math.max(length[row + 1][column], length[row][column + 1]);
  const lines = [];
  let row = 0;
  let column = 0;
  while (row < old.length || column < now.length) {
    if (row < old.length && column < now.length && old[row] === now[column]) {
      lines.push({ kind: "same", text: now[column] });
      row += 1;
      column += 1;
    } else if (column < now.length && (row === old.length || length[row][column + 1] >= length[row + 1][column])) {
      lines.push({ kind: "added", text: now[column++] });
    } else lines.push({ kind: "removed", text: old[row++] });
  }
  return lines;
}
