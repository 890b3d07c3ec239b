// @ts-check
// Colours for a line of code: comments, strings, numbers and the words that most languages share. No state between lines.

const WORDS = {
  py: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case",
  js: "async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield",
  go: "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var",
  rs: "as async await break const continue crate else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  java: "abstract assert boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long native new null package private protected public return short static super switch synchronized this throw throws true try var void volatile while",
  sh: "case do done elif else esac export fi for function if in local return then until while",
};
const LANGUAGES = {
  py: "py",
  pyi: "py",
  toml: "py",
  yml: "py",
  yaml: "py",
  js: "js",
  mjs: "js",
  cjs: "js",
  ts: "js",
  tsx: "js",
  jsx: "js",
  json: "js",
  go: "go",
  rs: "rs",
  java: "java",
  kt: "java",
  c: "java",
  h: "java",
  cc: "java",
  cpp: "java",
  cs: "java",
  sh: "sh",
  bash: "sh",
  mk: "sh",
};
const HASH = new Set(["py", "sh"]);
const sets = new Map(Object.entries(WORDS).map(([name, words]) => [name, new Set(words.split(" "))]));
const SLASHES = /\/\/.*|\/\*.*?(?:\*\/|$)/.source;
const STRINGS = /"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|`(?:\\.|[^`\\])*`?/.source;
const REST = /\b\d[\w.]*|[A-Za-z_$][\w$]*/.source;
const patterns = new Map();

export function languageOf(path) {
  const name = path.split("/").at(-1).toLowerCase();
  return name === "makefile" || name === "dockerfile" ? "sh" : (LANGUAGES[name.split(".").at(-1)] ?? "");
}

function pattern(language) {
  if (!patterns.has(language)) {
    const comment = HASH.has(language) ? "#.*" : SLASHES;
    patterns.set(language, new RegExp(`(${comment})|(${STRINGS})|(${REST})`, "g"));
  }
  return patterns.get(language);
}

// A line as [kind, text] pieces that give the line when joined; kind is "" for what has no colour.
export function pieces(line, language) {
  if (!language || line.length > 2000) return [["", line]];
  const found = [];
  let end = 0;
  for (const match of line.matchAll(pattern(language))) {
    const kind = match[1] ? "comment" : match[2] ? "string" : kindOfWord(match[3], language);
    if (!kind) continue;
    if (match.index > end) found.push(["", line.slice(end, match.index)]);
    found.push([kind, match[0]]);
    end = match.index + match[0].length;
  }
  if (end < line.length || found.length === 0) found.push(["", line.slice(end)]);
  return found;
}

function kindOfWord(text, language) {
  if (/^\d/.test(text)) return "number";
  return sets.get(language).has(text) ? "keyword" : "";
}
