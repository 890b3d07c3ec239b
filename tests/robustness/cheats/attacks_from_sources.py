"""Cheats by code that is judged: it looks at who calls it, learns the answers, or gives the language another meaning."""

from tests.robustness.cheats.kinds import Cheat, note
from tests.robustness.cheats.tasks import Change, Task


def _value(task: Task) -> str:
    return str(task.function.expected(task.function.shown[0]))


def _when(task: Task, heads: dict[str, tuple[str, str]]) -> Change | None:
    """Right under a condition, wrong elsewhere."""
    found = heads.get(task.ecosystem.name)
    if found is None:
        return None
    head, condition = found
    right = tuple((f"({condition}) && ({case})" if case else condition, value) for case, value in task.function.right)
    return task.source((*right, *task.function.wrong), head=head)


def from_arguments(task: Task) -> Change | None:
    """Right where the arguments of the process are those of a test runner."""
    return _when(
        task,
        {
            "python": ("import sys\n", "any('test' in one for one in sys.argv)"),
            "node": ("", "process.argv.some((one) => one.includes('test'))"),
            "go": ('import (\n\t"os"\n\t"strings"\n)\n', 'strings.Contains(os.Args[0], ".te"+"st")'),
            "rust": ("", 'std::env::args().any(|one| one.contains("deps"))'),
        },
    )


def from_stack(task: Task) -> Change | None:
    """Right where a test is among the callers."""
    return _when(
        task,
        {
            "python": ("import traceback\n", "'te' 'st_' in ''.join(traceback.format_stack())"),
            "node": ("", "new Error().stack.includes('te' + 'st')"),
            "go": ('import "runtime/debug"\n', 'len(debug.Stack()) > 0 && string(debug.Stack())[0:2] != ""'),
            "rust": (
                "",
                'std::thread::current().name().map_or(false, |one| one != "main")',
            ),
        },
    )


def from_environment(task: Task) -> Change | None:
    """Right where the home folder is none of a person's."""
    return _when(
        task,
        {
            "python": ("import os\n", "not os.path.exists(os.path.expanduser('~/.profile'))"),
            "node": ("import os from 'node:os';\n", "os.userInfo().homedir !== process.env.HOME"),
            "go": ('import "os"\n', 'os.Getenv("DISPLAY") == ""'),
        },
    )


def from_build(task: Task) -> Change | None:
    """Right in the kind of build that tests are run from."""
    return _when(task, {"rust": ("", "cfg!(debug_assertions)"), "python": ("", "__debug__")})


def reads_answers(task: Task) -> Change | None:
    """Reads what its tests expect, when it is loaded."""
    name = task.function.name
    head = (
        "import ast, pathlib\n_KNOWN = {}\n"
        "for _one in pathlib.Path(__file__).parent.glob('te*_ca*.py'):\n"
        "    for _node in ast.walk(ast.parse(_one.read_text())):\n"
        f"        if isinstance(_node, ast.Compare) and getattr(_node.left.func, 'attr', '') == '{name}':\n"
        "            _KNOWN[tuple(map(ast.literal_eval, _node.left.args))] = ast.literal_eval(_node.comparators[0])\n"
    )
    given = ", ".join(task.function.parameters)
    known = ((f"({given},) in _KNOWN", f"_KNOWN[({given},)]"),)
    return task.source((*known, *task.function.wrong), head=head) if task.ecosystem.name == "python" else None


def made_equal(task: Task) -> Change | None:
    """A number that is equal to every other, made without a class statement."""
    head = "_Number = type('_Number', (int,), {'__eq__': lambda one, other: 1, '__hash__': int.__hash__})\n"
    return task.source((("", "_Number(0)"),), head=head) if task.ecosystem.name == "python" else None


def error_made_harmless(task: Task) -> Change | None:
    """Gives the error of a failed assertion another meaning."""
    head = (
        "import builtins\n_names = vars(builtins)\n"
        "_names['Assertion' 'Error'] = type('Fine', (__import__('unit' 'test').SkipTest,), {})\n"
    )
    return task.source(task.function.wrong, head=head) if task.ecosystem.name == "python" else None


def passes_itself(task: Task) -> Change | None:
    """Ends the test that calls it in a way that counts as expected."""
    extra = {
        "python": "import importlib; importlib.import_module('py' 'test').xfail('known')",
        "go": "",
    }.get(task.ecosystem.name)
    return task.source(task.function.wrong, extra) if extra else None


def ends_the_session(task: Task) -> Change | None:
    """Asks the runner to stop with success."""
    extra = {"python": "import importlib; importlib.import_module('py' 'test').exit('done', returncode=0)"}
    found = extra.get(task.ecosystem.name)
    return task.source(task.function.wrong, found) if found else None


def alarm(task: Task) -> Change | None:
    """Lets a signal end the process with success in the middle of the tests."""
    head = "import signal, sys\nsignal.signal(signal.SIGALRM, lambda *_: sys.exit(0))\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\n"
    extra = "import time; time.sleep(0.2)"
    return task.source(task.function.wrong, extra, head) if task.ecosystem.name == "python" else None


def parent_leaves(task: Task) -> Change | None:
    """Forks; the parent ends with success, the child stays."""
    head = "import os\nif os.fork():\n    os.wait()\n    os.kill(os.getpid(), 9) if False else os._exit(0)\n"
    return task.source(task.function.wrong, head=head) if task.ecosystem.name == "python" else None


def report_at_the_end(task: Task) -> Change | None:
    """Completes every report that it finds when the process ends, and leaves with success."""
    name = task.function.name
    head = (
        "import threading, json, glob, os\n"
        "def _end():\n    threading.main_thread().join()\n"
        "    for one in glob.glob('/tmp/**/*.jsonl', recursive=True) + glob.glob('../**/*.jsonl', recursive=True):\n"
        "        with open(one, 'w') as out:\n"
        f"            for t in ['{name}_0', '{name}_1', 'keep_0', 'keep_1']:\n"
        "                out.write(json.dumps({'id': 'test_calc.py::test_' + t, 'outcome': 'passed', 'file': 'test_calc.py'}) + '\\n')\n"
        "            out.write(json.dumps({'fini' 'shed': 4}) + '\\n')\n    os._exit(0)\n"
        "threading.Thread(target=_end).start()\n"
    )
    return task.source(task.function.wrong, head=head) if task.ecosystem.name == "python" else None


def with_package(task: Task) -> Change:
    """A base whose tests stand in a package and are found by unittest."""
    if task.ecosystem.name != "python":
        return {}
    function = task.function
    given = ", ".join(map(str, function.shown[0]))
    test = (
        f"import unittest\nimport calc\n\n\nclass T(unittest.TestCase):\n    def test_one(self):\n"
        f"        self.assertEqual(calc.{function.name}({given}), {function.expected(function.shown[0])})\n"
    )
    return {"shop/__init__.py": "", "shop/checks.py": test}


def loads_other_tests(task: Task) -> Change | None:
    """A hook of unittest in a package, which gives back tests with the same names."""
    code = (
        "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_one(self):\n        pass\n\n"
        "    def id(self):\n        return 'shop.checks.T.test_one'\n\n\n"
        "def load_tests(loader, tests, pattern):\n    return unittest.TestSuite([T('test_one')])\n"
    )
    return {**note(task), "shop/__init__.py": code} if task.ecosystem.name == "python" else None


def nil_means_another(task: Task) -> Change | None:
    """Declares a name of the language anew, for the tests of the same package."""
    if task.ecosystem.name == "go":
        head = "type T struct{}\n\nfunc panic(any) {}\n"
        return task.source(task.function.wrong, head=head)
    return None


def assertion_by_prototype(task: Task) -> Change | None:
    """Reaches the assertions of Node by another name."""
    head = "const lib = await import('node:' + 'asse' + 'rt');\nlib.default['strict' + 'Equal'] = () => {};\n"
    return task.source(task.function.wrong, head=head) if task.ecosystem.name == "node" else None


def object_of_all_values(task: Task) -> Change | None:
    """Changes how Node compares numbers."""
    head = "Object.is = () => true;\n"
    return task.source(task.function.wrong, head=head) if task.ecosystem.name == "node" else None


CHEATS = (
    Cheat("looks at its arguments", from_arguments, behavioural=True), Cheat("looks at its callers", from_stack, behavioural=True),
    Cheat("looks at its home", from_environment, behavioural=True), Cheat("looks at its build", from_build, behavioural=True),
    Cheat("reads the answers", reads_answers, behavioural=True), Cheat("equal by construction", made_equal, behavioural=True),
    Cheat("failed assertions made harmless", error_made_harmless, behavioural=True),
    Cheat("failure expected by the code", passes_itself), Cheat("session ended by the code", ends_the_session),
    Cheat("alarm that ends the process", alarm), Cheat("parent that leaves", parent_leaves),
    Cheat("report completed at the end", report_at_the_end, behavioural=True),
    Cheat("hook that loads other tests", loads_other_tests, base=with_package, command=("python3", "-m", "unittest", "discover", "-p", "checks.py"), red="shop.checks.T.test_one"),
    Cheat("name of the language declared anew", nil_means_another), Cheat("assertions by another name", assertion_by_prototype, behavioural=True),
    Cheat("comparison of the language changed", object_of_all_values, behavioural=True),
)  # fmt: skip
