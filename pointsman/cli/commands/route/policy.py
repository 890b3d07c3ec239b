"""`pointsman route policy`: show a project's policy, or set it."""

import json
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from pointsman.cli.commands.route.options import AsJson, Project, Server, ask, choice, own_rules, usage, word
from pointsman.cli.session.router_client import RouterCalls

SWITCH = "hard-routing"
DOUBT = "doubt"
SWITCHES = {"on": True, "true": True, "off": False, "false": False}


class Changes(NamedTuple):
    """What --set and --rules change; None leaves a field as it is."""

    hard_routing: bool | None
    doubt: Any
    rules: list[Any] | None


def policy(  # noqa: PLR0913 - one parameter per option
    *,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="hard-routing=on or off; off makes decisions advice. doubt=balanced, action, answer or rules.",
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(help="A JSON file with the project's own rules, which replace those it has; [] removes all."),
    ] = None,
    revision: Annotated[
        int | None, typer.Option(min=0, help="Set it only if the policy is still at this revision.")
    ] = None,
    project: Project = "local",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Show the project's policy; with --set or --rules, change that of it and leave the rest as it is."""
    from pointsman.cli.render.json_output import as_dict

    wanted = _changes(changes or [], rules)
    if revision is not None and wanted == _NOTHING:
        raise usage("--revision goes with a change: name it with --set or --rules")

    async def work(calls: RouterCalls) -> Any:
        known = await _known(calls)
        return known if wanted == _NOTHING else await _change(calls, known, wanted, revision)

    held = ask(server, project, work)
    shown = as_dict(held, whole=True)
    print(json.dumps(shown, ensure_ascii=False, indent=2) if as_json else "\n".join(_lines(held)))


_NOTHING = Changes(None, None, None)


def _changes(given: list[str], rules: Path | None) -> Changes:
    """Reads the values of --set, and the rules of the file."""
    from pointsman.api.router.v1 import policy_pb2 as pb

    hard_routing: bool | None = None
    doubt: Any = None
    for change in given:
        name, _, value = (part.strip().lower() for part in change.partition("="))
        if name == DOUBT:
            doubt = choice(pb.Doubt, value, "--set")
        elif name.replace("_", "-") == SWITCH and value in SWITCHES:
            hard_routing = SWITCHES[value]
        else:
            raise usage(f"--set takes {SWITCH}=on, {SWITCH}=off or {DOUBT}=…; not '{change}'")
    return Changes(hard_routing, doubt, None if rules is None else [_on_wire(rule) for rule in own_rules(rules)])


def _on_wire(rule: Any) -> Any:
    from pointsman.api.router.v1 import policy_pb2 as pb

    effect = choice(pb.RuleEffect, rule.effect, "--rules")
    return pb.OwnRule(id=rule.id, effect=effect, pattern=rule.pattern, description=rule.description)


async def _known(calls: RouterCalls) -> Any:
    from pointsman.api.router.v1 import policy_pb2 as pb

    return (await calls.call("GetPolicy", pb.GetPolicyRequest())).policy


async def _change(calls: RouterCalls, known: Any, wanted: Changes, revision: int | None) -> Any:
    """Changes the given fields of the policy; fails if the policy changes in between."""
    from pointsman.api.router.v1 import policy_pb2 as pb
    from pointsman.client.calls import new_request_id

    request = pb.SetPolicyRequest(
        request_id=new_request_id(),
        hard_routing=known.hard_routing if wanted.hard_routing is None else wanted.hard_routing,
        rules=known.rules if wanted.rules is None else wanted.rules,
        expected_revision=known.revision if revision is None else revision,
        doubt=known.doubt if wanted.doubt is None else wanted.doubt,
    )
    return (await calls.call("SetPolicy", request)).policy


def _lines(held: Any) -> list[str]:
    from pointsman.api.router.v1 import policy_pb2 as pb

    binds = "on: decisions bind" if held.hard_routing else "off: decisions are advice"
    lines = [
        f"revision {held.revision}, rule set {held.rule_set_version}",
        f"hard routing {binds}",
        f"doubt {word(pb.Doubt, held.doubt)}",
    ]
    lines += [
        f"  {rule.id}: {word(pb.RuleEffect, rule.effect)} /{rule.pattern}/ {rule.description}".rstrip()
        for rule in held.rules
    ]
    return lines if held.rules else [*lines, "no rules of its own"]
