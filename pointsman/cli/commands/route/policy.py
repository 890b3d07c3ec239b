"""`pointsman route policy`: show a project's policy, or set it."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pointsman.cli.commands.route.options import AsJson, Project, Server, ask, choice, own_rules, usage, word
from pointsman.cli.session.router_client import RouterCalls

SETTINGS = "hard-routing"
SWITCHES = {"on": True, "true": True, "off": False, "false": False}


def policy(  # noqa: PLR0913 - one parameter per option
    *,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="hard-routing=on or hard-routing=off; off makes decisions advice."
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

    hard_routing = _switch(changes or [])
    new_rules = None if rules is None else [_on_wire(rule) for rule in own_rules(rules)]
    if revision is not None and hard_routing is None and new_rules is None:
        raise usage("--revision goes with a change: name it with --set or --rules")

    async def work(calls: RouterCalls) -> Any:
        known = await _known(calls)
        if hard_routing is None and new_rules is None:
            return known
        return await _change(calls, known, hard_routing, new_rules, revision)

    held = ask(server, project, work)
    shown = as_dict(held, whole=True)
    print(json.dumps(shown, ensure_ascii=False, indent=2) if as_json else "\n".join(_lines(held)))


def _switch(changes: list[str]) -> bool | None:
    """The value of --set for hard routing; None where it is not given."""
    found: bool | None = None
    for change in changes:
        name, _, value = change.partition("=")
        if name.strip().lower().replace("_", "-") != SETTINGS or value.strip().lower() not in SWITCHES:
            raise usage(f"--set takes {SETTINGS}=on or {SETTINGS}=off; not '{change}'")
        found = SWITCHES[value.strip().lower()]
    return found


def _on_wire(rule: Any) -> Any:
    from pointsman.api.router.v1 import policy_pb2 as pb

    effect = choice(pb.RuleEffect, rule.effect, "--rules")
    return pb.OwnRule(id=rule.id, effect=effect, pattern=rule.pattern, description=rule.description)


async def _known(calls: RouterCalls) -> Any:
    from pointsman.api.router.v1 import policy_pb2 as pb

    return (await calls.call("GetPolicy", pb.GetPolicyRequest())).policy


async def _change(
    calls: RouterCalls, known: Any, hard_routing: bool | None, rules: list[Any] | None, revision: int | None
) -> Any:
    """Changes the given fields of the policy; fails if the policy changes in between."""
    from pointsman.api.router.v1 import policy_pb2 as pb
    from pointsman.client.calls import new_request_id

    request = pb.SetPolicyRequest(
        request_id=new_request_id(),
        hard_routing=known.hard_routing if hard_routing is None else hard_routing,
        rules=known.rules if rules is None else rules,
        expected_revision=known.revision if revision is None else revision,
    )
    return (await calls.call("SetPolicy", request)).policy


def _lines(held: Any) -> list[str]:
    from pointsman.api.router.v1 import policy_pb2 as pb

    binds = "on: decisions bind" if held.hard_routing else "off: decisions are advice"
    lines = [f"revision {held.revision}, rule set {held.rule_set_version}", f"hard routing {binds}"]
    lines += [
        f"  {rule.id}: {word(pb.RuleEffect, rule.effect)} /{rule.pattern}/ {rule.description}".rstrip()
        for rule in held.rules
    ]
    return lines if held.rules else [*lines, "no rules of its own"]
