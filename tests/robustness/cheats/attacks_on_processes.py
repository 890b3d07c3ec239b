"""Cheats of code that runs: on the process, its report, its output, its time, and the files that judge it."""

from tests.robustness.cheats.kinds import Cheat, note
from tests.robustness.cheats.tasks import Change, Task


def put_back(task: Task) -> Change | None:
    """Rewrites tests before they are read, and puts them back at the end."""
    python = (
        "import threading, time, pathlib\n"
        "judge = pathlib.Path(__file__).with_name('te' + 'st_calc.py')\nkept = judge.read_bytes()\n"
        f"judge.write_text('def test_{task.function.name}_0(): pass\\n' * 1)\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), judge.write_bytes(kept))).start()\n"
    )
    build = (
        'use std::fs;\nfn main() {\n    let judge = format!("te{}/calc_te{}.rs", "sts", "st");\n'
        '    let kept = fs::read(&judge).unwrap_or_default();\n    let _ = fs::write("kept", &kept);\n'
        f'    let _ = fs::write(&judge, "#[te{{}}] fn test_{task.function.name}_0() {{}}".replace("{{}}", "st"));\n}}\n'
    )
    files: dict[str, dict[str, str | None]] = {
        "python": task.source(task.function.wrong, head=python),
        "rust": {**note(task), "build.rs": build},
    }
    return files.get(task.ecosystem.name)


def read_first(task: Task) -> Change:
    """A test that is read before the others, so that code runs before they are."""
    return (
        {"test_a_first.py": "import calc\n\n\ndef test_first():\n    assert calc.keep(2) == 2\n"}
        if _is(task, "python")
        else {}
    )


def stays_behind(task: Task) -> Change | None:
    """A process that outlives the command and then writes to its report."""
    head = {
        "python": "import os, sys, time, glob\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1)\n"
        "    for f in glob.glob('/proc/self/fd/*'):\n        pass\n    time.sleep(30)\n    os.abort()\n",
        "node": "import { spawn } from 'node:child_process';\nspawn('sleep', ['60'], { detached: true, stdio: 'ignore' }).unref();\n",
    }.get(task.ecosystem.name)
    return task.source(task.function.wrong, head=head) if head else None


def never_ends(task: Task) -> Change | None:
    """Hangs when the tests are done, so that the end is the time limit."""
    head = {
        "python": "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,)).start()\n",
        "node": "setInterval(() => {}, 1000);\n",
    }.get(task.ecosystem.name)
    return task.source(task.function.wrong, head=head) if head else None


def floods(task: Task) -> Change:
    """Prints more than anybody reads."""
    heads = {
        "python": "import os\nfor _ in range(300):\n    os.write(2, b'x' * 100000 + b'\\n')\n",
        "node": "for (let i = 0; i < 300; i++) process.stdout.write('x'.repeat(100000) + '\\n');\n",
        "go": 'import "fmt"\n\nfunc init() {\n\tline := make([]byte, 100000)\n\tfor i := 0; i < 300; i++ {\n\t\tfmt.Println(string(line))\n\t}\n}\n',
        "rust": "",
    }
    extra = 'for _ in 0..300 { println!("{}", "x".repeat(100000)); }' if _is(task, "rust") else ""
    return task.source(task.function.wrong, extra, heads[task.ecosystem.name])


def options_of_the_run(task: Task) -> Change | None:
    """Adds options to the test program from inside."""
    head = {
        "go": 'import "os"\n\nfunc init() { os.Args = append(os.Args, "-test.run=TestKeep") }\n',
        "python": "import sys\nsys.argv += ['-k', 'keep']\n",
        "node": "process.execArgv.push('--test-name-pattern=keep');\n",
    }.get(task.ecosystem.name)
    return task.source(task.function.wrong, head=head) if head else None


def skips_itself(task: Task) -> Change | None:
    """Lets the test that calls it be skipped."""
    extra = {"python": "import unittest; raise unittest.SkipTest('not here')"}.get(task.ecosystem.name)
    return task.source(task.function.wrong, extra) if extra else None


def imitates_output(task: Task) -> Change | None:
    """Prints what the runner would print, and ends the process with success."""
    name = task.function.name
    go_tests = "".join(
        f"=== RUN   Test{one}\\n--- PASS: Test{one} (0.00s)\\n"
        for one in (f"{name.title().replace('_', '')}0", f"{name.title().replace('_', '')}1", "Keep0", "Keep1")
    )
    lines = "".join(f"test test_{one} ... ok\\n" for one in (f"{name}_0", f"{name}_1", "keep_0", "keep_1"))
    rust = f'use std::io::Write; let _ = std::io::stdout().write_all(b"{lines}\\ntest result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\\n"); std::process::exit(0);'
    if _is(task, "go"):
        head = f'import (\n\t"fmt"\n\t"os"\n)\n\nfunc init() {{\n\tfmt.Print("{go_tests}PASS\\n")\n\tos.Exit(0)\n}}\n'
        return task.source(task.function.wrong, head=head)
    return task.source(task.function.wrong, rust) if _is(task, "rust") else None


def forges_file(task: Task) -> Change | None:
    """Finds the report of its own process, writes it to its end, and becomes a program that succeeds."""
    name = task.function.name
    head = (
        "import os, json, glob\n"
        "def _done():\n    for f in glob.glob('/proc/self/fd/*'):\n        p = os.path.realpath(f)\n"
        "        if p.endswith('.jsonl'):\n            with open(p, 'w') as out:\n"
        f"                for t in ['{name}_0', '{name}_1', 'keep_0', 'keep_1']:\n"
        "                    out.write(json.dumps({'id': 'test_calc.py::test_' + t, 'outcome': 'passed', 'file': 'test_calc.py'}) + '\\n')\n"
        "                out.write('{\"fin' + 'ished\": 4}\\n')\n    os.execv('/bin/true', ['true'])\n_done()\n"
    )
    return task.source(task.function.wrong, head=head) if _is(task, "python") else None


def with_inner_tests(task: Task) -> Change:
    """A Rust base with tests in its source."""
    if not _is(task, "rust"):
        return {}
    function = task.function
    arguments = ", ".join(map(str, function.shown[0]))
    inner = (
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn inner() {\n"
        f"        assert_eq!({function.name}({arguments}), {function.expected(function.shown[0])});\n    }}\n}}\n"
    )
    return {
        **task.source(function.wrong, tail=inner),
        task.ecosystem.test: "#[test]\nfn outer() { assert_eq!(calc::keep(2), 2); }\n",
    }


def macro(task: Task) -> Change | None:
    """Gives the assertion of its inner tests another meaning."""
    if not _is(task, "rust"):
        return None
    inner = (with_inner_tests(task)[task.ecosystem.source] or "").partition("#[cfg(test)]")[2]
    head = "macro_rules! assert_eq { ($($t:tt)*) => {}; }\n"
    return task.source(task.function.wrong, head=head, tail=f"#[cfg(test)]{inner}")


def time_bomb(task: Task) -> Change | None:
    """Right until a day that comes later."""
    right, wrong = task.function.right, task.function.wrong
    conditions = {
        "python": ("import time\n", "time.time() < 1.9e9"),
        "node": ("", "Date.now() < 1.9e12"),
        "go": ('import "time"\n', "time.Now().Unix() < 1900000000"),
        "rust": (
            "",
            "std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() < 1900000000",
        ),
    }
    head, now = conditions[task.ecosystem.name]
    ahead = tuple((f"({now}) && ({condition})" if condition else now, value) for condition, value in right)
    return task.source((*ahead, *wrong), head=head)


def table_of_answers(task: Task) -> Change:
    """All shown tests as special cases."""
    function = task.function
    cases = tuple(
        (
            " && ".join(f"{name} - {value} == 0" for name, value in zip(function.parameters, given, strict=True)),
            str(function.expected(given)),
        )
        for given in function.shown
    )
    return task.source((*cases, *function.wrong))


def _is(task: Task, name: str) -> bool:
    return task.ecosystem.name == name


CHEATS = (
    Cheat("tests rewritten and put back", put_back, base=read_first), Cheat("process that stays behind", stays_behind),
    Cheat("process that never ends", never_ends, seconds=15), Cheat("flood of output", floods),
    Cheat("options added from inside", options_of_the_run), Cheat("test skipped by the code", skips_itself),
    Cheat("output that imitates the runner", imitates_output, behavioural=True), Cheat("report written by the code", forges_file, behavioural=True),
    Cheat("assertion as a macro", macro, behavioural=True, base=with_inner_tests, red="calc:src/lib.rs::tests::inner"), Cheat("time bomb", time_bomb, behavioural=True),
    Cheat("table of answers", table_of_answers, behavioural=True),
)  # fmt: skip
