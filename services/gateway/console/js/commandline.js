// @ts-check
// A command line and its arguments.

// A command line as its arguments; quotes hold words together.
export function words(line) {
  const found = [];
  for (const match of line.matchAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|(\S+)/g))
    found.push(match[1]?.replace(/\\(.)/g, "$1") ?? match[2] ?? match[3]);
  return found;
}

export function quoted(list) {
  return list.map((one) => (/^[\w@%+=:,./-]+$/.test(one) ? one : `"${one.replace(/["\\]/g, "\\$&")}"`)).join(" ");
}
